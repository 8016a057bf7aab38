/** What a rollout did to its visitors, from what the client saw and what the workers noted. Computes only. */
import type { Record as LoadRecord } from '../lib/load.ts';
import type { Note } from '../lib/notes.ts';
import { percentile } from '../lib/stats.ts';

/** The version of before, and the new one. */
export type Side = 'stable' | 'canary';

/** A part of the run in which the share that is wanted stays what it is. */
export interface Stretch {
  name: string;
  /** The share that is wanted, 0 to 1. */
  share: number;
  /** When what leads to it began, in milliseconds of the wall clock. What is lost counts from here. */
  beganMs: number;
  /** When it was there; shares and times count from here. */
  fromMs: number;
  toMs: number;
  pods: Record<Side, number>;
  /** From `beganMs` on: requests that no pod of their version has taken; NaN where nobody counts. */
  fallbacks: number;
}

/** A pod that was killed, and when its Service no longer sent anybody to it. */
export interface Death {
  host: string;
  killedMs: number;
  forgottenMs: number;
}

export interface StretchResult {
  name: string;
  /** 0 to 1. */
  wanted: number;
  pods: Record<Side, number>;
  /** From `fromMs` on. */
  requests: number;
  /** Of the requests that were rendered: by the new version. NaN where none was. */
  reached: number;
  /** See `Stretch`. */
  fallbacks: number;
  /** Milliseconds of those that were answered. */
  p99: number;
  /** From `beganMs` on, without those of `atDead`. */
  lost: number;
  /** Their connection was to a pod that was killed, or led there before the Service knew. */
  atDead: number;
}

/** Which version rendered a request; of one that was begun twice the latter; without those that none has ended. */
export function renderedBy(notes: Record<Side, Note[]>): Map<string, Side> {
  const last = new Map<string, { side: Side; at: number }>();
  for (const side of ['stable', 'canary'] as const)
    for (const { event, id, at } of notes[side])
      if (event === 'end' && id !== undefined && at >= (last.get(id)?.at ?? 0)) last.set(id, { side, at });
  return new Map([...last].map(([id, { side }]) => [id, side]));
}

function isLost({ status, error }: LoadRecord): boolean {
  return status !== 200 || error !== undefined;
}

/** Whoever holds a client's connection takes it along: no other pod can answer on it. */
function isAtDead({ to, at, ms }: LoadRecord, deaths: Death[]): boolean {
  return deaths.some(({ host, killedMs, forgottenMs }) => host === to && at <= forgottenMs && at + ms >= killedMs);
}

/** @param records of the run, in any order */
export function resultOf(
  stretch: Stretch,
  records: LoadRecord[],
  rendered: Map<string, Side>,
  deaths: Death[],
): StretchResult {
  const all = records.filter(({ at }) => at >= stretch.beganMs && at < stretch.toMs);
  const measured = all.filter(({ at }) => at >= stretch.fromMs);
  const sides = measured.map(({ id }) => rendered.get(id)).filter((side) => side !== undefined);
  const lost = all.filter(isLost);
  const atDead = lost.filter((record) => isAtDead(record, deaths)).length;
  const times = Float64Array.from(measured.filter((one) => !isLost(one)).map(({ ms }) => ms)).sort();
  return {
    name: stretch.name,
    wanted: stretch.share,
    pods: stretch.pods,
    fallbacks: stretch.fallbacks,
    requests: measured.length,
    reached: sides.filter((side) => side === 'canary').length / sides.length,
    p99: percentile(times, 99),
    lost: lost.length - atDead,
    atDead,
  };
}

/** How far the shares were from what was wanted, in points: the largest one. NaN where any stretch has no share. */
export function shareErrorPoints(results: StretchResult[]): number {
  return Math.max(...results.map(({ wanted, reached }) => 100 * Math.abs(reached - wanted)));
}

/** Seconds from an abort until the new version rendered for the last time before `untilMs`; 0 if it did not. */
export function secondsToLast(notes: Note[], group: string, abortMs: number, untilMs: number): number {
  const after = notes.filter(
    ({ event, id, at }) => event === 'end' && id?.startsWith(`${group}-`) && at > abortMs && at < untilMs,
  );
  return after.reduce((last, { at }) => Math.max(last, (at - abortMs) / 1_000), 0);
}

/** The share of the new version, in percent, of each so many seconds, from `beganMs` on. */
export function shareOverTime(
  records: LoadRecord[],
  rendered: Map<string, Side>,
  beganMs: number,
  everyS: number,
): [atS: number, percent: number][] {
  const counts: { all: number; canary: number }[] = [];
  for (const { at, id } of records) {
    const side = rendered.get(id);
    const slot = Math.floor((at - beganMs) / 1_000 / everyS);
    if (side === undefined || slot < 0) continue;
    counts[slot] ??= { all: 0, canary: 0 };
    counts[slot].all += 1;
    if (side === 'canary') counts[slot].canary += 1;
  }
  return counts.flatMap((count, slot) => (count ? [[slot * everyS, (100 * count.canary) / count.all]] : []));
}

/** What was wanted of it, in percent, with the gaps of the changes bridged. */
export function wantedOverTime(stretches: Stretch[], beganMs: number): [atS: number, percent: number][] {
  return stretches.flatMap(({ fromMs, toMs, share }): [number, number][] => [
    [(fromMs - beganMs) / 1_000, 100 * share],
    [(toMs - beganMs) / 1_000, 100 * share],
  ]);
}
