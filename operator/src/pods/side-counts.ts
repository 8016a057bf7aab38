/**
 * What a pod has counted of the requests that it has put on a side of a canary, on its page /canary, and how much of
 * that is new. It is counted where it was decided, so each request is in one pod's counts.
 */

export const SIDES_PAGE = '/canary';
/** Buckets of times that a pod has (operator/src/rollout/render-times.ts). */
export const SIDE_BUCKETS = 137;

export interface SideCounts {
  /** Answered, or lost. */
  requests: number;
  /** Of these, answered 5xx or lost. */
  errors: number;
  /** Renders by bucket of their time. */
  times: number[];
}

export interface BothSides {
  canary: SideCounts;
  stable: SideCounts;
}

/**
 * Of clients that are on a side by what they send, and of whom there are as many on either: what is in no other count.
 */
export interface Clients {
  /** Answers, of each no more than some. */
  seen: number;
  /** Who has had an error, the latest: hashes, the same in all pods. */
  failed: string[];
}
export type BothClients = Record<keyof BothSides, Clients>;

export interface SidesPage extends BothSides {
  /** When it has begun to count. */
  epoch: string;
  /** The canary that it is about, as a number. */
  revision: number;
  clients: BothClients;
}

const HEAD = /^epoch=([0-9.]{1,32})\nrevision=([0-9]{1,13})\n/;
const SIDE = /^(canary|stable)=([0-9]{1,12}) ([0-9]{1,12})((?: [0-9]{1,3}:[0-9]{1,12}){0,137})$/;
const CLIENTS = /^(canary|stable)-clients=([0-9]{1,12})((?: [0-9a-f]{1,16}){0,32})$/;
/** Names of clients that are kept, of each side of a canary: where there are more, enough is known. */
const FAILED_MAX = 10_000;
/** No pod answers more, so one that says so is not believed. */
const PER_SECOND_MAX = 20_000;

/** Counts of a page; undefined where it is none, or cannot be true. */
export function readSides(text: string): SidesPage | undefined {
  const [head, epoch, revision] = HEAD.exec(text) ?? [];
  if (head === undefined || epoch === undefined) return undefined;
  const lines = text.slice(head.length, head.length + 8_192).split('\n');
  const canary = readSide(lines[0] ?? '', 'canary');
  const stable = readSide(lines[1] ?? '', 'stable');
  const ofCanary = readClients(lines[2], 'canary');
  const ofStable = readClients(lines[3], 'stable');
  if (!canary || !stable || !ofCanary || !ofStable) return undefined;
  return { epoch, revision: Number(revision), canary, stable, clients: { canary: ofCanary, stable: ofStable } };
}

/** A pod of an older data plane has no such line. */
function readClients(line: string | undefined, side: string): Clients | undefined {
  if (!line) return { seen: 0, failed: [] };
  const [, name, seen, failed = ''] = CLIENTS.exec(line) ?? [];
  return name === side ? { seen: Number(seen), failed: failed.split(' ').filter(Boolean) } : undefined;
}

function readSide(line: string, side: string): SideCounts | undefined {
  const [, name, requests, errors, rest = ''] = SIDE.exec(line) ?? [];
  if (name !== side) return undefined;
  const times = Array.from({ length: SIDE_BUCKETS }, () => 0);
  for (const part of rest.split(' ').slice(1)) {
    const [bucket, count] = part.split(':').map(Number) as [number, number];
    if (bucket >= SIDE_BUCKETS) return undefined;
    times[bucket] = count;
  }
  const counts = { requests: Number(requests), errors: Number(errors), times };
  return counts.errors + sum(times) <= counts.requests ? counts : undefined;
}

function sum(counts: number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/**
 * What was counted since `before`, `elapsedMs` ago; undefined where that cannot be true. A pod that has begun to count
 * anew, for it was started again or there is another canary, has counted all of it since.
 */
export function sidesSince(before: SidesPage, now: SidesPage, elapsedMs: number): BothSides | undefined {
  const isSame = now.epoch === before.epoch && now.revision === before.revision;
  const since = isSame
    ? { canary: less(now.canary, before.canary), stable: less(now.stable, before.stable) }
    : { canary: now.canary, stable: now.stable };
  const all = [since.canary, since.stable].flatMap(({ requests, errors, times }) => [requests, errors, ...times]);
  const isMore = since.canary.requests + since.stable.requests > (PER_SECOND_MAX * Math.max(1_000, elapsedMs)) / 1_000;
  const isTrue = ({ requests, errors, times }: SideCounts) => errors + sum(times) <= requests;
  return all.some((count) => count < 0) || isMore || !isTrue(since.canary) || !isTrue(since.stable) ? undefined : since;
}

function less(one: SideCounts, other: SideCounts): SideCounts {
  return {
    requests: one.requests - other.requests,
    errors: one.errors - other.errors,
    times: one.times.map((count, bucket) => count - (other.times[bucket] ?? 0)),
  };
}

/** What is new of clients since `before`. */
export function clientsSince(before: SidesPage, now: SidesPage): BothClients {
  const isSame = now.epoch === before.epoch && now.revision === before.revision;
  const since = (side: keyof BothSides): Clients => {
    const [{ seen, failed }, of] = [now.clients[side], before.clients[side]];
    if (!isSame) return { seen, failed };
    return { seen: Math.max(0, seen - of.seen), failed: failed.filter((client) => !of.failed.includes(client)) };
  };
  return { canary: since('canary'), stable: since('stable') };
}

/** How many of them were not known yet, of any pod. They are from now on. */
export function countNew(clients: string[], known: Set<string>): number {
  let count = 0;
  for (const client of clients) {
    if (known.has(client) || known.size >= FAILED_MAX) continue;
    known.add(client);
    count += 1;
  }
  return count;
}

/** Both together. */
export function addSides(one: BothSides, other: BothSides): BothSides {
  return { canary: more(one.canary, other.canary), stable: more(one.stable, other.stable) };
}

function more(one: SideCounts, other: SideCounts): SideCounts {
  return {
    requests: one.requests + other.requests,
    errors: one.errors + other.errors,
    times: one.times.map((count, bucket) => count + (other.times[bucket] ?? 0)),
  };
}

const NO_COUNTS: SideCounts = { requests: 0, errors: 0, times: Array.from({ length: SIDE_BUCKETS }, () => 0) };
export const NO_SIDES: BothSides = { canary: NO_COUNTS, stable: NO_COUNTS };
