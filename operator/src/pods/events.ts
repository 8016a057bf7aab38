/** Events about workers: that they were stuck, as their supervisors have noted, and that renders wait in them. */
import type { ConditionDraft } from '../api/conditions.ts';
import type { EventDraft } from '../kube/events.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Stall } from './sample.ts';

/** Of one pod and one round; a render that is always stuck would make one every few seconds in every worker. */
const EVENTS_MAX = 5;
const PLACE_LENGTH_MAX = 512;

/** E.g. "worker-2 of storefront-abc stuck 10 s in renderPrice /app/price.js:41". */
export function stuckWorkerEvents({ metadata }: KubeObject, stalls: Stall[]): EventDraft[] {
  const more = stalls.length - EVENTS_MAX;
  return stalls.slice(-EVENTS_MAX).map(({ worker, seconds, in: place }, index) => {
    const what = `${worker} of ${metadata.name} stuck ${Math.round(seconds)} s in ${printable(place)}`;
    const note = index === 0 && more > 0 ? `${what} (and ${more} more since the last look)` : what;
    return { type: 'Warning', reason: 'WorkerStuck', action: 'RestartWorker', note };
  });
}

/** A pod refuses requests whose URL has got several of its workers stuck. */
export function poisonEvent({ metadata }: KubeObject, refused: number): EventDraft {
  const note = `${metadata.name} has refused ${refused} requests (503 poison) for a URL that has got its workers stuck; nginx' access log of the pod says which ("error":"poison")`;
  return { type: 'Warning', reason: 'URLQuarantined', action: 'RefuseRequests', note };
}

/** Tells of a fixed `concurrency` that is too small, unless the condition says so already. */
export function concurrencyEvent(
  before: ConditionDraft[] | undefined,
  drafts: ConditionDraft[],
): EventDraft | undefined {
  const tooSmall = (conditions: ConditionDraft[] | undefined) =>
    conditions?.find(({ type, status }) => type === 'ConcurrencyTuned' && status === 'False');
  const next = tooSmall(drafts);
  if (!next || tooSmall(before)?.message === next.message) return undefined;
  return { type: 'Warning', reason: next.reason, action: 'Observe', note: next.message };
}

/** The text comes from the user's process. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, PLACE_LENGTH_MAX);
}
