/** What the clients of a fleet have seen, phase by phase. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { percentile } from '../../load/stats.mjs';
import type { ClientResult, Phase, TimelineEntry } from './fleet.ts';
import { ROOT } from './shell.ts';

/** Where `make bench-drain` finds the parts of its report. */
export const BENCH_FOLDER = join(ROOT, '.state/bench');

const FAILURES_MAX = 100;

export interface PhaseOutcome extends Phase {
  requests: number;
  /** Answers other than 200, and none, by what it was. */
  failed: Record<string, number>;
  /** Those of them that no worker has begun. */
  lost: number;
  latencyMs: Record<'p50' | 'p95' | 'p99' | 'max', number | null>;
}

export interface StoryOutcome {
  story: string;
  requests: number;
  overlaps: number;
  phases: PhaseOutcome[];
  /** The first of those that failed: which client's, when it failed, and how. */
  failures: { client: string; at: string; latencyMs: number; how: string; requestId?: string }[];
  /** Other things that were measured, in seconds. */
  seconds: Record<string, number>;
  /** Per second of the run: `[ms of the wall clock, requests, failed, p50, p99]`. */
  perSecond: [number, number, number, number | null, number | null][];
}

/** @param begun ids of the requests that a worker has begun; without it none counts as begun */
export function outcomeOf(
  story: string,
  clients: ClientResult[],
  phases: Phase[],
  { begun = new Set<string>(), seconds = {} }: { begun?: Set<string>; seconds?: Record<string, number> } = {},
): StoryOutcome {
  const entries = clients.flatMap(({ timeline }) => timeline).sort((one, other) => one[0] - other[0]);
  const first = entries[0]?.[0] ?? 0;
  const all = { name: 'all', count: 1, beginMs: first, endMs: Number.POSITIVE_INFINITY };
  return {
    story,
    requests: entries.length,
    overlaps: clients.reduce((sum, { overlaps }) => sum + overlaps, 0),
    phases: [...phases, all].map((phase) => phaseOutcome(phase, entries, begun)),
    failures: clients.flatMap(failuresOf).slice(0, FAILURES_MAX),
    seconds,
    perSecond: perSecond(entries),
  };
}

/** Requests of which anything became but a page: whose, which, and how. */
export function failedRequests(clients: ClientResult[]): string[] {
  return clients.flatMap(failuresOf).map(({ client, requestId, how }) => `${client} ${requestId}: ${how}`);
}

function failuresOf({ name: client, timeline }: ClientResult): StoryOutcome['failures'] {
  return timeline.flatMap(([dueAtMs, latencyMs, how, requestId]) =>
    how === undefined ? [] : [{ client, at: new Date(dueAtMs + latencyMs).toISOString(), latencyMs, how, requestId }],
  );
}

function phaseOutcome(phase: Phase, entries: TimelineEntry[], begun: Set<string>): PhaseOutcome {
  // One that failed belongs to the phase in which it did, not to the one in which it was sent.
  const timeOf = ([dueAtMs, latencyMs, how]: TimelineEntry) => (how === undefined ? dueAtMs : dueAtMs + latencyMs);
  const own = entries.filter((entry) => timeOf(entry) >= phase.beginMs && timeOf(entry) < phase.endMs);
  const failures = own.filter(([, , how]) => how !== undefined);
  const failed: Record<string, number> = {};
  for (const [, , how = ''] of failures) failed[how] = (failed[how] ?? 0) + 1;
  const lost = failures.filter(([, , , requestId]) => !begun.has(requestId ?? '')).length;
  return { ...phase, requests: own.length, failed, lost, latencyMs: latencies(own) };
}

function latencies(entries: TimelineEntry[]): PhaseOutcome['latencyMs'] {
  const sorted = entries
    .filter(([, , how]) => how === undefined)
    .map(([, latencyMs]) => latencyMs)
    .sort((one, other) => one - other);
  return {
    p50: percentile(sorted, 50),
    p95: percentile(sorted, 95),
    p99: percentile(sorted, 99),
    max: percentile(sorted, 100),
  };
}

function perSecond(entries: TimelineEntry[]): StoryOutcome['perSecond'] {
  const bySecond = new Map<number, TimelineEntry[]>();
  for (const entry of entries) {
    const second = Math.floor(entry[0] / 1000) * 1000;
    const own = bySecond.get(second) ?? [];
    own.push(entry);
    bySecond.set(second, own);
  }
  return [...bySecond].map(([second, own]) => {
    const { p50, p99 } = latencies(own);
    return [second, own.length, own.filter(([, , how]) => how !== undefined).length, p50, p99];
  });
}

/** Prints it, and keeps it for `make bench-drain`. */
export function report(outcome: StoryOutcome): void {
  const { perSecond: _unused, ...short } = outcome;
  console.log(JSON.stringify(short, null, 1));
  mkdirSync(BENCH_FOLDER, { recursive: true });
  writeFileSync(join(BENCH_FOLDER, `${outcome.story}.json`), JSON.stringify(outcome));
}
