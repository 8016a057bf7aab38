/** How a service stands with the data plane of this operator: for its turn, and for its status. */
import { type ConditionDraft, dataPlaneCurrent } from '../api/conditions.ts';
import type { RenderService, RenderServiceResource } from '../api/resource.ts';
import type { PodsChange } from '../plan/index.ts';
import type { Standing } from '../turns/turns.ts';

/** What has been done about its pods. */
export interface PodsNow {
  renderService: RenderService;
  change: PodsChange;
  /** When they were renewed by a turn, as the Deployment remembers it. */
  renewed: string | undefined;
  /** Whether `rollout.paused` holds them where they are. */
  isHeld: boolean;
  /** Whether a canary is under way, or was aborted: other pods would be another change. */
  hasCanary: boolean;
}

export interface Found {
  standing: Omit<Standing, 'key'>;
  condition: ConditionDraft;
}

/**
 * A turn that has taken longer has failed, whatever may still become of it: pods that are ready every other minute make
 * progress for ever, and nobody else's turn would come, without a word.
 */
const TURN_MS_MAX = 1_800_000;

interface Circumstances {
  pauseMs: number;
  nowMs: number;
  /** Asked where it matters only: it looks at all services. */
  whyNot: () => { heldBy?: string; obstacle?: string };
  proxyEnds: boolean;
}

/**
 * @param drafts the other conditions of now
 * @param circumstances `whyNot`: why its turn does not come, but for the order; `proxyEnds`: whether a proxy of its
 *   pods ends again and again
 */
export function standingOf(
  { status }: Pick<RenderServiceResource, 'status'>,
  { renderService, change, renewed, isHeld, hasCanary }: PodsNow,
  drafts: ConditionDraft[],
  circumstances: Circumstances,
): Found {
  const { pauseMs, nowMs, proxyEnds } = circumstances;
  const is = (type: string, value: string) => drafts.some((one) => one.type === type && one.status === value);
  // Between two ends a pod may be ready, and a Deployment takes that for progress: it would never be Stalled.
  const endsAgain = proxyEnds || is('WorkersHealthy', 'False');
  const isHealthy = is('Ready', 'True') && !endsAgain;
  const wasRenewed = renewed !== undefined;
  const standing = { isWaiting: false, isHealthy, wasRenewed, hadTurn: false, hasFailed: false };
  if (change === 'kept') {
    // Nobody waits for it.
    if (renderService.spec.rollout.paused) return { standing, condition: dataPlaneCurrent.paused() };
    if (renderService.spec.rollout.dataPlane === 'WithNextChange')
      return { standing, condition: dataPlaneCurrent.withNextChange() };
    if (hasCanary)
      return { standing, condition: dataPlaneCurrent.waiting({ obstacle: 'a canary comes first', isIll: false }) };
    const waiting = { ...standing, isWaiting: true };
    const isIll = !isHealthy && !wasRenewed;
    return { standing: waiting, condition: dataPlaneCurrent.waiting({ ...circumstances.whyNot(), isIll }) };
  }
  if (!wasRenewed) return { standing, condition: dataPlaneCurrent.yes() };
  // Whoever pauses one service holds no others; but pods that have come and are ill do.
  const isIll = is('Stalled', 'True') || endsAgain;
  if (isHeld && !isIll) return { standing, condition: dataPlaneCurrent.pausedAmid() };
  const isLate = nowMs - Date.parse(renewed) > TURN_MS_MAX + pauseMs;
  const hasFailed = isIll || isLate;
  const found = { ...standing, hadTurn: true, hasFailed };
  return afterTurn(found, healthySince({ status }, renewed), isLate, { pauseMs, nowMs });
}

/** Since when status says that its pods are those of this operator; `earlier` if that was about others. */
function healthySince({ status }: Pick<RenderServiceResource, 'status'>, renewed: string) {
  const before = status?.conditions?.find(({ type }) => type === 'DataPlaneCurrent');
  if (before?.status !== 'True') return undefined;
  const sinceMs = Date.parse(before.lastTransitionTime);
  return sinceMs >= Date.parse(renewed) ? sinceMs : 'earlier';
}

function afterTurn(
  standing: Found['standing'],
  since: number | 'earlier' | undefined,
  isLate: boolean,
  { pauseMs, nowMs }: { pauseMs: number; nowMs: number },
): Found {
  const isOver = typeof since === 'number' && nowMs - since >= pauseMs;
  // A status that speaks of earlier pods has to say False once, so that its time becomes that of these.
  if (isOver || (standing.isHealthy && since !== 'earlier')) {
    const healthySinceMs = typeof since === 'number' ? since : nowMs;
    // Late and healthy it has to stay so for the pause, as all have, before others go on.
    const hasFailed = isLate && !isOver;
    return { standing: { ...standing, hasFailed, healthySinceMs }, condition: dataPlaneCurrent.yes() };
  }
  return { standing, condition: standing.hasFailed ? dataPlaneCurrent.failed() : dataPlaneCurrent.rolling() };
}
