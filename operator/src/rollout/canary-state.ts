/**
 * What a canary's own Deployment remembers of it, as one annotation: so that it is written at once with what goes with
 * it, and an operator that is killed anywhere finds it as it was. All else is what there is: revisions and their pods.
 */
import { z } from 'zod';
import { evidenceSchema } from './evidence.ts';

/** Tries of one revision; what comes behind is the last one once more. */
export const ATTEMPTS_MAX = 1_000_000;
/** Everything, in hundredths of a percent. */
export const WHOLE_SHARE = 10_000;

const CANARY_PHASES = [
  'Preparing', // its pods start, nobody is sent to them
  'Stepping', // it gets a share
  'Promoting', // it gets as large as the stable revision, and then everything
  'Retiring', // it gets everything, and pods of the stable revision leave the Service
  'Aborting', // it gets nothing, and not all pods know that yet
  'Aborted', // it has no pods any more
  'Over', // it has been tried, and something else was asked for
] as const;

/** Why it has come to nothing. */
const ABORT_REASONS = [
  'AbortAsked',
  'NeverReady',
  'CanaryUnavailable',
  'TooManyErrors',
  'TooSlow',
  'StatusLost',
  'Reverted',
  'SupersededBy',
] as const;
export type AbortReason = (typeof ABORT_REASONS)[number];

const share = z.int().min(0).max(WHOLE_SHARE);
const time = z.int().min(0).max(Number.MAX_SAFE_INTEGER);

const canaryState = z.object({
  phase: z.enum(CANARY_PHASES),
  /** The first is 1. */
  attempt: z.int().min(1).max(ATTEMPTS_MAX),
  /** The revision that has the rest. */
  stable: z.string().max(63),
  /** Share of the step that it is at, or goes to. */
  target: share,
  /** Share that it is to have now. */
  share,
  /** Since when it is in this phase, step and share. */
  sinceMs: time,
  /** Time that has counted, up to when it last stood still. */
  countedMs: time,
  /** Since when it counts; undefined while it stands still. */
  countsSinceMs: time.optional(),
  /** Pods that were available when it got its share. */
  reached: z.int().min(0).max(10_000),
  /** Since when too few of these are. */
  downSinceMs: time.optional(),
  why: z.enum(ABORT_REASONS).optional(),
  /** What it is judged by, as it was when it was written down last. */
  evidence: evidenceSchema.optional(),
  savedMs: time.optional(),
});
export type CanaryState = z.output<typeof canaryState>;

/** @returns 'lost' where there is something that nobody can read */
export function readCanaryState(text: string | undefined): CanaryState | 'lost' | undefined {
  if (text === undefined) return undefined;
  try {
    return canaryState.parse(JSON.parse(text));
  } catch {
    return 'lost';
  }
}

/** As an annotation. */
export function canaryStateText(state: CanaryState): string {
  return JSON.stringify(state);
}

/** Whether there is something to be done for it, or to be undone. */
export function isActive({ phase }: CanaryState): boolean {
  return phase !== 'Aborted' && phase !== 'Over';
}
