/** Evidence against a canary, over canaries by chance: whom it stops, how soon, and whom it must not stop. */
import {
  atShare,
  type Evidence,
  evidenceSchema,
  type Look,
  looked,
  noEvidence,
  type SideFigures,
} from '../../src/rollout/evidence.ts';
import { type AnalysisPlan, figuresText, judged, weightsOf } from '../../src/rollout/judgement.ts';
import { Random } from '../support/random.ts';

const PLAN: AnalysisPlan = {
  ...{ minRequests: 300, maxWaitMs: 3_600_000, ratio: 1.5, errorFloor: 0.005, slowerThan: 1.25, isPausing: false },
};
const SHARES = [500, 2_500, 5_000];

interface World {
  /** Chance of an error, and of a slow render, by side. */
  errors: { canary: number; stable: number };
  slow?: { canary: number; stable: number };
}

const side = (requests: number, errors = 0, renders = 0, slow = 0): SideFigures => ({
  requests,
  errors,
  renders,
  slow,
});

// Looked up once: in the sandbox of a test runner every look at a global costs a microsecond.
const { floor, log, log1p } = Math;

/** How many of so many happen: from one that happens to the next. */
function binomial(random: Random, of: number, chance: number): number {
  if (chance > 0.5) return of - binomial(random, of, 1 - chance);
  if (chance === 0) return 0;
  const scale = log1p(-chance);
  let count = 0;
  for (let at = 0; ; count += 1) {
    at += 1 + floor(log(1 - random.fraction()) / scale);
    if (at > of) return count;
  }
}

/** One look: so many requests, each on a side by chance. */
function lookOf(random: Random, share: number, requests: number, { errors, slow }: World): Look {
  const ofCanary = binomial(random, requests, share / 10_000);
  const figures = (name: 'canary' | 'stable', of: number) => {
    const failed = binomial(random, of, errors[name]);
    const renders = slow ? of - failed : 0;
    return side(of, failed, renders, slow ? binomial(random, renders, slow[name]) : 0);
  };
  return { canary: figures('canary', ofCanary), stable: figures('stable', requests - ofCanary) };
}

/** A canary with all steps, looked at every few seconds. The evidence at which it was over, or nothing. */
function stopped(
  random: Random,
  world: World,
  { requests = 60, looks = 40, shares = SHARES } = {},
): Evidence | undefined {
  let evidence = noEvidence(0);
  for (const share of shares) {
    for (let look = 0; look < looks; look += 1) {
      const figures = lookOf(random, share, requests, world);
      evidence = looked(atShare(evidence, share), figures, PLAN.ratio);
      if (judged(evidence, PLAN).verdict) return evidence;
    }
  }
  return undefined;
}

const RUNS = 1_000;
/** How many of 1,000 canaries are stopped. */
const stoppedOf = (seed: number, world: World, how?: Parameters<typeof stopped>[2]) => {
  const random = new Random(seed);
  let count = 0;
  for (let run = 0; run < RUNS; run += 1) if (stopped(random, world, how)) count += 1;
  return count;
};
const both = (chance: number) => ({ canary: chance, stable: chance });

describe('a canary that is no worse: of 1,000 at most 10 are stopped, at whatever rate of errors', () => {
  test.each([
    ['none', 0],
    ['1 in 1,000', 0.001],
    ['1 in 100', 0.01],
    ['1 in 10', 0.1],
    ['half', 0.5],
    ['all', 1],
  ])('errors, and slow renders, of both sides: %s', (_what, chance) =>
    expect(stoppedOf(1, { errors: both(chance), slow: both(chance) })).toBeLessThanOrEqual(10),
  );

  test('few requests, and a look after each of them', () =>
    expect(stoppedOf(3, { errors: both(0.3), slow: both(0.3) }, { requests: 1, looks: 300 })).toBeLessThanOrEqual(10));

  test('twenty steps', () => {
    const shares = Array.from({ length: 20 }, (_unused, step) => 100 + 400 * step);
    expect(stoppedOf(4, { errors: both(0.02), slow: both(0.05) }, { shares, looks: 20 })).toBeLessThanOrEqual(10);
  });

  test('half as many again as the stable side has: one in 100 for each step, at most', () =>
    expect(stoppedOf(5, { errors: { canary: 0.045, stable: 0.03 } })).toBeLessThanOrEqual(30));

  test.each([
    [20, undefined],
    [30, 'TooManyErrors'],
  ])("fewer errors than 1 in 200 requests are nobody's matter: %d of 5,000", (errors, verdict) => {
    const evidence = looked(noEvidence(500), { canary: side(5_000, errors), stable: side(95_000) }, PLAN.ratio);
    expect(judged(evidence, PLAN).verdict).toBe(verdict);
    // Few of a step that has just begun are no rate.
    const next = looked(atShare(evidence, 2_500), { canary: side(100, 3), stable: side(300) }, PLAN.ratio);
    expect(judged(next, PLAN).verdict).toBe(verdict);
  });

  test("of clients that fail half are the canary's, at any share, however long it goes on", () => {
    const random = new Random(9);
    let count = 0;
    for (let run = 0; run < RUNS; run += 1) {
      let evidence = noEvidence(500);
      for (let look = 0; look < 120 && !judged(evidence, PLAN).verdict; look += 1) {
        const failed = binomial(random, 3, 0.5);
        const clients = { canary: { seen: 20, failed }, stable: { seen: 20, failed: 3 - failed } };
        evidence = looked(evidence, { canary: side(5), stable: side(95), clients }, PLAN.ratio);
      }
      if (judged(evidence, PLAN).verdict) count += 1;
    }
    expect(count).toBeLessThanOrEqual(10);
  });

  test('a stable side that is bad itself stops nothing', () =>
    expect(stoppedOf(7, { errors: { canary: 0.02, stable: 0.9 } })).toBe(0));
});

