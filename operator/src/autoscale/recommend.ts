/**
 * How many pods there should be: a pure function of what was measured. docs/scaling.md says the same in prose.
 *
 * E.g. 12 pods, 20/+3/15/-1: a mean of 23.4 % over the last 60 s makes 15 of them. At 14 % one goes, but only because
 * the other 14 then stand at 15 %: of 3 pods at 14 % none goes, the two left would stand at 21 % and a pod would come
 * back.
 */
import type { Sample } from './measure.ts';
import type { Policy } from './policy.ts';

/** Two rounds may fail before a window has a hole. */
const GAP_MAX_MS = 50_000;
/** Rounds are not exact: the sample that opens a window may be a little younger than the window is long. */
const SLACK_MS = 3_000;

/**
 * Renders that wait take places without using CPU: no pod goes because of low CPU if the rest would then have more than
 * this share of its places taken.
 */
const TAKEN_MAX = 0.9;

export type Pause = 'up' | 'down' | 'both';

export interface State {
  /** When pods were last added and removed, by the clock of `now`. */
  lastUpMs?: number | undefined;
  lastDownMs?: number | undefined;
  paused?: Pause | undefined;
}

export type Reason =
  | 'ScaledToZero' // somebody set replicas to 0, which switches scaling off, as with an HPA
  | 'Paused'
  | 'OutsideBounds'
  | 'QueueFull'
  | 'AboveThreshold'
  | 'BelowThreshold'
  | 'NoMetrics'
  | 'FillingWindow'
  | 'WithinBand'
  | 'CoolingDown'
  | 'DeadBand' // the rest would stand above the upper threshold
  | 'PlacesTaken' // CPU is low, but the rest would have hardly a place left: renders wait
  | 'AtMaximum'
  | 'AtMinimum';

export interface Recommendation {
  replicas: number;
  reason: Reason;
  /** One sentence with the numbers. */
  message: string;
  /** Mean of the signal over the window of additions, if it is known. */
  utilization?: number | undefined;
}

/**
 * @param samples oldest first; those beyond the windows do not matter
 * @param current replicas as the resource asks for now
 * @param now of the same clock as the samples
 */
export function recommend(
  samples: Sample[],
  current: number,
  policy: Policy,
  now: number,
  state: State,
): Recommendation {
  const view = look(samples, policy, now);
  const wanted = decide(view, current, policy, now, state);
  const isPaused =
    (wanted.replicas > current && (state.paused === 'up' || state.paused === 'both')) ||
    (wanted.replicas < current && (state.paused === 'down' || state.paused === 'both'));
  const result: Recommendation = isPaused
    ? {
        replicas: current,
        reason: 'Paused',
        message: `stays at ${current} although ${wanted.replicas} are wanted (${wanted.message}): paused by annotation`,
      }
    : wanted;
  return { ...result, utilization: view.up ?? view.latest?.up };
}

/** What the samples say, before anything is decided. */
interface View {
  latest: Sample | undefined;
  /** Means over the windows; undefined while a window is not full. */
  up: number | undefined;
  down: number | undefined;
  refusedInDownWindow: number;
  /**
   * The most of all samples in the window of removals: what the rest must be able to carry without a pod coming back.
   */
  downPeak: number;
  /** The same of the places of workers; 0 where nobody knows. */
  takenPeak: number;
}

function look(samples: Sample[], policy: Policy, now: number): View {
  // Samples of the future are left of a clock that was set back.
  const past = samples.filter(({ atMs }) => atMs <= now);
  const latest = past.at(-1);
  const isFresh = latest !== undefined && now - latest.atMs <= GAP_MAX_MS;
  const downWindow = past.filter(({ atMs }) => atMs > now - policy.down.windowMs);
  return {
    latest: isFresh ? latest : undefined,
    up: isFresh ? windowMean(past, policy.up.windowMs, now, 'up') : undefined,
    down: isFresh ? windowMean(past, policy.down.windowMs, now, 'down') : undefined,
    refusedInDownWindow: downWindow.reduce((sum, { refused }) => sum + refused, 0),
    downPeak: Math.max(...downWindow.map(({ down = 0 }) => down)),
    takenPeak: Math.max(...downWindow.map(({ taken = 0 }) => taken)),
  };
}

