/**
 * Limits of the ports that only kubelet, the operator and monitoring have business with, but that the whole cluster
 * may reach.
 */
import type { RenderServiceSpec } from '../../api/spec.ts';

export interface Doors {
  health: Door;
  stats: Door;
  /** Pages with all metrics that one client, and all together, may have in so many seconds. */
  wholePages: { eachMax: number; allMax: number; seconds: number };
}

/** Limits of a port that is not for clients. Strangers are all that do not come from the pod's own node. */
export interface Door {
  /** The next one waits in the kernel's queue. */
  connectionsMax: number;
  perSecondMax: number;
  strangers: { eachMax: number; eachPerSecondMax: number; allMax: number };
}

/**
 * 8998. The node's connections wait for each other, and each for one second at most, so that as many as are accepted in
 * a second never fill the port: behind 5,000 idle ones, opened at once, a probe waits for 0.7 of its two seconds. One
 * that has sent half a request holds a buffer (model/budget.ts). If none is left, the next one waits, for a second at
 * most. A request costs some 50 us of HAProxy.
 */
const HEALTH_CONNECTIONS_MAX = 4_000;
const HEALTH_PER_SECOND_MAX = 3_000;
/** 8999. A narrow page costs some 0.5 ms of HAProxy, a whole one 4 ms [measured]. */
const STATS_CONNECTIONS_MAX = 500;
const STATS_PER_SECOND_MAX = 200;
/** Prometheus asks twice in some seconds, a person's browser once in five. */
const WHOLE_PAGES: Doors['wholePages'] = { eachMax: 5, allMax: 100, seconds: 10 };
/**
 * Beside a connection for each worker: all supervisors of a pod come from one address. Where kubelet comes from an
 * address that the entry point does not know it is a stranger.
 */
const STRANGER_SLACK = 16;

/** The limits of both ports for a defaulted spec. */
export function doors({ workersPerPod }: RenderServiceSpec): Doors {
  const each = workersPerPod + STRANGER_SLACK;
  return {
    health: {
      connectionsMax: HEALTH_CONNECTIONS_MAX,
      perSecondMax: HEALTH_PER_SECOND_MAX,
      strangers: { eachMax: each, eachPerSecondMax: 2 * each, allMax: 4 * each },
    },
    stats: {
      connectionsMax: STATS_CONNECTIONS_MAX,
      perSecondMax: STATS_PER_SECOND_MAX,
      // The operator asks for two pages of each worker that has had trouble, one after the other.
      strangers: { eachMax: STRANGER_SLACK, eachPerSecondMax: STATS_PER_SECOND_MAX, allMax: STATS_CONNECTIONS_MAX / 2 },
    },
    wholePages: WHOLE_PAGES,
  };
}