describe('a canary that is worse', () => {
  /** Looks of one request, until it is over: how many of its requests have failed. */
  const errorsUntil = (share: number, stable = 0, before = noEvidence(share)) => {
    const random = new Random(share);
    let evidence = before;
    const world = { errors: { canary: 1, stable } };
    while (!judged(evidence, PLAN).verdict) evidence = looked(evidence, lookOf(random, share, 40, world), PLAN.ratio);
    return evidence.canary.errors - before.canary.errors;
  };

  test('few requests, and a look after each of them: what one side alone had counts with what the other has next', () => {
    const stops = stoppedOf(8, { errors: { canary: 1, stable: 0 } }, { requests: 1, looks: 300 });
    expect(stops).toBe(RUNS);
    const alone = looked(noEvidence(500), { canary: side(1, 1, 1, 1), stable: side(0) }, PLAN.ratio);
    expect(alone).toMatchObject({ canary: side(1, 1, 1, 1), waiting: { canary: side(1, 1, 1, 1), stable: side(0) } });
    const together = looked(alone, { canary: side(0), stable: side(19) }, PLAN.ratio);
    const { logs } = looked(noEvidence(500), { canary: side(1, 1), stable: side(19) }, PLAN.ratio);
    expect(together).toMatchObject({ logs, waiting: { canary: side(0, 0, 1, 1), stable: side(0) } });
    expect(evidenceSchema.parse(together)).toEqual(together);
    // At another share chance is another one.
    expect(atShare(together, 2_500).waiting).toBeUndefined();
  });

  test.each([
    [500, 4],
    [2_500, 6],
    [5_000, 11],
  ])('all of its requests fail, at a share of %d: so many errors are enough, and one fewer is not', (share, errors) => {
    const per = 10_000 / share;
    const one: Look = { canary: side(1, 1), stable: side(per - 1) };
    let evidence = noEvidence(share);
    for (let error = 1; error < errors; error += 1) evidence = looked(evidence, one, PLAN.ratio);
    expect(judged(evidence, PLAN).verdict).toBeUndefined();
    expect(judged(looked(evidence, one, PLAN.ratio), PLAN)).toMatchObject({ verdict: 'TooManyErrors' });
  });

  test.each(SHARES)(
    'eleven clients fail, at a share of %d, and none of the other side; ten are not enough',
    (share) => {
      const nobody = { seen: 9, failed: 0 };
      const one: Look = {
        ...{ canary: side(5), stable: side(95) },
        clients: { canary: { seen: 9, failed: 1 }, stable: nobody },
      };
      let evidence = noEvidence(share);
      for (let client = 1; client < 11; client += 1) evidence = looked(evidence, one, PLAN.ratio);
      expect(judged(evidence, PLAN).verdict).toBeUndefined();
      const over = looked(evidence, one, PLAN.ratio);
      expect(judged(over, PLAN).verdict).toBe('TooManyErrors');
      expect(figuresText('TooManyErrors', over)).toBe('11 of 154 requests failed, stable 0 of 1,144');
    },
  );

  test.each(SHARES)('all of its requests fail, at a share of %d, by chance: a look after that it is over', (share) => {
    // A look has 40 requests.
    expect(errorsUntil(share)).toBeLessThanOrEqual(11 + (40 * share) / 10_000 + 8);
  });

  test('it was good for 100,000 requests, as the other side was: what was good is no excuse', () => {
    const good: Look = { canary: side(500, 1), stable: side(500, 1) };
    let evidence = noEvidence(5_000);
    for (let look = 0; look < 200; look += 1) evidence = looked(evidence, good, PLAN.ratio);
    expect(judged(evidence, PLAN).verdict).toBeUndefined();
    const now: Look = { canary: side(10, 10), stable: side(10) };
    // The rate counts, too, and this step has had many requests.
    let errors = 0;
    while (!judged(evidence, PLAN).verdict) {
      evidence = looked(evidence, now, PLAN.ratio);
      errors += 10;
    }
    expect(errors).toBeLessThanOrEqual(500);
    // At another share little of that is left.
    let next = atShare({ ...evidence, logs: { ...evidence.logs, errors: [-10, -10, -10] } }, 7_500);
    expect(weightsOf(next, PLAN).TooManyErrors).toBeCloseTo(Math.exp(-3));
    for (let look = 0; look < 15; look += 1) next = looked(next, { canary: side(6, 6), stable: side(2) }, PLAN.ratio);
    expect(judged(next, PLAN).verdict).toBe('TooManyErrors');
  });

  test('one in twenty fails, and one in 1,000 of the other side: most are stopped at the first two steps', () =>
    expect(stoppedOf(8, { errors: { canary: 0.05, stable: 0.001 } }, { shares: SHARES.slice(0, 2) })).toBeGreaterThan(
      990,
    ));

  test('three times as many slow renders: most are stopped', () =>
    expect(stoppedOf(9, { errors: both(0.001), slow: { canary: 0.15, stable: 0.04 } })).toBeGreaterThan(990));

  test('three errors of three are too few for anything', () => {
    const evidence = looked(noEvidence(100), { canary: side(3, 3), stable: side(30_000) }, PLAN.ratio);
    expect(weightsOf(evidence, PLAN).TooManyErrors).toBeGreaterThan(100);
    expect(judged(evidence, PLAN)).toMatchObject({ isEnough: false, isSuspicious: false });
    expect(judged(evidence, PLAN).verdict).toBeUndefined();
  });

  test('nothing is known of a side that had no requests', () => {
    const alone = looked(noEvidence(500), { canary: side(500, 500), stable: side(0) }, PLAN.ratio);
    expect(weightsOf(alone, PLAN).TooManyErrors).toBe(1);
    const other = looked(noEvidence(500), { canary: side(0), stable: side(500, 500) }, PLAN.ratio);
    expect(weightsOf(other, PLAN).TooManyErrors).toBe(1);
  });

  test('it is told with figures', () => {
    const evidence: Evidence = { ...noEvidence(500), canary: side(80, 12, 68, 40), stable: side(1_500, 1, 1_499, 12) };
    expect(figuresText('TooManyErrors', evidence)).toBe('12 of 80 requests failed, stable 1 of 1,500');
    expect(figuresText('TooSlow', { ...evidence, slowMs: 118.9 })).toBe(
      '40 of 68 renders took more than 119 ms, stable 12 of 1,499',
    );
  });
});

