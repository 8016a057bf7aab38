/** What happened to a service, in order: scaling, rollouts, pods, stuck renders, with their reasons. Computes only. */
import type { ServiceEvent } from './events.ts';
import { type PodNow, type Snapshot, workersOf } from './snapshot.ts';
import { counted } from './text.ts';

export type EntryKind = 'scaling' | 'rollout' | 'pods' | 'stuck' | 'warning' | 'note';

export interface Entry {
  atMs: number;
  kind: EntryKind;
  what: string;
  /** In the words of who says so. */
  why: string;
}

/** Of the past, what is still news to somebody who has just begun to look. */
const NEWS_MS = 600_000;
/** The operator writes status and Event of one step within less. */
const SAME_MS = 30_000;
const NAMED_MAX = 3;

/** @param before an earlier look; without it what is known of the last minutes counts */
export function entriesOf(now: Snapshot, before?: Snapshot): Entry[] {
  const own = [...scaling(now, before), ...stuck(now, before)];
  const seen = before ? [...revisions(now, before), ...podsThatCameOrWent(now, before), ...changes(now, before)] : [];
  return [...own, ...seen].toSorted((one, other) => one.atMs - other.atMs);
}

/** Events of the service as entries. */
export function entriesOfEvents(events: ServiceEvent[]): Entry[] {
  return events.map(({ atMs, type, reason, message }) => {
    const [, what, why = ''] = /^(scaled \d+ -> \d+): (.*)$/s.exec(message) ?? [];
    if (what !== undefined) return { atMs, kind: 'scaling', what, why };
    return { atMs, kind: type === 'Warning' ? 'warning' : 'note', what: reason, why: message };
  });
}

/** Those that come with those that are there; what two have told stands there once. The last ones, at most so many. */
export function merged(entries: Entry[], more: Entry[], max: number): Entry[] {
  const all = [...entries];
  for (const entry of more) if (!all.some((one) => isSame(one, entry))) all.push(entry);
  return all.toSorted((one, other) => one.atMs - other.atMs).slice(-max);
}

function isSame(one: Entry, other: Entry): boolean {
  return one.kind === other.kind && one.what === other.what && Math.abs(one.atMs - other.atMs) < SAME_MS;
}

function scaling({ status }: Snapshot, before?: Snapshot): Entry[] {
  const { lastDecision } = status.scaling ?? {};
  if (!lastDecision || lastDecision.time === before?.status.scaling?.lastDecision?.time) return [];
  const { time, from, to, reason, message } = lastDecision;
  return [
    { atMs: Date.parse(time) || 0, kind: 'scaling', what: `scaled ${from} -> ${to}`, why: `${reason}: ${message}` },
  ];
}

/** The watchdog has killed a worker whose event loop stood still. */
function stuck(now: Snapshot, before?: Snapshot): Entry[] {
  const known = new Map((before ? workersOf(before) : []).map((one) => [`${one.pod} ${one.name}`, one]));
  return workersOf(now).flatMap(({ pod, name, lastStall }): Entry[] => {
    const earlier = known.get(`${pod} ${name}`)?.lastStall?.atMs ?? now.atMs - NEWS_MS;
    if (!lastStall || lastStall.atMs <= earlier) return [];
    return [{ atMs: lastStall.atMs, kind: 'stuck', what: `${name} of ${pod} got stuck`, why: `in ${lastStall.in}` }];
  });
}

function revisions(now: Snapshot, before: Snapshot): Entry[] {
  const [are, were] = [now, before].map(({ pods }) => new Set(pods.map(({ revision }) => revision)));
  const entry = (revision: string, what: string): Entry[] =>
    revision === '' ? [] : [{ atMs: now.atMs, kind: 'rollout', what: `revision ${revision} ${what}`, why: '' }];
  return [
    ...[...(are ?? [])].filter((one) => !were?.has(one)).flatMap((one) => entry(one, 'has its first pod')),
    ...[...(were ?? [])].filter((one) => !are?.has(one)).flatMap((one) => entry(one, 'has no pod any more')),
  ];
}

function podsThatCameOrWent(now: Snapshot, before: Snapshot): Entry[] {
  // Of a fleet of which some are not asked, others are in sight with each look.
  if (now.podsNotAsked > 0 || before.podsNotAsked > 0) return [];
  const [are, were] = [now, before].map(({ pods }) => new Set(pods.map(({ name }) => name)));
  const came = [...(are ?? [])].filter((name) => !were?.has(name));
  const went = [...(were ?? [])].filter((name) => !are?.has(name));
  const entry = (names: string[], what: string): Entry[] =>
    names.length === 0
      ? []
      : [{ atMs: now.atMs, kind: 'pods', what: `${counted(names.length, 'pod')} ${what}`, why: listed(names) }];
  return [...entry(came, 'came'), ...entry(went, 'went')];
}

function listed(names: string[]): string {
  const others = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : '';
  return `${names.slice(0, NAMED_MAX).join(', ')}${others}`;
}

function changes(now: Snapshot, before: Snapshot): Entry[] {
  const known = new Map(before.pods.map((pod) => [pod.name, pod]));
  return now.pods.flatMap((pod) => {
    const earlier = known.get(pod.name);
    return earlier ? [...stateChange(pod, earlier, now.atMs), ...restarts(pod, earlier, now.atMs)] : [];
  });
}

function stateChange({ name, state, problem }: PodNow, earlier: PodNow, atMs: number): Entry[] {
  if (state === earlier.state) return [];
  return [{ atMs, kind: 'pods', what: `${name} is ${state}`, why: problem ?? '' }];
}

function restarts({ name: pod, figures }: PodNow, earlier: PodNow, atMs: number): Entry[] {
  return (figures?.workers ?? []).flatMap(({ name, restarts = 0, crashLoop }): Entry[] => {
    const last = earlier.figures?.workers.find((worker) => worker.name === name)?.restarts;
    if (last === undefined || restarts <= last) return [];
    const why = crashLoop ? `it crashes, exit code ${crashLoop.exitCode}` : '';
    return [{ atMs, kind: 'warning', what: `${name} of ${pod} was started again`, why }];
  });
}
