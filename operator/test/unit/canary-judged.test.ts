/** A canary that is judged, in every world: by what becomes of its requests, and what an operator remembers of it. */
import { type CanaryState, canaryStateText, readCanaryState } from '../../src/rollout/canary-state.ts';
import { type CanaryPlan, type RolloutNext, SAVED_MS } from '../../src/rollout/canary-world.ts';
import { noEvidence } from '../../src/rollout/evidence.ts';
import type { AnalysisPlan } from '../../src/rollout/judgement.ts';
import { A, ANALYSIS, B, type CanaryCluster, running, type Traffic, wants } from '../support/canary-cluster.ts';
import { Random } from '../support/random.ts';

const MINUTE = 60_000;
const STEPS: CanaryPlan['steps'] = [
  { share: 500, forMs: MINUTE, approval: false },
  { share: 2_500, forMs: MINUTE, approval: false },
  { share: 5_000, forMs: MINUTE, approval: false },
];
const plan = (analysis: Partial<AnalysisPlan> = {}, steps = STEPS): CanaryPlan => ({
  ...{ steps, minReplicas: 1, analysis: { ...ANALYSIS, ...analysis } },
});
const judging = (analysis: Partial<AnalysisPlan> = {}, steps = STEPS) => wants(B, 4, { canary: plan(analysis, steps) });
const waits = (reason: string) => (next: RolloutNext) => next.canary?.reason === reason;
const ended = ({ phase }: RolloutNext) => phase === 'Aborted' || phase === 'Complete';
const LOOK_MS = 2_000;

function served(traffic: Traffic): CanaryCluster {
  const cluster = running();
  cluster.traffic = traffic;
  return cluster;
}
const stateOf = (cluster: CanaryCluster) => cluster.all.find(({ id }) => id === B)?.state as CanaryState;

test('no worse than the other side: all steps, each with as many requests as it needs', () => {
  const cluster = served({
    perSecond: 20,
    errors: { canary: 0.01, stable: 0.01 },
    slow: { canary: 0.05, stable: 0.05 },
  });
  const requests: number[] = [];
  const next = cluster.run(
    judging(),
    (now) => {
      const { requests: all = 0 } = stateOf(cluster)?.evidence?.canary ?? {};
      if (cluster.shares.length > requests.length) requests.push(all);
      return ended(now);
    },
    LOOK_MS,
  );
  expect(next.phase).toBe('Complete');
  expect(cluster.shares).toEqual(['b0', 'b5', 'b25', 'b50', 'b100', '-']);
  // Of 20 requests a second one is the canary's at first: its minute is long over when there are 300.
  expect(requests[2]).toBeGreaterThanOrEqual(300);
  expect((requests[3] as number) - (requests[2] as number)).toBeGreaterThanOrEqual(300);
  expect(cluster.wrong).toEqual([]);
});

test.each([
  [500, 4],
  [2_500, 6],
  [5_000, 11],
])('all of its requests fail at %d: it is over within a look after %d of them', (share, errors) => {
  const cluster = served({ perSecond: 20, errors: { canary: 1 } });
  const next = cluster.run(judging({}, [{ share, forMs: 60 * MINUTE, approval: false }]), ended, LOOK_MS);
  expect(next).toMatchObject({ phase: 'Aborted', canary: { reason: 'TooManyErrors' } });
  const { canary, stable } = stateOf(cluster).evidence ?? noEvidence(0);
  const perLook = (20 * LOOK_MS * share) / 10_000 / 1_000;
  expect(canary.errors).toBeLessThan(errors + perLook);
  expect(next.canary?.message).toContain(
    `${canary.errors} of ${canary.requests} requests failed, stable 0 of ${stable.requests}; stable serves with 4 of 4`,
  );
  expect(cluster.shares).toEqual(['b0', `b${share / 100}`, 'b0', ...(cluster.shares.at(-1) === '-' ? ['-'] : [])]);
  expect(cluster.wrong).toEqual([]);
});

