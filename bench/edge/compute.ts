/** What the scenarios add up to. Computes only. */
import type { Arrival } from '../fleet/arrivals.ts';
import type { Record as LoadRecord, PlannedRequest } from '../lib/load.ts';
import type { Note } from '../lib/notes.ts';
import { summarize } from '../lib/stats.ts';

/** What browsers got when there was more to do than could be done. */
export interface Seen {
  requests: number;
  /** Rendered by a worker. */
  pages: number;
  /** The application's own page for this case. */
  shells: number;
  json: number;
  /** A proxy's page about an error, or a page that was cut off. */
  errors: number;
  /** Nothing until the browser's patience ended, or a connection that was refused or reset. */
  nothing: number;
}

/** @param records with the headers content-type and x-corelane-error */
export function seenBy(records: LoadRecord[]): Seen {
  const seen: Seen = { requests: records.length, pages: 0, shells: 0, json: 0, errors: 0, nothing: 0 };
  for (const record of records) seen[kindOf(record)] += 1;
  return seen;
}

function kindOf({ status, error, headers = {} }: LoadRecord): Exclude<keyof Seen, 'requests'> {
  const type = headers['content-type'] ?? '';
  if (status === 0) return 'nothing';
  if (/\bjson\b/.test(type)) return 'json';
  if (error !== undefined) return 'errors';
  if (status === 200 && !headers['x-corelane-error']) return 'pages';
  return headers['x-corelane-error'] && type.startsWith('text/html') ? 'shells' : 'errors';
}

/** The 99th percentile of what was answered with 200, in ms. */
export function p99Of(records: LoadRecord[], group: string): number {
  const answered = records.filter((record) => record.group === group && isAnswered(record));
  return summarize(answered.map(({ ms }) => ms)).p99;
}

export function isAnswered({ status, error }: LoadRecord): boolean {
  return status === 200 && error === undefined;
}

/** How many requests of a group were not answered with 200. */
export function failedOf(records: LoadRecord[], group: string): number {
  return records.filter((record) => record.group === group && !isAnswered(record)).length;
}

/** Requests that workers have begun from `atMs` of the wall clock on; with `id` that one only. */
export function begun(notes: Note[], atMs: number, id?: string): number {
  return notes.filter((note) => note.event === 'begin' && note.at >= atMs && (id === undefined || note.id === id))
    .length;
}

/** Requests of an open loop, with renders of `scale` times the length at `1 / scale` times the rate. */
export function requestsOf(work: Arrival[], scale: number, target = 0): PlannedRequest[] {
  return work.map(({ at, service }) => ({
    path: `/?id={id}&steps=b${(service * scale).toFixed(3)}`,
    atMs: at * scale,
    target,
  }));
}

export interface Throughput {
  perSecond: number;
  p99Ms: number;
  /** Answers other than 2xx and 3xx, and connections that broke. */
  failed: number;
}

const MS_PER: { [unit: string]: number } = { us: 0.001, ms: 1, s: 1_000 };

/** What `wrk --latency` has printed. */
export function throughputOf(text: string): Throughput {
  const perSecond = /^Requests\/sec: +([\d.]+)/m.exec(text)?.[1];
  const [, p99, unit = ''] = /^ +99% +([\d.]+)(us|ms|s) *$/m.exec(text) ?? [];
  if (perSecond === undefined || p99 === undefined) throw new Error(`wrk says no figures:\n${text}`);
  const statuses = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0);
  const broken = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text)?.slice(1) ?? [];
  const failed = broken.reduce((sum, count) => sum + Number(count), statuses);
  return { perSecond: Number(perSecond), p99Ms: Number(p99) * (MS_PER[unit] as number), failed };
}

/** How many tests of a kind have passed, and of how many. */
export function passedOf(tests: { kind: string; passed: boolean }[], kind: string): { passed: number; of: number } {
  const own = tests.filter((test) => test.kind === kind);
  return { passed: own.filter(({ passed }) => passed).length, of: own.length };
}

/** Resident memory in lines of /proc/PID/status, in KiB. */
export function residentKib(lines: string): number {
  return [...lines.matchAll(/^VmRSS:\s+(\d+) kB$/gm)].reduce((sum, [, kib]) => sum + Number(kib), 0);
}
