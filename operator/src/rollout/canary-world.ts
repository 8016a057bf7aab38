/** What a canary is decided from, and what comes of it. */
import type { Facts } from './canary-facts.ts';
import { type AbortReason, type CanaryState, WHOLE_SHARE } from './canary-state.ts';
import type { Evidence } from './evidence.ts';
import type { AnalysisPlan } from './judgement.ts';
import type { Next, Phase, Revision, Wanted } from './next-replicas.ts';

/** How long pods take a share for theirs while nobody confirms it; then it is nothing. */
export const LEASE_MS = 600_000;
/** How long too few pods of a canary may be available. */
export const DOWN_MS = 60_000;
/** How old what is remembered of the evidence may be: each write of it is one of the Deployment. */
export const SAVED_MS = 15_000;

/** A revision, and what is remembered of it as a canary. */
export interface CanaryRevision extends Revision {
  /** 'lost': nobody can read it. */
  state?: CanaryState | 'lost' | undefined;
  /** Pods that exist. */
  pods: number;
  /** Whether none of its pods is in the Service. */
  isOut: boolean;
}

/** One that is a canary, or has been. */
export type Remembered = CanaryRevision & { state: CanaryState };

export function hasState(one: CanaryRevision): one is Remembered {
  return one.state !== undefined && one.state !== 'lost';
}

/** The revision alone. */
export function bare({ state: _state, pods: _pods, isOut: _isOut, ...revision }: CanaryRevision): Revision {
  return revision;
}

export interface CanaryWanted extends Wanted {
  /** Undefined: without steps. */
  canary?: CanaryPlan | undefined;
  /** Whether it is the operator that wants other pods, and not the user. */
  isTurn: boolean;
}

export interface CanaryPlan {
  /** Shares in hundredths of a percent, each larger than the one before. */
  steps: { share: number; forMs: number; approval: boolean }[];
  minReplicas: number;
  /** By what it is judged; undefined: by nothing. */
  analysis?: AnalysisPlan | undefined;
}

/** Somebody may have taken the steps out in the middle of them: then there are none left. */
export function planOf({ canary }: CanaryWanted): CanaryPlan {
  return canary ?? { steps: [], minReplicas: 1 };
}

/** Pods of a canary with this share, where `wanted.replicas` serve everything. */
export function canarySize(share: number, wanted: CanaryWanted): number {
  const { replicas } = wanted;
  return Math.min(replicas, Math.max(planOf(wanted).minReplicas, Math.ceil((replicas * share) / WHOLE_SHARE)));
}

/** What each pod is told. */
export interface Shares {
  revision: string;
  stable: string;
  share: number;
}

/** What pods were told, and until when they believe it. */
export type ToldShares = Shares & { untilMs: number };

/** What pods that are ready have said of what they were told. */
export interface Acks {
  pods: number;
  /** Of these, those that have it; that do not tell; whose data plane can do it. */
  have: number;
  silent: number;
  knowing: number;
}

export function allHave({ pods, have }: Acks): boolean {
  return pods > 0 && have === pods;
}

/** What pods tell of the requests of a canary. */
export interface Watched {
  evidence: Evidence;
  /** Pods that are ready, and of these those that do not tell. */
  pods: number;
  silent: number;
}

export interface CanaryWorld {
  facts: Facts;
  nowMs: number;
  /** Time without progress after which something is wrong. */
  deadlineMs: number;
  /** What the file with the live settings says, and until when pods believe it. */
  told?: ToldShares | undefined;
  /** Asked once it is known what they are to be told. */
  acksOf: (shares: Shares | undefined, resting: string | undefined) => Acks;
  /** Of a try of a revision, if somebody has looked at it. */
  watchedOf?: ((revision: string, attempt: number) => Watched | undefined) | undefined;
}

export type CanaryReason =
  | 'Settling' // of several revisions that serve all but one go first
  | 'StartingPods'
  | 'TellingPods'
  | 'PodsUnreachable'
  | 'DataPlaneTooOld'
  | 'Counting'
  | 'AwaitingApproval'
  | 'Analysing' // its time is over, and it is not known yet whether it is no worse
  | 'TooFewRequests'
  | 'Inconclusive'
  | 'UserPaused'
  | 'ScaledToZero'
  | 'NoProgress'
  | 'Promoted'
  | AbortReason;

export type RolloutPhase = Phase | 'Preparing' | 'Stepping' | 'Promoting' | 'Aborting' | 'Aborted';

/** What is said of a canary. */
export interface CanaryView {
  revision: string;
  stable: string;
  attempt: number;
  /** 0 before the first one. */
  step: number;
  steps: number;
  share: number;
  sinceMs: number;
  /** When the time of its step is over. */
  untilMs?: number;
  /** What is remembered of the evidence. */
  evidence?: Evidence | undefined;
  reason: CanaryReason;
  message: string;
}

export interface RolloutNext extends Omit<Next, 'phase'> {
  phase: RolloutPhase;
  /** What each revision is to remember. */
  states: Map<string, CanaryState>;
  /** What each pod is to be told. */
  shares?: Shares | undefined;
  canary?: CanaryView | undefined;
}

/** The revision whose pods live on without getting requests. */
export function restingOf(revisions: Revision[]): string | undefined {
  return revisions.find(({ retiredMs, wasComplete, canRest }) => retiredMs !== undefined && wasComplete && canRest)?.id;
}
