/** What status says about objectives: how the last minutes were. Whether that is bad, alerts over hours say. */
import { objectivesOf } from '../api/objectives.ts';
import type { RenderServiceResource, RenderServiceStatus } from '../api/resource.ts';
import type { ObjectivesSpec } from '../api/spec/objectives.ts';
import { type Totals, WINDOW_SECONDS } from '../pods/request-window.ts';

/**
 * @param objectives of the spec, if it is a valid one
 * @param totals what the pods have counted; undefined as long as none has told anything, which leaves what there is
 */
export function objectivesStatus(
  { metadata, status }: RenderServiceResource,
  objectives: ObjectivesSpec | undefined,
  totals: Totals | undefined,
): RenderServiceStatus['objectives'] | null {
  const before = status?.objectives;
  // null: a merge patch takes it away.
  if (!objectives) return before ? null : undefined;
  if (!totals) return before;
  // The operator that led before has counted for longer. What it has told of this generation stays until this process
  // has counted for as long; a restart would otherwise write twice a minute until a window is full.
  const toldSeconds = status?.observedGeneration === metadata.generation ? (before?.seconds ?? 0) : 0;
  if (totals.seconds < Math.min(toldSeconds, WINDOW_SECONDS)) return before;
  const { availability, latency } = objectivesOf(objectives);
  const percents = latency.map(({ name, weights }) => {
    const within = weights.reduce((sum, { leS, weight }) => sum + weight * (totals.within.get(leS) ?? 0), 0);
    return [name, percentOf(within, totals.timed)] as const;
  });
  const gone = Object.keys(before?.latencyPercent ?? {}).map((name) => [name, null] as const);
  const latencyPercent = Object.fromEntries([...gone, ...percents]);
  return {
    seconds: totals.seconds,
    requests: totals.answered,
    availabilityPercent:
      availability === undefined ? null : percentOf(totals.answered - totals.failed, totals.answered),
    latencyPercent: Object.keys(latencyPercent).length > 0 ? latencyPercent : null,
  } as RenderServiceStatus['objectives'];
}

/**
 * Rounded down: 100 is all of them. Of nothing there is no share. Whatever pods tell it is one, because with a share
 * that is none the API server would refuse the whole status.
 */
function percentOf(part: number, all: number): number | null {
  return all > 0 ? Math.floor(Math.min(1, Math.max(0, part / all)) * 100_000 + 1e-6) / 1000 : null;
}