test('enough is what a step has had, and renders whose time was judged', () => {
  let evidence = atShare(
    looked(noEvidence(500), { canary: side(300, 0, 300), stable: side(6_000, 0, 6_000) }, 1.5),
    500,
  );
  expect(judged(evidence, PLAN).isEnough).toBe(true);
  evidence = atShare(evidence, 2_500);
  expect(judged(evidence, PLAN).isEnough).toBe(false);
  evidence = looked(evidence, { canary: side(300), stable: side(900) }, 1.5);
  expect(judged(evidence, PLAN).isEnough).toBe(false);
  expect(judged(evidence, { ...PLAN, slowerThan: undefined }).isEnough).toBe(true);
  expect(judged(evidence, { ...PLAN, minRequests: 0 }).isEnough).toBe(true);
  expect(judged(evidence, undefined).isEnough).toBe(true);
});

test('whatever is counted can be remembered, and read again', () => {
  const most = Number.MAX_SAFE_INTEGER;
  let evidence = noEvidence(5_000);
  for (const look of [
    { canary: side(most, most, most, most), stable: side(most, 0, most, 0) },
    { canary: side(most, 0, most, 0), stable: side(most, most, most, most) },
    { canary: side(1, 1), stable: side(most) },
  ])
    evidence = looked(evidence, look, 1.5);
  const text = JSON.stringify(evidence);
  expect(evidenceSchema.parse(JSON.parse(text))).toEqual(evidence);
  expect(text.length).toBeLessThan(700);
});