test('more of its renders are slow: over, with figures; where nobody looks at times it goes on', () => {
  const traffic = { perSecond: 50, slow: { canary: 0.3, stable: 0.02 } };
  const next = served(traffic).run(judging(), ended, LOOK_MS);
  expect(next).toMatchObject({ phase: 'Aborted', canary: { reason: 'TooSlow' } });
  expect(next.canary?.message).toMatch(/canary b{10}: \d+ of \d+ renders took too long, stable \d+ of [\d,]+; /);
  expect(served(traffic).run(judging({ slowerThan: undefined }), ended, LOOK_MS).phase).toBe('Complete');
});

test('it fails under traffic only: it begins well, and is over when people come', () => {
  const cluster = served({ perSecond: 10 });
  cluster.run(judging(), (next) => next.canary?.share === 2_500, LOOK_MS);
  cluster.traffic = { perSecond: 100, errors: { canary: 0.3, stable: 0.001 } };
  const since = cluster.now;
  expect(cluster.run(judging(), ended, LOOK_MS).canary?.reason).toBe('TooManyErrors');
  expect(cluster.now - since).toBeLessThan(MINUTE);
});

test('a stable side that is bad itself does not hold the cure', () => {
  const cluster = served({ perSecond: 20, errors: { canary: 0.01, stable: 0.6 }, slow: { stable: 0.5 } });
  expect(cluster.run(judging(), ended, LOOK_MS).phase).toBe('Complete');
});

describe('too few requests', () => {
  const few = () => served({ perSecond: 0.02 });

  test('it waits, and then asks a person: never a failure', () => {
    const cluster = few();
    cluster.run(judging(), waits('Analysing'), MINUTE);
    const said = cluster.next(judging());
    expect(said).toMatchObject({ phase: 'Stepping', canary: { step: 1, share: 500 } });
    expect(said.canary?.message).toContain('of fewer than 300 of its requests it is known what came of them');
    const since = cluster.now;
    const asked = cluster.run(judging(), waits('TooFewRequests'), MINUTE);
    expect(cluster.now - since).toBeGreaterThanOrEqual(58 * MINUTE);
    expect(asked).toMatchObject({ phase: 'Paused', canary: { step: 1, share: 500 } });
    expect(asked.canary?.message).toContain(`corelane.dev/rollout-promote: ${B}:1`);
    cluster.run(judging(), () => cluster.now - since > 6 * 60 * MINUTE, MINUTE);
    expect(cluster.next(judging()).phase).toBe('Paused');
  });

  test('a person lets it go on, and each step anew', () => {
    const cluster = few();
    cluster.run(judging(), waits('TooFewRequests'), MINUTE);
    cluster.fact({ promote: `${B}:1` });
    const next = cluster.run(judging(), waits('TooFewRequests'), MINUTE);
    expect(next.canary).toMatchObject({ step: 2, share: 2_500 });
    cluster.fact({ promote: B });
    expect(cluster.run(judging(), ended, MINUTE).phase).toBe('Complete');
  });

  test('it goes on by itself when they come', () => {
    const cluster = few();
    cluster.run(judging(), waits('TooFewRequests'), MINUTE);
    cluster.traffic = { perSecond: 100 };
    expect(cluster.run(judging(), ended, LOOK_MS).phase).toBe('Complete');
  });

  test('where none are needed time is enough; where nobody judges, too', () => {
    expect(few().run(judging({ minRequests: 0 }), ended, MINUTE).phase).toBe('Complete');
    const unjudged = wants(B, 4, { canary: { ...plan(), analysis: undefined } });
    expect(few().run(unjudged, ended, MINUTE).phase).toBe('Complete');
  });

  test('pods that do not tell are told of', () => {
    const cluster = served({ perSecond: 100, errors: { canary: 1 } });
    cluster.silent = 2;
    const next = cluster.run(judging(), waits('TooFewRequests'), MINUTE);
    expect(next.canary?.message).toContain('(2 of 2 pods do not tell: does a NetworkPolicy forbid it?)');
  });

  test('a time to wait that is shorter than the step changes nothing of it', () => {
    const cluster = few();
    cluster.run(judging({ maxWaitMs: 0 }), waits('Counting'), LOOK_MS);
    const since = cluster.now;
    expect(cluster.run(judging({ maxWaitMs: 0 }), waits('TooFewRequests'), LOOK_MS).phase).toBe('Paused');
    expect(cluster.now - since).toBeGreaterThanOrEqual(MINUTE - LOOK_MS);
  });
});

