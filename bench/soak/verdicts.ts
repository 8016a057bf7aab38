/** What a soak adds up to. Computes only. */

import type { TimelineEntry } from '../../e2e/harness/cluster/fleet.ts';
import { median } from '../lib/stats.ts';
import { total } from '../lib/writes.ts';
import { type Kind, OPERATOR_MAY_END } from './sequence.ts';

/** An action that was done. */
export interface Done {
  number: number;
  kind: Kind;
  /** namespace/name of the RenderService. */
  target?: string;
  beginMs: number;
  endMs: number;
  /** From its beginning until the status told what was expected; undefined where nothing was, or it never did. */
  convergedS?: number;
}

/** Memory of a process at a time. */
export interface Sample {
  atMs: number;
  /** Which process: another one begins anew. */
  process: string;
  mib: number;
  /** RenderServices that there were. */
  services: number;
}

export interface Growth {
  process: string;
  /** Between its first sample that counts and its last. */
  minutes: number;
  /** Medians of the first and of the last third. */
  firstMib: number;
  lastMib: number;
  growthMib: number;
}

/** A process fills its caches and compiles what is hot; what it takes for that is no growth. */
const WARM_UP_MS = 120_000;
/** Fewer in a third are no median. */
const SAMPLES_MIN = 3;

/**
 * By how much the memory of the process that was looked at for the longest time has grown: the median of the last third
 * of that time over that of the first, where there were about as many RenderServices. Undefined where no process has
 * lived for long enough.
 */
export function growthOf(samples: Sample[]): Growth | undefined {
  const byProcess = Map.groupBy(samples, ({ process }) => process);
  const spans = [...byProcess.values()].map((own) => own.toSorted((one, other) => one.atMs - other.atMs));
  const [longest = []] = spans.toSorted((one, other) => spanMs(other) - spanMs(one));
  const [first] = longest;
  if (!first) return undefined;
  const warm = longest.filter(({ atMs }) => atMs - first.atMs >= WARM_UP_MS);
  const usual = median(warm.map(({ services }) => services));
  const alike = warm.filter(({ services }) => Math.abs(services - usual) <= 1);
  const [beginMs, thirdMs] = [warm[0]?.atMs ?? 0, spanMs(warm) / 3];
  const part = (third: number) =>
    alike.filter(({ atMs }) => Math.min(2, Math.floor((atMs - beginMs) / thirdMs)) === third).map(({ mib }) => mib);
  const [early, late] = [part(0), part(2)];
  if (early.length < SAMPLES_MIN || late.length < SAMPLES_MIN) return undefined;
  const [firstMib, lastMib] = [median(early), median(late)];
  const minutes = spanMs(warm) / 60_000;
  return { process: first.process, minutes, firstMib, lastMib, growthMib: lastMib - firstMib };
}

/** The largest of all processes: pods of one RenderService live beside each other. */
export function worstGrowthOf(samples: Sample[]): Growth | undefined {
  const byProcess = Map.groupBy(samples, ({ process }) => process);
  const found = [...byProcess.values()].flatMap((own) => growthOf(own) ?? []);
  return found.toSorted((one, other) => other.growthMib - one.growthMib)[0];
}

const spanMs = (samples: Sample[]) => (samples.at(-1)?.atMs ?? 0) - (samples[0]?.atMs ?? 0);

/** A request of an honest client that was not answered as it should be. */
export interface Lost {
  client: string;
  atMs: number;
  how: string;
  requestId: string;
  /** The action that was the nearest in time, and how many seconds lie between. */
  nearest?: { number: number; kind: Kind; seconds: number };
}

/** Requests that were lost, each with the action that was the nearest. What a client had when it was stopped is not. */
export function lostOf(client: string, timeline: TimelineEntry[], actions: Done[]): Lost[] {
  return timeline.flatMap(([dueAtMs, latencyMs, how, requestId = '']) => {
    if (how === undefined || how === 'STOPPED') return [];
    const atMs = dueAtMs + latencyMs;
    return [{ client, atMs, how, requestId, ...nearestOf(dueAtMs, atMs, actions) }];
  });
}

