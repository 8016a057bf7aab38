/** What pods have to do with each other. */
import { assetsOf } from '../../api/presets.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';
import type { Budget } from './budget.ts';
import { fetchedMax } from './cache.ts';

/** How pods help each other. */
export interface Pooling {
  /** Peers that a pod knows. */
  peersMax: number;
  /** Whether requests may go to workers of other pods. If not, pods ask each other only how full their queues are. */
  handsOver: boolean;
  /** Requests that peers may have of this pod at a time; 0 if none is handed over. */
  borrowedMax: number;
  /** Pods of another revision that have requests of this one at a time; 0 if none is handed over. */
  sidePodsMax: number;
  /** Files that a pod fetches from those of other revisions at a time. */
  filesMax: number;
  /** How long the key of before counts when there is another one. */
  keyOverlapMs: number;
  /** Connections to the peers' entrance. */
  connectionsMax: number;
  /** Of these, those that one address may have beside one for each request that all workers get at a time. */
  perSourceSpare: number;
}

/** A client that sticks to one pod can keep this many workers of others busy. Each is a server of HAProxy (some kB). */
const BORROWED_MAX = 32;
const SIDE_PODS_MAX = 32;

/** kubelet writes another key to all pods within two minutes; who has stolen the old one has it for so long. */
const KEY_OVERLAP_MS = 10 * 60_000;

/**
 * Of the peers' entrance, so that requests at nginx do not notice strangers there. A fleet's questions take some
 * hundred; a peer hands over what it borrows, and what waits for a worker.
 */
const CONNECTIONS_MAX = 4_096;
/**
 * And part of all connections and buffers that HAProxy has memory for: the rest is for nginx' requests, each of which
 * takes up to three connections. Who sends half a head holds a buffer.
 */
const CONNECTIONS_SHARE = 1 / 3;
/** Requests that a peer hands over because they are to stay at this revision: EACH_MAX of stickiness/actions.lua. */
const KEPT_MAX = 16;
/** Files of this revision that a peer fetches at a time. What has to wait for long goes to a worker there. */
const FILES_MAX = 64;
/** Connections that a peer has open for questions, at most. */
const QUESTION_CONNECTIONS_MAX = 64;

/** Whether pods of a defaulted spec ask each other anything. */
export function hasPeers({ pooling, readiness }: RenderServiceSpec): boolean {
  return pooling.enabled || readiness.shedWhenFull;
}

/** What pods do for each other, for a defaulted spec; undefined if they do not even look at each other. */
export function pooling(spec: RenderServiceSpec, { haproxyBuffers, haproxyFiles }: Budget): Pooling | undefined {
  if (!hasPeers(spec)) return undefined;
  const { pooling } = spec;
  return {
    peersMax: pooling.maxPeers,
    handsOver: pooling.enabled,
    borrowedMax: pooling.enabled ? BORROWED_MAX : 0,
    sidePodsMax: pooling.enabled ? Math.min(SIDE_PODS_MAX, pooling.maxPeers) : 0,
    filesMax: FILES_MAX,
    keyOverlapMs: KEY_OVERLAP_MS,
    connectionsMax: Math.min(
      CONNECTIONS_MAX,
      Math.floor(CONNECTIONS_SHARE * Math.min(haproxyFiles / 2, haproxyBuffers)),
    ),
    perSourceSpare:
      QUESTION_CONNECTIONS_MAX +
      BORROWED_MAX +
      KEPT_MAX +
      (assetsOf(spec).length > 0 ? FILES_MAX : 0) +
      fetchedMax(spec),
  };
}
