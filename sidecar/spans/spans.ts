/** The spans of a record: what OpenTelemetry's exporter takes. docs/tracing.md tells what is in them. */
import { randomBytes } from 'node:crypto';
import { type Attributes, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { Record, Try } from './record.ts';

/** Those that the semantic conventions know; any other is `_OTHER`. */
const METHODS = ['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE', 'QUERY'];
/** Of these the last try has been nothing but a wait. */
const WAITS = ['queue-timeout', 'no-worker', 'class-queue-timeout'];

/** What a span has that others have not. Times are in milliseconds since the request came. */
interface Part {
  name: string;
  kind: SpanKind;
  id: string;
  /** Empty: none. */
  parentId: string;
  fromMs: number;
  toMs: number;
  attributes?: Attributes;
  isError?: boolean;
  /** When the head of the response was there. */
  headMs?: number;
}

/** What all spans of a pod have. */
export interface Origin {
  resource: Resource;
  /** The same object for all: the exporter writes it down once for those that have it. */
  scope: { name: string; version: string };
  /** Name of this pod. */
  pod: string;
}

/** Spans of one request: of it as a whole, its waits, its renders, the way to another pod. */
export function spansOf(record: Record, origin: Origin): ReadableSpan[] {
  const whole = wholeId(record.spanId);
  const parts =
    record.kind === 'request'
      ? [wholeOf(record, whole), ...triesOf(record, whole, origin)]
      : triesOf(record, whole, origin);
  return parts.map((part) => span(record, part, origin));
}

/** The id of a render ends with a 0 bit; with a 1 it is that of the request. */
function wholeId(renderId: string): string {
  return renderId.slice(0, -1) + (Number.parseInt(renderId.slice(-1), 16) | 1).toString(16);
}

function wholeOf(record: Record, id: string): Part {
  const { method, status, error, host, tries } = record;
  const known = METHODS.includes(method);
  const [, address = '', port] = /^(.*?)(?::([0-9]{1,5}))?$/.exec(host) ?? [];
  const isError = status >= 500;
  return {
    ...{ name: known ? method : 'HTTP', kind: SpanKind.SERVER, id, parentId: record.parentId },
    ...{ fromMs: 0, toMs: record.totalMs, isError },
    attributes: present({
      'http.request.method': known ? method : '_OTHER',
      'http.request.method_original': known ? '' : method,
      'http.response.status_code': status,
      'url.scheme': record.scheme,
      'url.path': record.path,
      'server.address': address,
      'server.port': port === undefined ? undefined : Number(port),
      'network.protocol.version': record.protocol,
      'error.type': isError ? error || String(status) : '',
      'corelane.reason': error,
      'corelane.cache': record.cache,
      'corelane.served_as': record.servedAs,
      'corelane.tries': tries.length,
    }),
  };
}

/** Earlier tries, which a worker has died with; then the waiting, and the render, of the last one. */
function triesOf(record: Record, parentId: string, origin: Origin): Part[] {
  const last = record.tries.at(-1);
  if (!last) return [];
  let fromMs = Math.max(0, startOfLast(record, last));
  const parts = lastTry(record, last, fromMs, parentId, origin);
  for (const { status, ms } of record.tries.slice(0, -1).reverse()) {
    const toMs = fromMs;
    fromMs = Math.max(0, toMs - ms);
    const attributes = { 'http.response.status_code': status };
    parts.unshift({
      name: 'try',
      kind: SpanKind.INTERNAL,
      id: newId(),
      parentId,
      fromMs,
      toMs,
      attributes,
      isError: true,
    });
  }
  return parts;
}

function startOfLast({ firstByteMs, totalMs }: Record, { ms, headMs }: Try): number {
  return firstByteMs !== undefined && headMs !== undefined ? firstByteMs - headMs : totalMs - ms;
}

function lastTry(record: Record, last: Try, fromMs: number, parentId: string, { pod }: Origin): Part[] {
  const { queueMs, renderMs, worker, error } = record;
  const endMs = fromMs + last.ms;
  const wait = (toMs: number, isError: boolean): Part => ({
    ...{ name: 'queue', kind: SpanKind.INTERNAL, id: newId(), parentId, fromMs, toMs, isError },
    attributes: present({ 'corelane.reason': isError ? error : '' }),
  });
  if (worker === '' || renderMs === undefined) {
    if (WAITS.includes(error)) return [wait(endMs, true)];
    return queueMs === undefined ? [] : [wait(Math.min(endMs, fromMs + queueMs), false)];
  }
  const headMs = fromMs + (last.headMs ?? last.ms);
  const renderFromMs = Math.max(fromMs, headMs - renderMs);
  const queueToMs = Math.min(renderFromMs, fromMs + (queueMs ?? 0));
  const handOver: Part | undefined =
    record.pod === ''
      ? undefined
      : {
          ...{
            name: 'hand-over',
            kind: SpanKind.INTERNAL,
            id: newId(),
            parentId,
            fromMs: queueToMs,
            toMs: Math.max(headMs, endMs),
          },
          attributes: { 'corelane.pod': record.pod },
        };
  const isError = last.status >= 500;
  return [
    wait(queueToMs, false),
    ...(handOver ? [handOver] : []),
    {
      ...{ name: 'render', kind: SpanKind.CLIENT, id: record.spanId, parentId: handOver?.id ?? parentId },
      ...{ fromMs: renderFromMs, toMs: Math.max(headMs, endMs), headMs, isError },
      attributes: present({
        'http.request.method': METHODS.includes(record.method) ? record.method : '_OTHER',
        'http.response.status_code': last.status,
        'error.type': isError ? error || String(last.status) : '',
        'corelane.worker': worker,
        'corelane.pod': record.pod || pod,
        'corelane.handed_over': record.pod !== '',
      }),
    },
  ];
}

function present(all: { [name: string]: string | number | boolean | undefined }): Attributes {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '' && value !== undefined));
}

function newId(): string {
  const bytes = randomBytes(8);
  bytes[0] = (bytes[0] as number) | 1;
  return bytes.toString('hex');
}

function span({ traceId, atMs }: Record, part: Part, { resource, scope }: Origin): ReadableSpan {
  const context = (spanId: string) => ({ traceId, spanId, traceFlags: TraceFlags.SAMPLED });
  const time = (ms: number): [number, number] => [Math.floor((atMs + ms) / 1000), ((atMs + ms) % 1000) * 1_000_000];
  const { name, kind, id, parentId, fromMs, toMs, attributes = {}, isError = false, headMs } = part;
  const ms = Math.max(0, toMs - fromMs);
  return {
    ...{ name, kind, attributes, resource, links: [], ended: true },
    spanContext: () => context(id),
    parentSpanContext: parentId === '' ? undefined : context(parentId),
    startTime: time(fromMs),
    endTime: time(fromMs + ms),
    duration: [Math.floor(ms / 1000), (ms % 1000) * 1_000_000],
    status: { code: isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    events: headMs === undefined ? [] : [{ name: 'first byte', time: time(headMs), droppedAttributesCount: 0 }],
    instrumentationScope: scope,
    ...{ droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
  };
}
