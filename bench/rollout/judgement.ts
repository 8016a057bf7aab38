/**
 * Canaries by chance, judged as the operator judges them: how many are stopped that are no worse, and how many errors
 * one makes that is entirely broken. Computes only.
 */
import { createRandom, type Random } from '../lib/random.ts';
import { summarize } from '../lib/stats.ts';
import type { Side } from './sides.ts';

/** What became of the requests of a side, of one look. */
export interface Figures {
  requests: number;
  errors: number;
  renders: number;
  slow: number;
}
export type Look = Record<Side, Figures>;

/** Evidence of one canary. */
export interface Case {
  /** @param share of the step, in hundredths of a percent */
  look(share: number, figures: Look): void;
  isStopped(): boolean;
}

export interface JudgementResult {
  runs: number;
  seed: number;
  /** Stopped of those that were as good as the version before. */
  falseAborts: number;
  /** By the chance of an error of either side, of as many runs each. */
  byErrorRate: { errorRate: number; runs: number; falseAborts: number }[];
  /** Errors that an entirely broken version makes until it is stopped. */
  errorsToAbort: { sharePercent: number; median: number; max: number }[];
}

const SHARES = [500, 2_500, 5_000];
/** A look every five seconds, for five minutes a step, twelve requests a second. */
const LOOKS_PER_STEP = 60;
const REQUESTS_PER_LOOK = 60;
/** Of both sides. */
const ERROR_RATES = [0, 0.001, 0.01, 0.1, 0.5];
const SLOW_RATE = 0.05;
/** Broken ones are looked at as soon as so many requests have come, so that errors are counted and not looks. */
const REQUESTS_PER_SHORT_LOOK = 10;
const BROKEN_SHARES = [5_000, 500];
/** Nobody lets one go on for as long. */
const LOOKS_MAX = 10_000;

function side(random: Random, of: number, errorRate: number): Figures {
  const errors = times(random, of, errorRate);
  const renders = of - errors;
  return { requests: of, errors, renders, slow: times(random, renders, SLOW_RATE) };
}

function times(random: Random, of: number, chance: number): number {
  let count = 0;
  for (let n = 0; n < of; n += 1) if (random() < chance) count += 1;
  return count;
}

/** Each request is on a side by chance. */
function look(random: Random, share: number, requests: number, errorRates: Record<Side, number>): Look {
  const ofCanary = times(random, requests, share / 10_000);
  return {
    canary: side(random, ofCanary, errorRates.canary),
    stable: side(random, requests - ofCanary, errorRates.stable),
  };
}

function isStoppedFalsely(random: Random, begin: () => Case, errorRate: number): boolean {
  const canary = begin();
  for (const share of SHARES)
    for (let n = 0; n < LOOKS_PER_STEP; n += 1) {
      canary.look(share, look(random, share, REQUESTS_PER_LOOK, { canary: errorRate, stable: errorRate }));
      if (canary.isStopped()) return true;
    }
  return false;
}

/** One that fails always, beside one that never does. */
function errorsUntilStopped(random: Random, begin: () => Case, share: number): number {
  const canary = begin();
  let errors = 0;
  for (let n = 0; n < LOOKS_MAX; n += 1) {
    const figures = look(random, share, REQUESTS_PER_SHORT_LOOK, { canary: 1, stable: 0 });
    errors += figures.canary.errors;
    canary.look(share, figures);
    if (canary.isStopped()) return errors;
  }
  return Number.POSITIVE_INFINITY;
}

/** @param begin evidence of a new canary */
export function judgeMany(begin: () => Case, runs: number, seed: number): JudgementResult {
  const random = createRandom(seed);
  const byErrorRate = ERROR_RATES.map((errorRate) => ({ errorRate, runs: 0, falseAborts: 0 }));
  for (let run = 0; run < runs; run += 1) {
    const one = byErrorRate[run % byErrorRate.length] as (typeof byErrorRate)[number];
    one.runs += 1;
    if (isStoppedFalsely(random, begin, one.errorRate)) one.falseAborts += 1;
  }
  const errorsToAbort = BROKEN_SHARES.map((share) => {
    const errors = Array.from({ length: runs }, () => errorsUntilStopped(random, begin, share));
    const { p50, max } = summarize(errors);
    return { sharePercent: share / 100, median: p50, max };
  });
  const falseAborts = byErrorRate.reduce((sum, one) => sum + one.falseAborts, 0);
  return { runs, seed, falseAborts, byErrorRate, errorsToAbort };
}
