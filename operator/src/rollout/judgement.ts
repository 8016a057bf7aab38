/** What evidence says of a canary: that it is worse, that it may be, or that too little is known. */
import { type Evidence, inStep, weight } from './evidence.ts';

export interface AnalysisPlan {
  /** Of the canary, in each step. 0: a step needs none. */
  minRequests: number;
  /** How long a step waits for them, or for what is not clear, before somebody has to decide. */
  maxWaitMs: number;
  /** How many times as many errors as the stable side has are tolerated. */
  ratio: number;
  /** Share of its requests that must have failed before the canary is too bad. */
  errorFloor: number;
  /** How many times as long as usual is slow; undefined: nobody looks at it. */
  slowerThan: number | undefined;
  /** Whether somebody has to decide where it is worse; else it is over. */
  isPausing: boolean;
}

/** What is wrong with it. */
const VERDICTS = ['TooManyErrors', 'TooSlow'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** By chance it comes to that once in 100 canaries at most. */
const CLEAR = 100;
/** Once in ten. It goes on when more is known. */
const SUSPICIOUS = 10;
/** Fewer may be one person, or one page. */
const EVENTS_MIN = 4;
/** Fewer slow renders nobody notices. */
const SLOW_FLOOR = 0.02;
/** Of the requests that a step needs, so many renders whose time was judged: those of cold workers are not. */
const RENDERS_PART = 3;

export interface Judgement {
  /** It is clearly worse. */
  verdict?: Verdict | undefined;
  /** It is not clear that it is no worse. */
  isSuspicious: boolean;
  /** Whether this step has told enough of it. */
  isEnough: boolean;
}

/** Of now. Nothing is against whom nobody judges. */
export function judged(evidence: Evidence, plan: AnalysisPlan | undefined): Judgement {
  if (!plan) return { isSuspicious: false, isEnough: true };
  const step = inStep(evidence);
  const weights = weightsOf(evidence, plan);
  const all = [evidence.canary, step];
  const isAgainst = {
    TooManyErrors: all.some(({ errors, requests }) => isMany(errors, requests, plan.errorFloor)),
    TooSlow: all.some(({ slow, renders }) => isMany(slow, renders, SLOW_FLOOR)),
  };
  const worst = (limit: number) => VERDICTS.find((one) => isAgainst[one] && weights[one] >= limit);
  const verdict = worst(CLEAR);
  const isTimed = plan.slowerThan === undefined || step.renders >= plan.minRequests / RENDERS_PART;
  return {
    ...(verdict && { verdict }),
    isSuspicious: worst(SUSPICIOUS) !== undefined,
    isEnough: step.requests >= plan.minRequests && isTimed,
  };
}

/** How much is against it, by what: 1 is even, and 100 is clear. */
export function weightsOf(
  { logs }: Evidence,
  { slowerThan }: Pick<AnalysisPlan, 'slowerThan'>,
): Record<Verdict, number> {
  return { TooManyErrors: weight(logs.errors), TooSlow: slowerThan === undefined ? 1 : weight(logs.slow) };
}

/** In all, or in this step: one that was good for long may be bad now. */
function isMany(events: number, of: number, floor: number): boolean {
  return events >= EVENTS_MIN && events >= floor * of;
}

/** "12 of 80 requests failed, stable 1 of 1,500". */
export function figuresText(verdict: Verdict, { canary, stable, slowMs }: Evidence): string {
  const of = (what: number, all: number) => `${number(what)} of ${number(all)}`;
  if (verdict === 'TooManyErrors')
    return `${of(canary.errors, canary.requests)} requests failed, stable ${of(stable.errors, stable.requests)}`;
  const long = slowMs === undefined ? 'too long' : `more than ${number(Math.round(slowMs))} ms`;
  return `${of(canary.slow, canary.renders)} renders took ${long}, stable ${of(stable.slow, stable.renders)}`;
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}
