/** What the status of a RenderService says about a change of its pods. */
import type { RenderServiceStatus } from '../api/resource.ts';
import { rfc3339 } from '../api/scalars.ts';
import type { CanaryView, RolloutNext } from '../rollout/canary-world.ts';
import { type Evidence, type SideFigures, weight } from '../rollout/evidence.ts';
import type { Revision } from '../rollout/next-replicas.ts';
import type { LiveView } from './live-settings.ts';

export type RolloutStatus = NonNullable<RenderServiceStatus['rollout']>;

/** Entries of the list. */
const REVISIONS_MAX = 16;

/**
 * The status of now.
 * @param before what it said before: it has when there was progress last
 * @param retainMs for how long a revision rests
 * @param live how far what pods are told has come; undefined until it is written and all have been asked
 */
export function rolloutStatus(
  before: RolloutStatus | undefined,
  { revisions, phase, canary }: Pick<RolloutNext, 'revisions' | 'phase' | 'canary'>,
  retainMs: number,
  now: Date,
  live?: Pick<LiveView, 'pods' | 'have'>,
): RolloutStatus {
  const [target, ...others] = revisions as [Revision, ...Revision[]];
  const shown = [target, ...others.filter(({ replicas }) => replicas > 0)].slice(0, REVISIONS_MAX);
  const status = {
    phase,
    revision: target.id,
    revisions: shown.map(({ id, number, replicas, available, retiredMs }) => ({
      ...{ revision: id, number, replicas, available },
      ...(retiredMs !== undefined && { restsUntil: rfc3339(new Date(retiredMs + retainMs)) }),
    })),
  };
  const progressTime = before && !isProgress(before, status) ? before.progressTime : rfc3339(now);
  return { ...status, progressTime, ...canaryStatus(before, canary, revisions, live) } as RolloutStatus;
}

/** A merge patch takes away what is null. */
function canaryStatus(
  before: RolloutStatus | undefined,
  canary: CanaryView | undefined,
  revisions: Revision[],
  live: Pick<LiveView, 'pods' | 'have'> | undefined,
) {
  if (!canary) {
    const gone = (['reason', 'message', 'canary', 'stable'] as const).filter((name) => before?.[name] !== undefined);
    return Object.fromEntries(gone.map((name) => [name, null]));
  }
  const { revision, attempt, step, steps, share, sinceMs, untilMs, evidence, reason, message } = canary;
  const until = untilMs === undefined ? undefined : rfc3339(new Date(untilMs));
  const stable = revisions.find(({ id }) => id === canary.stable);
  const acks = live ? { appliedPods: live.have, pods: live.pods } : acksIn(before, canary);
  return {
    reason,
    message: until === undefined ? message : `${message} until ${until}`,
    canary: {
      ...{ revision, attempt, step, steps, share: share / 100, ...acks },
      since: rfc3339(new Date(sinceMs)),
      ...(until === undefined ? before?.canary?.until !== undefined && { until: null } : { until }),
      ...(evidence ? { analysis: analysisStatus(before, evidence) } : before?.canary?.analysis && { analysis: null }),
    },
    stable: stable
      ? { revision: stable.id, replicas: stable.replicas, available: stable.available }
      : before?.stable && null,
  };
}

/** Acknowledgements of the same share that status tells so far. */
function acksIn(before: RolloutStatus | undefined, { revision, attempt, share }: CanaryView) {
  const { canary: told } = before ?? {};
  const isSame = told?.revision === revision && told.attempt === attempt && told.share === share / 100;
  return isSame ? { appliedPods: told.appliedPods, pods: told.pods } : { appliedPods: 0, pods: 0 };
}

function analysisStatus(before: RolloutStatus | undefined, { canary, stable, logs, slowMs }: Evidence) {
  const bySide = (name: keyof SideFigures) => ({ canary: canary[name], stable: stable[name] });
  const percent = (values: number[]) => Math.min(100, Math.floor(weight(values)));
  return {
    ...{ requests: bySide('requests'), errors: bySide('errors') },
    ...{ renders: bySide('renders'), slow: bySide('slow') },
    ...(slowMs === undefined ? before?.canary?.analysis?.slowMs !== undefined && { slowMs: null } : { slowMs }),
    evidence: { errors: percent(logs.errors), slow: percent(logs.slow) },
  };
}

/** Another revision or phase, pods of the new one that are there, pods of old ones that are gone. */
function isProgress(before: RolloutStatus, after: Omit<RolloutStatus, 'progressTime'>): boolean {
  if (before.revision !== after.revision || before.phase !== after.phase) return true;
  const figures = ({ revision, revisions }: Pick<RolloutStatus, 'revision' | 'revisions'>) => {
    const target = revisions.find((one) => one.revision === revision);
    const others = revisions.filter((one) => one !== target && one.restsUntil === undefined);
    const old = others.reduce((sum, { replicas }) => sum + replicas, 0);
    return { replicas: target?.replicas ?? 0, available: target?.available ?? 0, old };
  };
  const [was, is] = [figures(before), figures(after)];
  return is.available > was.available || is.replicas !== was.replicas || is.old < was.old;
}

/** Whether there has been no progress for too long. */
export function isLate({ phase, progressTime }: RolloutStatus, deadlineSeconds: number, now: Date): boolean {
  return phase === 'Rolling' && lateAtMs(progressTime, deadlineSeconds) <= now.getTime();
}

/** In how many milliseconds it will be late, unless there is progress. */
export function lateAfterMs(rollout: RolloutStatus, deadlineSeconds: number, now: Date): number | undefined {
  if (rollout.phase !== 'Rolling') return undefined;
  const afterMs = lateAtMs(rollout.progressTime, deadlineSeconds) - now.getTime();
  return afterMs > 0 ? afterMs : undefined;
}

function lateAtMs(progressTime: string, deadlineSeconds: number): number {
  // The time is in whole seconds, rounded down.
  return Date.parse(progressTime) + 1_000 * (deadlineSeconds + 1);
}
