/**
 * What nginx tells of a sampled request (sidecar/nginx/spans.c): one datagram, a line for each field. Any program of
 * the pod may send such a datagram, so nothing in it is believed to be what it should be.
 */

/** One try of a request. */
export interface Try {
  status: number;
  ms: number;
  /** To the head of its response; undefined if none came. */
  headMs?: number;
}

/** Times are in milliseconds, `atMs` since 1970; what is undefined is not known. */
export interface Record {
  /** A client's request; or a render of a page for others, which is part of one. */
  kind: 'request' | 'render';
  /** Numbers of records follow each other. */
  number: number;
  traceId: string;
  /** Of the render: what the worker has got. */
  spanId: string;
  /** What the client has sent; empty: the trace begins here. */
  parentId: string;
  atMs: number;
  totalMs: number;
  firstByteMs?: number;
  queueMs?: number;
  renderMs?: number;
  tries: Try[];
  status: number;
  error: string;
  worker: string;
  /** Empty: this one. */
  pod: string;
  cache: string;
  servedAs: string;
  method: string;
  scheme: string;
  protocol: string;
  host: string;
  path: string;
}

/** No span may be as old, or last as long: a request ends within hours. */
const MS_MAX = 7 * 24 * 3600 * 1000;
const TRIES_MAX = 8;

/** Patterns of the first lines, in order; what stands together is captured. Without these there are no spans. */
const LINES = [
  /^1 (request|render) ([0-9]{1,15})$/,
  /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-01$/,
  /^((?!0{16})[0-9a-f]{16}|)$/,
  /^([0-9]{13}) (-1|[0-9]{1,10}) (-1|[0-9]{1,10})$/,
  /^([0-9]{1,3}:[0-9]{1,10}:(?:-1|[0-9]{1,10})(?:,[0-9]{1,3}:[0-9]{1,10}:(?:-1|[0-9]{1,10}))*|)$/,
];
/** The lines behind, which HAProxy and clients have a part in: what is not of its kind counts as empty. */
const TEXTS = {
  queue: /^[0-9]{1,10}$/,
  render: /^[0-9]{1,10}$/,
  worker: /^worker-[0-9]{1,2}$/,
  pod: /^[a-z0-9.-]{1,253}$/,
  status: /^[1-9][0-9]{2}$/,
  error: /^[a-z-]{1,32}$/,
  cache: /^[a-z]{1,16}$/,
  servedAs: /^[a-z0-9-]{1,63}$/,
  method: /^[A-Za-z0-9_-]{1,32}$/,
  scheme: /^https?$/,
  protocol: /^HTTP[/][0-9.]{1,3}$/,
  host: /^[A-Za-z0-9._:[\]-]{1,259}$/,
  path: /^[^?#]{1,512}$/,
} as const;
type Text = keyof typeof TEXTS;
const NAMES = Object.keys(TEXTS) as Text[];
const COUNT = LINES.length + NAMES.length;

/** The record of a datagram; undefined if it is none. */
export function parseRecord(text: string, nowMs: number): Record | undefined {
  const lines = text.split('\n', COUNT + 2);
  if (lines.length !== COUNT + 1 || lines.at(-1) !== '') return undefined;
  const found = LINES.map((pattern, index) => pattern.exec(lines[index] as string)?.slice(1));
  if (found.includes(undefined)) return undefined;
  const [kind, number, traceId, spanId, parentId, at, total, firstByte, tries] = found.flat() as [
    Record['kind'],
    ...[string, string, string, string, string, string, string, string],
  ];
  const { queue, render, status, protocol, ...texts } = textsOf(lines.slice(LINES.length));
  const record = {
    ...{ kind, number: Number(number), traceId, spanId, parentId },
    ...{ atMs: Number(at), totalMs: Number(total), firstByteMs: time(firstByte), tries: triesOf(tries) },
    ...{ queueMs: time(queue), renderMs: time(render), status: Number(status) },
    ...{ ...texts, protocol: protocol.slice('HTTP/'.length) },
  };
  return isSane(record, nowMs) ? record : undefined;
}

function textsOf(lines: string[]): { [name in Text]: string } {
  const all = NAMES.map((name, index) => [name, TEXTS[name].test(lines[index] ?? '') ? lines[index] : '']);
  return Object.fromEntries(all);
}

function time(text: string | undefined): number | undefined {
  return text === undefined || !/^[0-9]+$/.test(text) ? undefined : Number(text);
}

function triesOf(text: string): Try[] {
  if (text === '') return [];
  return text
    .split(',', TRIES_MAX)
    .map((one) => one.split(':'))
    .map(([status, ms, headMs]) => ({ status: Number(status), ms: Number(ms), headMs: time(headMs) }));
}

function isSane({ atMs, totalMs, tries, ...record }: Record, nowMs: number): boolean {
  const times = [totalMs, record.firstByteMs, record.queueMs, record.renderMs, ...tries.map(({ ms }) => ms)];
  return Math.abs(nowMs - atMs) < MS_MAX && times.every((ms) => ms === undefined || (ms >= 0 && ms < MS_MAX));
}