test('what may be worse waits until it is clear, and then asks a person', () => {
  const cluster = served({ perSecond: 100 });
  cluster.run(judging(), waits('Counting'), LOOK_MS);
  const suspicious = {
    ...noEvidence(500),
    canary: { ...noEvidence(0).canary, requests: 900, errors: 12, renders: 800 },
  };
  const logs = { errors: [3, 3, 3], slow: [0, 0, 0] };
  const hold = () => {
    if (cluster.watch) cluster.watch.evidence = { ...suspicious, logs };
    cluster.traffic = undefined;
  };
  hold();
  cluster.run(judging(), waits('Analysing'), LOOK_MS);
  const next = cluster.run(judging(), waits('Inconclusive'), MINUTE);
  expect(next).toMatchObject({ phase: 'Paused', canary: { step: 1 } });
  expect(next.canary?.message).toContain('it may be worse than the stable revision');
});

describe('a person decides where it is worse', () => {
  const pausing = judging({ isPausing: true });
  const worse = () => served({ perSecond: 100, errors: { canary: 0.2 } });

  test('at once, and the share stays', () => {
    const cluster = worse();
    const next = cluster.run(pausing, waits('TooManyErrors'), LOOK_MS);
    expect(next).toMatchObject({ phase: 'Paused', canary: { step: 1, share: 500 } });
    expect(next.canary?.message).toContain('requests failed, stable 0 of');
    cluster.run(pausing, () => cluster.now > 1_000_000_000 + 300 * MINUTE, MINUTE);
    expect(cluster.file.shares?.share).toBe(500);
  });

  test('who lets it go on is asked again at the next step; who passes all of it is not', () => {
    const cluster = worse();
    cluster.run(pausing, waits('TooManyErrors'), LOOK_MS);
    cluster.fact({ promote: `${B}:1` });
    const next = cluster.run(pausing, (now) => now.canary?.step === 2 && waits('TooManyErrors')(now), LOOK_MS);
    expect(next.canary).toMatchObject({ share: 2_500 });
    cluster.fact({ promote: B });
    expect(cluster.run(pausing, ended, LOOK_MS).phase).toBe('Complete');
  });

  test('it becomes worse when all steps are over: it does not get everything', () => {
    const cluster = served({ perSecond: 100 });
    cluster.run(pausing, ({ phase }) => phase === 'Promoting', LOOK_MS);
    cluster.traffic = { perSecond: 100, errors: { canary: 1 } };
    cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, available: 2 } : one));
    const next = cluster.run(pausing, waits('TooManyErrors'), LOOK_MS);
    expect(next).toMatchObject({ phase: 'Paused', canary: { share: 5_000 } });
    cluster.run(pausing, () => cluster.now > 1_000_000_000 + 300 * MINUTE, MINUTE);
    expect(cluster.file.shares?.share).toBe(5_000);
    cluster.fact({ promote: B });
    expect(cluster.run(pausing, ended, LOOK_MS).phase).toBe('Complete');
  });
});

describe('an abort', () => {
  const failing = () => {
    const cluster = served({ perSecond: 100, errors: { canary: 1 } });
    cluster.run(judging(), ended, LOOK_MS);
    return cluster;
  };

  test('is remembered, with its figures, by whoever comes next, for as long as it stands', () => {
    const cluster = failing();
    const { message } = cluster.next(judging()).canary ?? {};
    cluster.watch = undefined;
    cluster.traffic = undefined;
    const text = canaryStateText(stateOf(cluster));
    cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, state: readCanaryState(text) } : one));
    for (let round = 0; round < 50; round += 1) {
      expect(cluster.operate(judging())).toMatchObject({
        phase: 'Aborted',
        canary: { reason: 'TooManyErrors', message },
      });
      cluster.pass(MINUTE);
    }
    // Whoever judges no more does not bring it back.
    expect(cluster.operate(wants(B, 4, { canary: { ...plan(), analysis: undefined } })).phase).toBe('Aborted');
    expect(text.length).toBeLessThan(1_000);
  });

  test('another try begins without what the first has left', () => {
    const cluster = failing();
    cluster.traffic = { perSecond: 100 };
    cluster.fact({ retry: `${B}#2` });
    expect(cluster.run(judging(), ended, LOOK_MS).phase).toBe('Complete');
  });

  test('a pause of the user does not keep it', () => {
    const cluster = served({ perSecond: 100 });
    cluster.run(judging(), waits('Counting'), LOOK_MS);
    const held = { ...judging(), isPaused: true };
    cluster.run(held, waits('UserPaused'), LOOK_MS);
    cluster.traffic = { perSecond: 100, errors: { canary: 1 } };
    expect(cluster.run(held, ended, LOOK_MS).canary?.reason).toBe('TooManyErrors');
  });

  test('while it waits for an approval', () => {
    const steps = [{ share: 2_500, forMs: 0, approval: true }];
    const cluster = served({ perSecond: 100 });
    cluster.run(judging({}, steps), waits('AwaitingApproval'), LOOK_MS);
    cluster.traffic = { perSecond: 100, errors: { canary: 1 } };
    expect(cluster.run(judging({}, steps), ended, LOOK_MS).canary?.reason).toBe('TooManyErrors');
  });
});

