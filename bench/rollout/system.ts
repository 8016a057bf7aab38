/** Pods of two versions as a system of `make bench-rollout` has them. */
import type { Target } from '../lib/load.ts';
import type { Note } from '../lib/notes.ts';
import type { Side } from './sides.ts';

export interface VersionPod {
  readonly side: Side;
  readonly target: Target;
  /** All that its workers have noted so far, also when it has gone. */
  notes(): Note[];
  /** All of its containers at once, without a word. */
  kill(): Promise<void>;
  /** As kubelet ends a pod. */
  drain(): Promise<void>;
}

export interface Versions {
  title: string;
  /** Docker network of the client. */
  network: string;
  /** Whether pods of the new version can be there while nobody is sent to them. */
  hasShares: boolean;
  /** Starts a pod; it serves. */
  start(side: Side): Promise<VersionPod>;
  /** Gives the new version a share, 0 to 1, of what comes to any pod, and waits until all pods know. */
  share(share: number): Promise<void>;
  /** Requests so far that were meant for a version and that no pod of it has taken; NaN where nobody counts them. */
  fallbacks(): Promise<number>;
  /** The rollout is over: no pod is told of a share any more. */
  complete(): Promise<void>;
  /** Removes everything. */
  stop(): Promise<void>;
}
