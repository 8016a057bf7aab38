/** Pages of metrics, as Prometheus reads them, and what they must say by the access log. */
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { BUCKETS_S } from '../../operator/src/api/objectives.ts';

export interface Family {
  type: string;
  help: string;
  /** Values by name and labels, as they stand in the page. */
  samples: Map<string, number>;
}

const SUFFIXES: Record<string, RegExp> = { counter: /^$/, gauge: /^$/, histogram: /^(_bucket|_sum|_count)$/ };
const SAMPLE = /^([a-z][a-z0-9_]*)(\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)$/;

/**
 * The families of a page.
 * @throws Error for whatever Prometheus would not take, or take wrongly
 */
export function familiesOf(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  for (const part of text.split(/^(?=# HELP )/m)) {
    const [head = '', typed = '', ...lines] = part.trimEnd().split('\n');
    const [, name = '', help = ''] = /^# HELP (\S+) (.+)$/.exec(head) ?? [];
    const [, ofName, type = ''] = /^# TYPE (\S+) (\S+)$/.exec(typed) ?? [];
    if (name === '' || ofName !== name || families.has(name)) throw new Error(`no family: ${part}`);
    families.set(name, { type, help, samples: samplesOfFamily(name, type, lines) });
  }
  return families;
}

function samplesOfFamily(family: string, type: string, lines: string[]): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of lines) {
    const [, name = '', labels = '', value] = SAMPLE.exec(line) ?? [];
    const isOfFamily = name.startsWith(family) && SUFFIXES[type]?.test(name.slice(family.length));
    const names = [...labels.matchAll(/([a-z_]+)="(?:[^"\\]|\\.)*"/g)].map(([, label]) => label);
    if (new Set(['__name__', ...names]).size <= names.length) throw new Error(`a label twice: ${line}`);
    if (!Number.isFinite(Number(value))) throw new Error(`no number: ${line}`);
    if (!isOfFamily || samples.has(name + labels)) throw new Error(`no sample of ${family}, or another one: ${line}`);
    samples.set(name + labels, Number(value));
  }
  return samples;
}

/** All samples of a page. */
export function samplesOf(families: Map<string, Family>): Map<string, number> {
  return new Map([...families.values()].flatMap(({ samples }) => [...samples]));
}

/** A pod's page. */
export async function metricsPage(pod: Pod, query = ''): Promise<Map<string, Family>> {
  const { status, body } = await pod.get(`/corelane/metrics${query}`, { port: PORTS.stats });
  if (status !== 200) throw new Error(`${status}: ${body}`);
  return familiesOf(body);
}

type Line = Record<string, unknown>;

/** Bounds of the histograms, in milliseconds. */
const BOUNDS_MS = [...BUCKETS_S.map((seconds) => Math.round(seconds * 1000)), Number.POSITIVE_INFINITY];

function histogram(name: string, values: number[]): [string, number][] {
  const le = (ms: number) => (ms === Number.POSITIVE_INFINITY ? '+Inf' : String(ms / 1000));
  const sum = values.reduce((total, ms) => total + ms, 0);
  return [
    ...BOUNDS_MS.map((bound): [string, number] => [
      `${name}_bucket{le="${le(bound)}"}`,
      values.filter((ms) => ms <= bound).length,
    ]),
    [`${name}_sum`, sum / 1000],
    [`${name}_count`, values.length],
  ];
}

const numbers = (lines: Line[], field: string) =>
  lines.map((line) => line[field]).filter((ms) => typeof ms === 'number');

/**
 * What nginx must have counted, by its access log.
 * @param isFile whether a line is about a file of `assets`
 */
export function countedOf(log: Line[], isFile: (line: Line) => boolean = () => false): Map<string, number> {
  const requests = new Map<string, number>();
  for (const { status, error } of log) {
    const code = Number(status) < 600 ? `${String(status)[0]}xx` : 'other';
    const series = `corelane_requests_total{code="${code}",reason="${error}"}`;
    requests.set(series, (requests.get(series) ?? 0) + 1);
  }
  const pages = log.filter((line) => !isFile(line) && !line.servedAs && line.status !== 101);
  const answered = pages.filter(({ status }) => status !== 499 && status !== 408);
  return new Map([
    ...requests,
    ...histogram('corelane_request_queue_duration_seconds', numbers(pages, 'queueMs')),
    ...histogram('corelane_request_render_duration_seconds', numbers(pages, 'renderMs')),
    ...histogram('corelane_request_first_byte_duration_seconds', numbers(pages, 'firstByteMs')),
    ...histogram(
      'corelane_request_duration_seconds',
      numbers(answered, 'totalSeconds').map((seconds) => Math.round(seconds * 1000)),
    ),
    [
      'corelane_requests_handed_over_total{direction="out"}',
      pages.filter(({ pod, cache }) => pod && cache !== 'shared').length,
    ],
  ]);
}

/** What of a page nginx has counted, without series that are 0 because nothing has happened. */
export function ofNginx(page: Map<string, Family>): Map<string, number> {
  const names = /^corelane_(requests_total\{|request_|requests_handed_over_total\{direction="out")/;
  return new Map(
    [...samplesOf(page)].filter(
      ([series, value]) => names.test(series) && !(series.startsWith('corelane_requests_total') && value === 0),
    ),
  );
}

/** The page and the log of a pod when both are about all that has been asked. */
export async function pageAndLog(pod: Pod, count: number): Promise<[Map<string, Family>, Line[]]> {
  const log = await until(`${count} requests are logged`, async () => {
    const lines = await pod.accessLog();
    if (lines.length > count) throw new Error(`more than ${count} requests: ${JSON.stringify(lines)}`);
    return lines.length === count ? lines : undefined;
  });
  const total = (page: Map<string, Family>) =>
    [...ofNginx(page)].reduce((sum, [series, n]) => sum + (series.startsWith('corelane_requests_total') ? n : 0), 0);
  const page = await until(`${count} requests are counted`, async () => {
    const now = await metricsPage(pod);
    return total(now) >= count ? now : undefined;
  });
  return [page, log];
}

/** How many lines the access log has. */
export const logged = async (pod: Pod) => (await pod.accessLog()).length;
