/** What a scenario adds up to, from what the client saw and what the workers noted. Computes only. */
import type { Record } from './load.ts';
import type { Note } from './notes.ts';
import { type Latency, summarize } from './stats.ts';

export interface Outcome {
  requests: number;
  answered: number;
  failed: number;
  /** Failed, and no worker has ever begun it. */
  failedUnstarted: number;
  /** The client left on purpose. Counted neither as answered nor as failed. */
  aborted: number;
  /** Requests that a worker began while it had another one. */
  overlaps: number;
  /** Of the answered ones, in milliseconds. */
  latency: Latency;
}

/** @param group whose requests are counted and timed; what others did to the workers counts as overlap, too */
export function outcomeOf(records: Record[], notes: Note[], group: string): Outcome {
  const own = records.filter((record) => record.group === group);
  const begins = notes.filter(({ event }) => event === 'begin');
  const begun = new Set(begins.map(({ id }) => id));
  const answered = own.filter(isAnswered);
  const aborted = own.filter(({ error }) => error === 'aborted');
  const failed = own.filter((record) => !isAnswered(record) && record.error !== 'aborted');
  return {
    requests: own.length,
    answered: answered.length,
    failed: failed.length,
    failedUnstarted: failed.filter(({ id }) => !begun.has(id)).length,
    aborted: aborted.length,
    overlaps: begins.filter(({ inFlight = 0 }) => inFlight > 1).length,
    latency: summarize(answered.map(({ ms }) => ms)),
  };
}

function isAnswered({ status, error }: Record): boolean {
  return status === 200 && error === undefined;
}

/** How often each way to fail occurred, e.g. `{ "503": 2, "ECONNRESET": 1 }`. */
export function failuresOf(records: Record[], group: string): { [reason: string]: number } {
  const reasons: { [reason: string]: number } = {};
  for (const record of records) {
    if (record.group !== group || isAnswered(record) || record.error === 'aborted') continue;
    const reason = record.error ?? String(record.status);
    reasons[reason] = (reasons[reason] ?? 0) + 1;
  }
  return reasons;
}

/** How long a worker that never returns from request `id` is missing: until it begins another one, in ms. */
export function missingMs(notes: Note[], id: string): number | undefined {
  const stuck = notes.find((note) => note.event === 'begin' && note.id === id);
  if (!stuck) return undefined;
  const next = notes.find(
    (note) => note.event === 'begin' && note.worker === stuck.worker && note.pid !== stuck.pid && note.at > stuck.at,
  );
  return next && next.at - stuck.at;
}