function nearestOf(fromMs: number, toMs: number, actions: Done[]): Pick<Lost, 'nearest'> {
  const away = ({ beginMs, endMs }: Done) => Math.max(0, beginMs - toMs, fromMs - endMs) / 1000;
  const [nearest] = actions.toSorted((one, other) => away(one) - away(other) || other.beginMs - one.beginMs);
  return nearest ? { nearest: { number: nearest.number, kind: nearest.kind, seconds: away(nearest) } } : {};
}

/** A leader that was cut off notices after its lease, and a new process takes its time where both cores are busy. */
const EXPLAINED_MS = 120_000;

/** Processes of the operator, by when they began, of which no action is the reason. */
export function unexplained(startsMs: number[], beginMs: number, actions: Done[]): number[] {
  const reasons = actions.filter(({ kind }) => OPERATOR_MAY_END.includes(kind));
  // The clock of a process' start has whole seconds.
  const isExplained = (atMs: number) =>
    reasons.some((one) => atMs >= one.beginMs - 1_000 && atMs <= one.endMs + EXPLAINED_MS);
  return startsMs.filter((atMs) => atMs > beginMs && !isExplained(atMs));
}

/** What was wrong, in words; and when. */
export interface Finding {
  atMs: number;
  text: string;
}

export interface Result {
  seed: number;
  minutes: number;
  actions: Done[];
  requests: number;
  overlaps: number;
  lost: Lost[];
  leftBehind: string[];
  /** Undefined where no process has lived for long enough. */
  operatorRss: Growth | undefined;
  operatorHeap: Growth | undefined;
  proxies: Record<string, Growth | undefined>;
  /** Objects written in the quiet minute, by what. */
  quietWrites: Record<string, number>;
  findings: Finding[];
}

/**
 * By how much memory may grow, in MiB. RSS: the operator's young generation is three semi-spaces of 4 MiB (the image's
 * NODE_OPTIONS), which V8 fills and gives back when it likes; as much again is what malloc keeps of large answers. The
 * heap in use has garbage of up to two of these in it, more or less at each look. Proxies have pools and no garbage.
 * What would fill a limit (320 MiB of the operator) within a week is less than can be seen in an hour: what is seen
 * here is a leak by action, of some 20 kB each, or by request.
 */
export const GROWTH_MIB_MAX = { operatorRss: 24, operatorHeap: 8, proxy: 4 };
/** A shorter run tells nothing of memory, and is kept nowhere. */
export const MINUTES_MIN = 10;

/** What is wrong with a run; nothing where all is well. */
export function wrongs(result: Result): string[] {
  const { lost, overlaps, leftBehind, operatorRss, operatorHeap, proxies, quietWrites, findings } = result;
  const grown = (what: string, growth: Growth | undefined, max: number) =>
    growth && growth.growthMib > max
      ? [`${what} has grown by ${growth.growthMib.toFixed(1)} MiB (more than ${max})`]
      : [];
  const judged = result.minutes >= MINUTES_MIN;
  return [
    ...(lost.length > 0 ? [`${lost.length} honest requests were lost`] : []),
    ...(overlaps > 0 ? [`${overlaps} requests met another one in their worker`] : []),
    ...leftBehind.map((what) => `left behind: ${what}`),
    ...(judged ? grown('RSS of the operator', operatorRss, GROWTH_MIB_MAX.operatorRss) : []),
    ...(judged ? grown('the heap of the operator', operatorHeap, GROWTH_MIB_MAX.operatorHeap) : []),
    ...(judged
      ? Object.entries(proxies).flatMap(([name, growth]) => grown(`memory of ${name}`, growth, GROWTH_MIB_MAX.proxy))
      : []),
    ...Object.entries(quietWrites).map(([what, count]) => `${count} x "${what}" written in the quiet minute`),
    ...findings.map(({ text }) => text),
  ];
}

/** The last line. */
export function lastLine(result: Result): string {
  const { minutes, actions, requests, lost, leftBehind, operatorRss, quietWrites } = result;
  const writes = total(quietWrites);
  const growth = operatorRss ? operatorRss.growthMib.toFixed(1) : '-';
  return `soak: minutes=${minutes} actions=${actions.length} requests=${requests} lost=${lost.length} left_behind=${leftBehind.length} operator_rss_growth_mib=${growth} quiet_writes=${writes}`;
}
