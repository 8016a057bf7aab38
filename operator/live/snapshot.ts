/** A service at one moment: what its pods tell, and what the operator, the scheduler and kubelet say of them. */
import type { RenderServiceStatus } from '../src/api/resource.ts';
import type { PodFigures } from './figures.ts';

export type PodState = 'ready' | 'not ready' | 'unscheduled' | 'leaving' | 'ended';

export interface PodNow {
  name: string;
  /** Hash of the template that it was made from. */
  revision: string;
  state: PodState;
  /** What keeps it from running, in the words of who says so, and what helps. */
  problem?: string | undefined;
  /** Why its figures are not known, where they should be. */
  silence?: string | undefined;
  figures?: PodFigures | undefined;
}

/** What the spec says, as far as it bounds something. */
export interface Bounds {
  replicas?: number | undefined;
  scaling?: { min: number; max: number } | undefined;
  queueLength: number;
  /** Requests that a worker takes at a time; undefined where each finds that by itself. */
  concurrency?: number | undefined;
  /** Pods that a pod knows at most; undefined where they do not share their work. */
  peersMax?: number | undefined;
  /** `spec.objectives.latency`: p50, p90, p95, p99 in milliseconds. */
  latencyMs: Record<string, number>;
}

export interface Snapshot {
  name: string;
  /** Of a cluster; undefined for `corelane run`. */
  namespace?: string | undefined;
  atMs: number;
  bounds: Bounds;
  status: RenderServiceStatus;
  generation?: number | undefined;
  pods: PodNow[];
  /** Pods beyond the bound of one look. */
  podsNotAsked: number;
}

/** All workers of pods that have told of them. */
export function workersOf(snapshot: Snapshot) {
  return snapshot.pods.flatMap(({ name: pod, figures }) =>
    (figures?.workers ?? []).map((worker) => ({ pod, ...worker })),
  );
}