/** Mean over a window, or undefined if the samples do not reach back to its beginning without a hole. */
function windowMean(samples: Sample[], windowMs: number, now: number, field: 'up' | 'down'): number | undefined {
  const values: number[] = [];
  let untilMs = now;
  for (const sample of samples.toReversed()) {
    const value = sample[field];
    if (value === undefined) continue;
    if (untilMs - sample.atMs > GAP_MAX_MS) return undefined;
    untilMs = sample.atMs;
    if (sample.atMs > now - windowMs) values.push(value);
    if (sample.atMs <= now - windowMs + SLACK_MS) return mean(values.length > 0 ? values : [value]);
  }
  return undefined;
}

function mean(values: number[]): number {
  return tidy(values.reduce((sum, value) => sum + value, 0) / values.length);
}

/** Ten times 0.1 is a hair more than 1: a comparison with a threshold must not see it. */
function tidy(ratio: number): number {
  return Math.round(ratio * 1e6) / 1e6;
}

function decide(view: View, current: number, policy: Policy, now: number, state: State): Recommendation {
  const { minReplicas, maxReplicas } = policy;
  if (current === 0) {
    return hold(0, 'ScaledToZero', 'replicas is 0: scaling is off until somebody sets another number');
  }
  if (current < minReplicas || current > maxReplicas) {
    const replicas = Math.min(Math.max(current, minReplicas), maxReplicas);
    return { replicas, reason: 'OutsideBounds', message: `${current} is outside of ${minReplicas} to ${maxReplicas}` };
  }
  const up = addition(view, policy, now, state);
  if (up.add > 0) return grow(current, policy, up);
  // Refused requests mean that there are too few pods, whatever the CPU says.
  const wantsLess = isBelow(view, policy);
  if (wantsLess && view.refusedInDownWindow === 0) return shrink(view, current, policy, now, state);
  if (up.blocked) return hold(current, 'CoolingDown', up.blocked);
  if (view.latest?.up === undefined) {
    return hold(current, 'NoMetrics', `no worker has been measured; stays at ${current}`);
  }
  if (view.up === undefined) return hold(current, 'FillingWindow', windowText(policy.up.windowMs, current));
  if (view.down === undefined && view.up < policy.down.below) {
    return hold(current, 'FillingWindow', windowText(policy.down.windowMs, current));
  }
  if (wantsLess) {
    const refused = `${view.refusedInDownWindow} requests were refused in the last ${seconds(policy.down.windowMs)}`;
    return hold(current, 'QueueFull', `stays at ${current} although ${name(policy)} is low: ${refused}`);
  }
  const band = `${name(policy)} is ${percent(view.up)} (adds above ${percent(lowest(policy))}, removes below ${percent(policy.down.below)})`;
  return hold(current, 'WithinBand', band);
}

interface Addition {
  add: number;
  reason: Reason;
  message: string;
  /** Why pods that are wanted do not come yet. */
  blocked?: string;
}

/** Pods to add: by the highest step whose threshold is passed, or by refused requests, whichever is more. */
function addition(view: View, policy: Policy, now: number, state: State): Addition {
  const none: Addition = { add: 0, reason: 'WithinBand', message: '' };
  const sinceUpMs = since(state.lastUpMs, now);
  const refused = view.latest?.refused ?? 0;
  const byQueue = policy.queue && refused > 0 ? policy.queue : undefined;
  const queueText = `${refused} requests were refused`;
  const step = stepOf(view, policy);
  const stepText = step
    ? `${name(policy)} ${percent(view.up as number)} > ${percent(step.above)} for ${seconds(policy.up.windowMs)}`
    : '';
  const due = step && sinceUpMs >= policy.up.cooldownMs ? step : undefined;
  const queue = byQueue && sinceUpMs >= byQueue.cooldownMs ? byQueue : undefined;
  if (due && due.add >= (queue?.add ?? 0)) return { add: due.add, reason: 'AboveThreshold', message: stepText };
  if (queue) return { add: queue.add, reason: 'QueueFull', message: queueText };
  if (!step && !byQueue) return none;
  return { ...none, blocked: `${step ? stepText : queueText}, but pods were added ${seconds(sinceUpMs)} ago` };
}

