/** What `corelane rollout` prints. */
import type { Condition } from '../../src/api/conditions.ts';
import type { Listed, Resource } from './service.ts';

/** How a change stands. */
export type Outcome = 'complete' | 'rolling' | 'paused' | 'stalled';

export interface Standing {
  outcome: Outcome;
  text: string;
}

/** Of a resource: in one sentence, and what that means. */
export function standingOf({ metadata, status, spec }: Resource): Standing {
  const of = (type: string) => status?.conditions?.find((one: Condition) => one.type === type);
  const isSeen = status?.observedGeneration === metadata.generation;
  const stalled = of('Stalled');
  // A spec that is refused has no revision.
  if (isSeen && !status?.rollout && stalled?.status === 'True') return { outcome: 'stalled', text: stalled.message };
  if (!isSeen || !status?.rollout) return { outcome: 'rolling', text: 'the operator has not looked at it yet' };
  const { phase, revision, revisions } = status.rollout;
  const target = revisions.find((one) => one.revision === revision);
  const { replicas: wanted = 0 } = spec as { replicas?: number };
  const pods = `${target?.available ?? 0} of ${wanted} pods`;
  const others = revisions.filter((one) => one !== target && one.restsUntil === undefined);
  const old = others.map((one) => `${one.available} of revision ${one.number} (${one.revision}) serve`);
  const resting = revisions.filter((one) => one.restsUntil !== undefined && one.replicas > 0);
  const kept = resting.map((one) => `revision ${one.number} rests until ${one.restsUntil} (${one.replicas} pods)`);
  const text = [`revision ${target?.number} (${revision}): ${pods} are available`, ...old, ...kept].join('; ');
  const canary = canaryStanding(metadata.name, status.rollout);
  if (canary) return canary;
  if (stalled?.status === 'True') return { outcome: 'stalled', text: `${text}; ${stalled.message}` };
  if (phase === 'Paused')
    return { outcome: 'paused', text: `${text}; paused: corelane rollout resume ${metadata.name}` };
  if (phase === 'Complete' && of('Ready')?.status === 'True') return { outcome: 'complete', text };
  // Behind the counts of pods it says what they lack.
  const [, ...lacks] = (of('Ready')?.message ?? '').split('; ');
  return { outcome: 'rolling', text: [text, ...lacks].join('; ') };
}

/** Of a canary that is under way, or was aborted. */
function canaryStanding(
  name: string,
  { canary, phase, reason, message, stable }: NonNullable<NonNullable<Resource['status']>['rollout']>,
): Standing | undefined {
  if (!canary) return undefined;
  const { revision, share, appliedPods, pods } = canary;
  const known = `${appliedPods} of ${pods} pods know it`;
  const beside = stable ? `; stable ${stable.revision}: ${stable.available} of ${stable.replicas} pods` : '';
  const text = `canary ${revision}, ${share} %: ${message}; ${known}${beside}${figuresOf(canary)}`;
  if (phase === 'Aborted') return { outcome: 'stalled', text: `${message}${beside}` };
  if (reason === 'NoProgress') return { outcome: 'stalled', text };
  if (phase !== 'Paused') return { outcome: 'rolling', text };
  return {
    outcome: 'paused',
    text: `${text}: corelane rollout ${reason === 'UserPaused' ? 'resume' : 'promote'} ${name}`,
  };
}

/** What it is judged by. */
function figuresOf({
  analysis,
}: NonNullable<NonNullable<NonNullable<Resource['status']>['rollout']>['canary']>): string {
  if (!analysis) return '';
  const { requests, errors, renders, slow, slowMs, evidence } = analysis;
  const of = (what: typeof errors, all: typeof requests) =>
    `${what.canary} of ${all.canary} (stable ${what.stable} of ${all.stable})`;
  const times =
    slowMs === undefined
      ? ''
      : `, slower than ${Math.round(slowMs)} ms ${of(slow, renders)}, evidence ${evidence.slow} of 100`;
  return `; errors ${of(errors, requests)}, evidence ${evidence.errors} of 100${times}`;
}

/** A table of revisions, the newest first. */
export function historyLines(revisions: Listed[]): string[] {
  const rows = revisions.map((one, index) => [
    String(one.number),
    one.revision,
    `${one.available}/${one.replicas}`,
    stateOf(one, index === 0),
    one.created,
    one.image,
  ]);
  const table = [['REVISION', 'NAME', 'PODS', 'STATE', 'MADE', 'IMAGE'], ...rows];
  const widths = (table[0] as string[]).map((_unused, column) =>
    Math.max(...table.map((row) => row[column]?.length ?? 0)),
  );
  return table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function stateOf({ isRetired, replicas, wasComplete }: Listed, isAsked: boolean): string {
  if (isAsked) return wasComplete ? 'asked for' : 'asked for, not all there yet';
  if (!isRetired) return replicas > 0 ? 'serves, goes away' : 'without pods';
  if (replicas > 0) return 'rests';
  return wasComplete ? 'without pods' : 'without pods, was never all there';
}
