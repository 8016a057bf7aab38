/** Events about a canary: when it begins, gets another share, waits for somebody, and ends. */
import type { EventDraft } from '../kube/events.ts';
import type { RolloutStatus } from './rollout-status.ts';

/** Ends that somebody has asked for by asking for another revision. */
const ASKED_FOR = ['Reverted', 'SupersededBy'];

/** By the reason: somebody has to decide. */
const ASKS: Record<string, string> = {
  AwaitingApproval: 'CanaryAwaitsApproval',
  TooFewRequests: 'CanaryTooFewRequests',
  Inconclusive: 'CanaryInconclusive',
  TooManyErrors: 'CanaryFailing',
  TooSlow: 'CanaryFailing',
};

/** What has changed that somebody may want to know; one at most. */
export function rolloutEvent(before: RolloutStatus | undefined, after: RolloutStatus): EventDraft | undefined {
  const { canary } = after;
  const was = before?.canary;
  const isOther = canary?.revision !== was?.revision || canary?.attempt !== was?.attempt;
  if (!canary) return was && promotedEvent(before, after);
  const isNews = isOther || before?.phase !== after.phase || before?.reason !== after.reason;
  if (after.phase === 'Aborting') return isNews ? endEvent(after) : undefined;
  if (after.phase === 'Aborted') return undefined; // Stalled has told it
  if (isOther) return told('CanaryStarted', after);
  if (after.reason !== undefined && after.reason in ASKS) return isNews ? askingEvent(after) : undefined;
  if (canary.share > (was?.share ?? 0)) return told('CanaryShare', after);
  return undefined;
}

function promotedEvent(before: RolloutStatus | undefined, after: RolloutStatus): EventDraft | undefined {
  const isPromoted = before?.phase === 'Promoting' && after.revision === before.canary?.revision;
  if (!isPromoted) return undefined;
  const note = `canary ${after.revision} gets everything, and is the stable revision now`;
  return { type: 'Normal', reason: 'CanaryPromoted', action: 'Rollout', note };
}

function askingEvent(after: RolloutStatus): EventDraft {
  const { reason = '' } = after;
  return told(ASKS[reason] ?? '', after, reason === 'AwaitingApproval' ? 'Normal' : 'Warning');
}

function endEvent({ reason = '', message = '' }: RolloutStatus): EventDraft {
  const isAskedFor = ASKED_FOR.includes(reason);
  return {
    type: isAskedFor ? 'Normal' : 'Warning',
    reason: isAskedFor ? 'CanaryEnded' : 'CanaryAborted',
    action: 'Rollout',
    note: message,
  };
}

function told(
  reason: string,
  { canary, message = '' }: RolloutStatus,
  type: EventDraft['type'] = 'Normal',
): EventDraft {
  return { type, reason, action: 'Rollout', note: `canary ${canary?.revision}: ${message}` };
}