/** The highest step that both the window and the last sample have passed: a peak that is over adds nothing. */
function stepOf({ up, latest }: View, { up: { steps } }: Policy): Policy['up']['steps'][number] | undefined {
  if (up === undefined || latest?.up === undefined) return undefined;
  const value = Math.min(up, latest.up);
  return steps.findLast(({ above }) => value > above);
}

/** The last sample, too: the window still remembers the fleet before the last removal, which was larger. */
function isBelow({ down, latest }: View, policy: Policy): boolean {
  return down !== undefined && latest?.down !== undefined && Math.max(down, latest.down) < policy.down.below;
}

function grow(current: number, policy: Policy, { add, reason, message }: Addition): Recommendation {
  if (current === policy.maxReplicas) return hold(current, 'AtMaximum', `${message}, but ${current} is the maximum`);
  return { replicas: Math.min(current + add, policy.maxReplicas), reason, message };
}

function shrink(view: View, current: number, policy: Policy, now: number, state: State): Recommendation {
  const { below, remove, windowMs, cooldownMs } = policy.down;
  const value = Math.max(view.down as number, view.latest?.down as number);
  const text = `${name(policy)} ${percent(value)} < ${percent(below)} for ${seconds(windowMs)}`;
  if (current === policy.minReplicas) return hold(current, 'AtMinimum', `${text}, but ${current} is the minimum`);
  const sinceMs = Math.min(since(state.lastUpMs, now), since(state.lastDownMs, now));
  if (sinceMs < cooldownMs) {
    return hold(current, 'CoolingDown', `${text}, but the number of pods changed ${seconds(sinceMs)} ago`);
  }
  const afterRemoval = (count: number, peak = view.downPeak) => tidy((peak * current) / (current - count));
  const hasPlaces = (count: number) => policy.signal !== 'cpu' || afterRemoval(count, view.takenPeak) <= TAKEN_MAX;
  // As many as may go, but never so many that pods would have to come back.
  const most = Math.min(remove, current - policy.minReplicas);
  for (let count = most; count > 0; count -= 1) {
    if (afterRemoval(count) <= lowest(policy) && hasPlaces(count)) {
      return { replicas: current - count, reason: 'BelowThreshold', message: text };
    }
  }
  if (afterRemoval(1) <= lowest(policy)) {
    const taken = `${percent(view.takenPeak)} of all places were taken, and ${current - 1} pods would have too few`;
    return hold(current, 'PlacesTaken', `${text}, but renders wait: ${taken}`);
  }
  const peak = tidy(view.downPeak) > tidy(value) ? `with the ${percent(view.downPeak)} that there were ` : '';
  const rest = `${peak}${current - 1} pods would stand at ${percent(afterRemoval(1))} > ${percent(lowest(policy))}`;
  return hold(current, 'DeadBand', `${text}, but ${rest}`);
}

/** The threshold above which pods are added at all. */
function lowest({ up: { steps } }: Policy): number {
  return steps[0]?.above ?? 1;
}

/** Never negative: a clock that was set back must not stop scaling for that long; the windows fill anew anyway. */
function since(atMs: number | undefined, now: number): number {
  return atMs === undefined || atMs > now ? Number.POSITIVE_INFINITY : now - atMs;
}

function hold(replicas: number, reason: Reason, message: string): Recommendation {
  return { replicas, reason, message };
}

function name({ signal, statistic }: Policy): string {
  const what = signal === 'cpu' ? 'per-core CPU' : 'occupancy';
  return statistic === 'Max' ? `${what} of the busiest worker` : what;
}

function windowText(windowMs: number, current: number): string {
  return `stays at ${current} until it has measured for ${seconds(windowMs)} without a gap`;
}

function percent(ratio: number): string {
  return `${Number((ratio * 100).toFixed(1))} %`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
