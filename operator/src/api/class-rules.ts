/** Rules about classes of requests, between each other and with what the proxies and workers can hold. */
import { CONCURRENCY_MAX } from './concurrency-rules.ts';
import { quantityOf, sizeBytes } from './scalars.ts';
import { CLASS_CONCURRENCY, CLASS_QUEUE_LENGTH } from './spec/classes.ts';
import { concurrencyBounds } from './spec/concurrency.ts';
import type { RenderServiceSpec } from './spec.ts';
import type { SpecRule } from './spec-rule.ts';

/** The worker runtime notes so many requests of a worker at a time; the rest is for those that are just ending. */
export const WORKER_REQUESTS_MAX = 1000;

const KIB = 1024;
const MIB = 1024 ** 2;
/**
 * Memory that nginx has for requests, and what each request takes beside its buffers. render/model/budget.ts counts the
 * same, and a test compares. For proxies with a small memoryLimit this rule counts more: it does not know that they
 * take smaller heads. Classes may have two thirds, so requests that stay open leave the rest to pages.
 */
const REQUESTS_SHARE = 0.25 * (2 / 3);
const USABLE = 0.9;
const FIXED_BYTES = 16 * MIB;
const EACH_BYTES = 136 * KIB;
/**
 * Memory that nginx needs for a response: RESPONSE_BYTES beside buffering.response.memory, or RESPONSE_BYTES_MIN beside
 * twice buffering.maxHeaderSize if that is more.
 */
const RESPONSE_BYTES = 16 * KIB;
const RESPONSE_BYTES_MIN = 40 * KIB;
const COMPRESSION_BYTES = 168 * KIB;
const CACHE_FIXED_BYTES = 8 * MIB;
const CACHE_BYTES = 176 * KIB;

/** Requests of classes that a pod may have at a time, those that wait included. */
export function classRequests({
  classes = [],
  workersPerPod,
}: Pick<RenderServiceSpec, 'classes' | 'workersPerPod'>): number {
  return classes.reduce((sum, { concurrency, queue }) => sum + workersPerPod * concurrency + queue.maxLength, 0);
}

/** And for how many of them nginx has memory. */
export function classRequestsMax({ buffering, cache, compression, sidecar }: RenderServiceSpec): number {
  const fixedBytes = FIXED_BYTES + (cache.enabled ? CACHE_FIXED_BYTES : 0);
  const memory = USABLE * quantityOf(sidecar.nginx.memoryLimit) - fixedBytes;
  const each =
    sizeBytes(buffering.request.memory) +
    Math.max(
      sizeBytes(buffering.response.memory) + RESPONSE_BYTES,
      2 * sizeBytes(buffering.maxHeaderSize) + RESPONSE_BYTES_MIN,
    ) +
    EACH_BYTES +
    (cache.enabled ? CACHE_BYTES : 0) +
    (compression.enabled ? COMPRESSION_BYTES : 0);
  return (REQUESTS_SHARE * memory) / each;
}

const LIMIT = 'self.sidecar.nginx.memoryLimit';
const REQUEST = 'self.buffering.request.memory';
const RESPONSE = 'self.buffering.response.memory';
const HEAD = 'self.buffering.maxHeaderSize';
const float = (quantity: string) => `quantity(${quantity}).asApproximateFloat()`;
const either = (field: string, bytes: number) => `(self.${field}.enabled ? ${bytes}.0 : 0.0)`;
const larger = (one: string, other: string) => `(${one} > ${other} ? ${one} : ${other})`;
/** CEL of `each` and `memory` in classRequestsMax. */
const BUFFERED = larger(`${float(RESPONSE)} + ${RESPONSE_BYTES}.0`, `2.0 * ${float(HEAD)} + ${RESPONSE_BYTES_MIN}.0`);
const EACH = `(${float(REQUEST)} + ${BUFFERED} + ${EACH_BYTES}.0 + ${either('cache', CACHE_BYTES)} + ${either('compression', COMPRESSION_BYTES)})`;
const MEMORY = `(${USABLE} * ${float(LIMIT)} - ${FIXED_BYTES}.0 - ${either('cache', CACHE_FIXED_BYTES)})`;

/** CEL: the resource has no classes of its own. Those of a preset always fit (presets.ts). */
const NONE = '!has(self.classes) || self.classes.size() == 0';

/** CEL of a class `c`: inside a list the API server fills in no default (gen/crd.ts). */
const PLACES = `(has(c.concurrency) ? c.concurrency : ${CLASS_CONCURRENCY})`;
const WAITING = `(has(c.queue) && has(c.queue.maxLength) ? c.queue.maxLength : ${CLASS_QUEUE_LENGTH})`;

export const classRules: SpecRule[] = [
  {
    path: ['classes'],
    message: 'each must have a name of its own',
    cel: '!has(self.classes) || self.classes.all(c, self.classes.exists_one(o, o.name == c.name))',
    holds: ({ classes = [] }) => new Set(classes.map(({ name }) => name)).size === classes.length,
  },
  {
    path: ['classes'],
    message: `concurrency of all classes and spec.concurrency together must not be more than ${WORKER_REQUESTS_MAX}: a worker keeps an account of so many requests at a time`,
    cel: `${NONE} || ${CONCURRENCY_MAX} + self.classes.map(c, ${PLACES}).sum() <= ${WORKER_REQUESTS_MAX}`,
    holds: (spec) =>
      !spec.classes?.length ||
      spec.classes.reduce((sum, { concurrency }) => sum + concurrency, concurrencyBounds(spec).max) <=
        WORKER_REQUESTS_MAX,
  },
  {
    path: ['classes'],
    message:
      'workersPerPod x concurrency and queue.maxLength of all classes together must be no more than two thirds of the requests that nginx has memory for (docs/edge.md): make sidecar.nginx.memoryLimit larger, or these smaller',
    cel: `${NONE} || !isQuantity(${LIMIT}) || !isQuantity(${REQUEST}) || !isQuantity(${RESPONSE}) || !isQuantity(${HEAD}) || double(self.classes.map(c, self.workersPerPod * ${PLACES} + ${WAITING}).sum()) * ${EACH} <= ${REQUESTS_SHARE} * ${MEMORY}`,
    holds: (spec) => !spec.classes?.length || classRequests(spec) <= classRequestsMax(spec),
  },
];