describe('an operator that is killed in the middle of it', () => {
  test('loses no more than was not written down', () => {
    const cluster = served({ perSecond: 100 });
    cluster.run(judging({ minRequests: 1e6 }), () => cluster.now > 1_000_000_000 + 5 * MINUTE, LOOK_MS);
    const known = cluster.watch?.evidence.canary.requests ?? 0;
    cluster.watch = undefined;
    cluster.operate(judging({ minRequests: 1e6 }));
    const kept = (cluster.watch as unknown as { evidence: ReturnType<typeof noEvidence> }).evidence.canary.requests;
    expect(kept).toBeGreaterThan(1_000);
    expect(known - kept).toBeLessThanOrEqual((5 * (SAVED_MS + LOOK_MS)) / 1_000);
  });

  test.each(Array.from({ length: 8 }, (_unused, seed) => seed))('again and again, seed %d: the same end', (seed) => {
    const random = new Random(seed);
    // At most once in ten rounds: whoever never lives until something is written down knows nothing.
    const writes = () => (random.chance(0.1) ? random.whole(0, 3) : Number.POSITIVE_INFINITY);
    const bad = served({ perSecond: 100, errors: { canary: 0.3, stable: 0.01 } });
    const good = served({ perSecond: 100, errors: { canary: 0.01, stable: 0.01 } });
    expect(bad.run(judging(), ended, LOOK_MS, writes).canary?.reason).toBe('TooManyErrors');
    expect(good.run(judging(), ended, LOOK_MS, writes).phase).toBe('Complete');
    expect([...bad.wrong, ...good.wrong]).toEqual([]);
  });
});

test('evidence alone is no write for each look', () => {
  const cluster = served({ perSecond: 100 });
  cluster.run(judging({ minRequests: 1e6 }), waits('Counting'), LOOK_MS);
  const texts = new Set<string>();
  for (let look = 0; look < 150; look += 1) {
    cluster.operate(judging({ minRequests: 1e6 }));
    texts.add(canaryStateText(stateOf(cluster)));
    cluster.pass(LOOK_MS);
  }
  expect(texts.size).toBeLessThanOrEqual((150 * LOOK_MS) / SAVED_MS + 2);
});

test('what somebody writes into what is remembered is bounded, or lost', () => {
  const cluster = served({ perSecond: 100 });
  cluster.run(judging(), waits('Counting'), LOOK_MS);
  cluster.run(judging(), () => stateOf(cluster).evidence !== undefined, LOOK_MS);
  const state = stateOf(cluster);
  for (const evidence of [
    { ...state.evidence, logs: { errors: [1e9, 0, 0], slow: [0, 0, 0] } },
    { ...state.evidence, logs: { errors: [0], slow: [0, 0, 0] } },
    { ...state.evidence, canary: { requests: -1, errors: 0, renders: 0, slow: 0 } },
    { ...state.evidence, canary: { requests: 1e300, errors: 0, renders: 0, slow: 0 } },
    { ...state.evidence, share: 'all' },
  ])
    expect(readCanaryState(JSON.stringify({ ...state, evidence }))).toBe('lost');
  expect(readCanaryState(canaryStateText(state))).toEqual(state);
  expect(A).not.toBe(B);
});
