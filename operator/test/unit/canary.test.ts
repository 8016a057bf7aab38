/** A canary, in every world that one may be in: by what is remembered and what there is. */
import { type Fact, factText, readFacts } from '../../src/rollout/canary-facts.ts';
import { type CanaryState, canaryStateText, readCanaryState } from '../../src/rollout/canary-state.ts';
import { canarySize, LEASE_MS, type RolloutNext } from '../../src/rollout/canary-world.ts';
import { A, B, C, type CanaryCluster, PLAN, running, wants } from '../support/canary-cluster.ts';
import { Random } from '../support/random.ts';

const TO_B = wants(B, 4);
const MINUTE = 60_000;

/** Stands at a step: what is said of it. */
const at =
  (step: number, phase = 'Stepping') =>
  (next: RolloutNext) =>
    next.phase === phase && next.canary?.step === step && next.canary.share === (PLAN.steps[step - 1]?.share ?? 0);
const counting = (step: number) => (next: RolloutNext) => at(step)(next) && next.canary?.reason === 'Counting';
const waits = (reason: string) => (next: RolloutNext) => next.canary?.reason === reason;

/** At step 1, with its share known by all. */
function atStepOne(replicas = 4): CanaryCluster {
  const cluster = running(replicas);
  cluster.run(wants(B, replicas), counting(1));
  return cluster;
}

/** At step 2 of 3, which waits for an approval. */
function atStepTwo(): CanaryCluster {
  const cluster = running();
  cluster.run(TO_B, waits('AwaitingApproval'));
  return cluster;
}

const stateOf = (cluster: CanaryCluster, id: string) => cluster.all.find((one) => one.id === id)?.state as CanaryState;

describe('the steps', () => {
  test('shares in order, sizes before shares, the stable one whole until the end, and then it rests', () => {
    const cluster = running(8);
    const wanted = wants(B, 8);
    const sizes = new Map<string, string>();
    cluster.fact({ promote: `${B}:3` });
    // All steps are approved, so that those are passed at once: nothing but pods and acknowledgements is waited for.
    cluster.facts = {};
    cluster.run(wanted, (next) => {
      sizes.set(`${next.phase} ${next.canary?.share ?? ''}`, cluster.text);
      if (next.canary?.reason === 'AwaitingApproval') cluster.fact({ promote: `${B}:${next.canary.step}` });
      return next.phase === 'Complete';
    });
    expect(cluster.shares).toEqual(['b0', 'b5', 'b25', 'b50', 'b100', '-']);
    expect(sizes.get('Stepping 500')).toBe('a8 b1/2');
    expect(sizes.get('Stepping 2500')).toBe('a8 b3/4');
    expect(sizes.get('Promoting 10000')).toMatch(/^a8z? b8$/);
    cluster.operate(wanted);
    expect(cluster.text).toBe('a1z b8');
    expect(cluster.wrong).toEqual([]);
  });

  test.each([
    [5, 33, 1, 2],
    [25, 33, 1, 9],
    [50, 4, 1, 2],
    [0.01, 4, 1, 1],
    [5, 4, 3, 3],
    [5, 2, 3, 2],
    [50, 0, 1, 0],
  ])('%d %% of %d pods, %d at least: %d', (percent, replicas, minReplicas, size) =>
    expect(canarySize(percent * 100, wants(B, replicas, { canary: { ...PLAN, minReplicas } }))).toBe(size),
  );

  test('the time of a step begins when all pods have said that they know its share', () => {
    const cluster = running();
    cluster.delivers = true;
    cluster.run(TO_B, at(1));
    cluster.delivers = false;
    cluster.said = '';
    cluster.run(TO_B, () => cluster.now > 1_000_000_000 + 20 * MINUTE, 30_000);
    expect(cluster.next(TO_B).canary).toMatchObject({ step: 1, reason: 'TellingPods' });
    cluster.delivers = true;
    cluster.run(TO_B, counting(1));
    const { untilMs } = cluster.next(TO_B).canary ?? {};
    expect(untilMs).toBe(cluster.now + 5 * MINUTE);
    cluster.run(TO_B, at(2));
    expect(cluster.now).toBeGreaterThanOrEqual(untilMs as number);
  });

  test('its pods start before anybody is sent to them, and none before all can have been told', () => {
    const cluster = running();
    cluster.operate(TO_B);
    expect([cluster.text, cluster.file.shares]).toEqual(['a4 b0', { revision: B, stable: A, share: 0 }]);
    cluster.operate(TO_B);
    expect(cluster.text).toBe('a4 b0/1');
  });

  test('a step waits for a person after its time, for each step anew', () => {
    const cluster = atStepTwo();
    expect(cluster.next(TO_B)).toMatchObject({ phase: 'Paused', canary: { step: 2, share: 2_500 } });
    expect(cluster.next(TO_B).canary?.message).toContain(`corelane.dev/rollout-promote: ${B}:2`);
    cluster.fact({ promote: `${B}:1` });
    cluster.run(TO_B, () => cluster.now > 1_000_000_000 + 120 * MINUTE, MINUTE);
    expect(cluster.next(TO_B).canary?.step).toBe(2);
    cluster.fact({ promote: `${B}:2` });
    const next = cluster.run(TO_B, waits('AwaitingApproval'));
    expect(next.canary).toMatchObject({ step: 3, share: 5_000 });
  });

  test('who promotes all of it waits neither for time nor for people, but for pods and for what they know', () => {
    const cluster = atStepOne();
    cluster.fact({ promote: B });
    const before = cluster.now;
    cluster.settle(TO_B);
    expect(cluster.shares).toEqual(['b0', 'b5', 'b100', '-']);
    expect(cluster.now - before).toBeLessThan(2 * MINUTE);
    expect(cluster.wrong).toEqual([]);
  });

  test('one that was promoted before it began gets everything at once, when all of its pods are there', () => {
    const cluster = running();
    cluster.fact({ promote: B });
    cluster.settle(TO_B);
    expect(cluster.shares).toEqual(['b0', 'b100', '-']);
    expect(cluster.wrong).toEqual([]);
  });
});

describe('the end of a canary', () => {
  /** All steps are over. */
  const promoting = () => {
    const cluster = atStepOne();
    cluster.fact({ promote: B });
    cluster.run(TO_B, ({ phase }) => phase === 'Promoting');
    return cluster;
  };
  const retired = (cluster: CanaryCluster) => cluster.all.find(({ id }) => id === A)?.retiredMs !== undefined;

  test('it gets everything when all of its pods are available, and not before', () => {
    const cluster = promoting();
    cluster.operate(TO_B);
    cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, available: 3 } : one));
    for (let round = 0; round < 5; round += 1) cluster.operate(TO_B);
    expect([cluster.text, cluster.file.shares?.share]).toEqual(['a4 b3/4', 500]);
    cluster.pass();
    cluster.run(TO_B, () => cluster.file.shares?.share === 10_000);
  });

  test('the stable one leaves the Service when all pods know that, and not before', () => {
    const cluster = promoting();
    cluster.run(TO_B, () => cluster.file.shares?.share === 10_000);
    cluster.delivers = false;
    cluster.said = '';
    cluster.run(TO_B, () => cluster.now > 1_000_000_000 + 60 * MINUTE, MINUTE);
    expect(retired(cluster)).toBe(false);
    cluster.delivers = true;
    cluster.run(TO_B, () => retired(cluster));
  });

  test('all of its pods run, and are told of shares, until none of them is in the Service', () => {
    const cluster = promoting();
    cluster.run(TO_B, () => retired(cluster));
    cluster.all = cluster.all.map((one) => (one.id === A ? { ...one, isOut: false } : one));
    const next = cluster.next(TO_B);
    expect(next).toMatchObject({ phase: 'Promoting', shares: { share: 10_000 } });
    expect(next.states.get(B)?.phase).toBe('Retiring');
    expect(next.revisions.find(({ id }) => id === A)?.replicas).toBe(4);
  });
});

describe('no steps', () => {
  const plainly: [what: string, cluster: () => CanaryCluster, wanted: ReturnType<typeof wants>][] = [
    ['without a canary', () => running(), wants(B, 4, { canary: undefined })],
    ['in a turn of the data plane', () => running(), wants(B, 4, { isTurn: true })],
    [
      'where the stable revision serves nobody',
      () => {
        const cluster = running();
        cluster.broken.add(A);
        cluster.pass();
        return cluster;
      },
      TO_B,
    ],
    [
      'beside pods of a version without revisions',
      () => {
        const cluster = running();
        cluster.all = cluster.all.map((one) => ({ ...one, canRest: false }));
        return cluster;
      },
      TO_B,
    ],
    [
      'to a revision that rests',
      () => {
        const cluster = running();
        cluster.settle(wants(B, 4, { canary: undefined }));
        cluster.operate(wants(B, 4));
        return cluster;
      },
      wants(A, 4),
    ],
    [
      'to a revision that was all there, and has no pods any more',
      () => {
        const cluster = running();
        cluster.settle(wants(B, 4, { canary: undefined }));
        cluster.all = cluster.all.map((one) => (one.id === A ? { ...one, replicas: 0, available: 0, pods: 0 } : one));
        return cluster;
      },
      wants(A, 4),
    ],
    [
      'where the change is under way without',
      () => {
        const cluster = running();
        cluster.operate(wants(B, 4, { canary: undefined }));
        return cluster;
      },
      TO_B,
    ],
  ];
  test.each(plainly)('%s', (_what, made, wanted) => {
    const cluster = made();
    cluster.shares.length = 0;
    expect(cluster.next(wanted).canary).toBeUndefined();
    cluster.settle(wanted);
    expect(cluster.shares.filter((text) => text !== '-')).toEqual([]);
    expect(cluster.all.find(({ id }) => id === wanted.id)?.available).toBe(4);
  });
});

describe('an end', () => {
  const ends: [what: string, reason: string, act: (cluster: CanaryCluster) => void, wanted?: typeof TO_B][] = [
    ['somebody says so', 'AbortAsked', (cluster) => cluster.fact({ abort: B })],
    ['too few of its pods are available for a minute', 'CanaryUnavailable', (cluster) => cluster.broken.add(B)],
    [
      'nobody knows how far it was',
      'StatusLost',
      (cluster) => {
        cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, state: 'lost' as const } : one));
      },
    ],
    [
      'somebody has taken away what it remembered',
      'StatusLost',
      (cluster) => {
        cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, state: undefined } : one));
      },
    ],
  ];
  test.each(ends)('%s: share 0, its pods go when all know it, and it stays so', (_what, reason, act) => {
    const cluster = atStepTwo();
    act(cluster);
    cluster.delivers = false;
    const aborting = cluster.run(TO_B, ({ phase }) => phase === 'Aborting');
    expect(aborting.canary).toMatchObject({ reason, share: 0 });
    cluster.said = '';
    cluster.run(TO_B, () => true);
    cluster.run(TO_B, () => cluster.file.shares?.share === 0);
    // Its pods are there as long as one may be sent to them.
    expect(cluster.all.find(({ id }) => id === B)?.replicas).toBe(1);
    cluster.delivers = true;
    const next = cluster.settle(TO_B);
    expect(next).toMatchObject({ phase: 'Aborted', canary: { reason, share: 0 } });
    expect(next.canary?.message).toContain('stable serves with 4 of 4');
    for (let round = 0; round < 100; round += 1) {
      cluster.operate(TO_B);
      cluster.pass(MINUTE);
    }
    expect(cluster.text).toBe('a4 b0z');
    expect(cluster.file.shares).toBeUndefined();
    expect(cluster.wrong).toEqual([]);
  });

  test('it never becomes ready: nobody was ever sent to it, and after the deadline it is over', () => {
    const cluster = running();
    cluster.broken.add(B);
    const next = cluster.settle(TO_B);
    expect(next.canary).toMatchObject({ reason: 'NeverReady' });
    expect(cluster.shares).toEqual(['b0']);
    expect(cluster.now - 1_000_000_000).toBeGreaterThanOrEqual(10 * MINUTE);
  });

  test('its only pod is lost for less than a minute: it waits', () => {
    const cluster = atStepOne();
    cluster.broken.add(B);
    cluster.pass();
    cluster.run(TO_B, () => cluster.now % MINUTE >= 0, 1_000);
    cluster.pass(55_000);
    expect(cluster.operate(TO_B).phase).toBe('Stepping');
    cluster.broken.clear();
    cluster.pass();
    cluster.operate(TO_B);
    cluster.pass(30_000);
    cluster.operate(TO_B);
    expect(stateOf(cluster, B)).toMatchObject({ phase: 'Stepping', share: 500 });
    expect(stateOf(cluster, B).downSinceMs).toBeUndefined();
  });

  test('where the stable one is gone as well it is not the canary that is to blame', () => {
    const cluster = atStepOne();
    cluster.broken.add(A).add(B);
    cluster.pass();
    for (let round = 0; round < 20; round += 1) {
      cluster.operate(TO_B);
      cluster.pass(MINUTE);
    }
    expect(stateOf(cluster, B)).toMatchObject({ share: 500 });
  });

  test('one of its pods of many is lost: it goes on', () => {
    const cluster = running(20);
    const wanted = wants(B, 20, { canary: { minReplicas: 1, steps: [{ share: 5_000, forMs: 9e6, approval: false }] } });
    cluster.run(wanted, waits('Counting'));
    cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, available: 5 } : one));
    expect(cluster.next(wanted).states.get(B)?.downSinceMs).toBeUndefined();
    cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, available: 4 } : one));
    expect(cluster.next(wanted).states.get(B)?.downSinceMs).toBe(cluster.now);
  });

  test('a pod that is out of reach holds it for as long as it may take a share for its own, and no longer', () => {
    const cluster = atStepTwo();
    cluster.fact({ abort: B });
    cluster.reachable = false;
    const since = cluster.now;
    cluster.settle(TO_B);
    expect(cluster.now - since).toBeGreaterThanOrEqual(LEASE_MS);
    expect(cluster.now - since).toBeLessThan(LEASE_MS + MINUTE);
  });

  test.each([
    ['aborted', { abort: B }, TO_B],
    ['taken back', {}, wants(A, 4)],
  ])('%s: as long as its pods drain they are told to give away what comes', (_what, facts, wanted) => {
    const cluster = atStepTwo();
    cluster.fact(facts);
    cluster.settle(wanted);
    for (let round = 0; round < 3; round += 1) {
      cluster.operate(wanted);
      cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, pods: 1 } : one));
    }
    expect(cluster.next(wanted).shares).toEqual({ revision: B, stable: A, share: 0 });
    cluster.all = cluster.all.map((one) => ({ ...one, pods: one.replicas }));
    expect(cluster.next(wanted).shares).toBeUndefined();
  });

  test('aborted before it began: it gets no pod', () => {
    const cluster = running();
    cluster.fact({ abort: B });
    expect(cluster.settle(TO_B)).toMatchObject({ phase: 'Aborted', canary: { reason: 'AbortAsked' } });
    cluster.operate(TO_B);
    expect(cluster.text).toBe('a4 b0z');
  });

  test('while all is being promoted: the stable one is still whole', () => {
    const cluster = atStepOne();
    cluster.fact({ promote: B });
    cluster.run(TO_B, ({ phase, canary }) => phase === 'Promoting' && canary?.share === 10_000);
    cluster.fact({ abort: B });
    cluster.settle(TO_B);
    cluster.operate(TO_B);
    expect(cluster.text).toBe('a4 b0z');
    expect(cluster.wrong).toEqual([]);
  });
});

describe('another try', () => {
  const aborted = () => {
    const cluster = atStepTwo();
    cluster.fact({ abort: B });
    cluster.settle(TO_B);
    return cluster;
  };

  test('begins anew, and what was promoted before does not count', () => {
    const cluster = aborted();
    cluster.fact({ retry: `${B}#2`, promote: B });
    const next = cluster.run(TO_B, waits('AwaitingApproval'));
    expect(next.canary).toMatchObject({ attempt: 2, step: 2 });
    expect(next.canary?.message).toContain(`${B}#2:2`);
    expect(cluster.shares).toEqual(['b0', 'b5', 'b25', 'b0', 'b5', 'b25']);
    cluster.fact({ promote: `${B}#2` });
    expect(cluster.settle(TO_B).phase).toBe('Complete');
  });

  test.each([
    ['of the try that it was', { retry: B }],
    ['of another revision', { retry: `${A}#2` }],
    ['while it is aborted by name', { retry: `${B}#2`, abort: B }],
    ['in other words', { retry: 'yes' }],
  ])('none for a fact %s', (_what, texts) => {
    const cluster = aborted();
    cluster.fact(texts);
    expect(cluster.operate(TO_B).phase).toBe('Aborted');
    expect(cluster.text).toMatch(/^a4 b0/);
    expect(stateOf(cluster, B).attempt).toBe(1);
  });

  test('without a canary by then: without steps', () => {
    const cluster = aborted();
    cluster.fact({ retry: `${B}#2` });
    expect(cluster.settle(wants(B, 4, { canary: undefined })).phase).toBe('Complete');
    expect(cluster.all.find(({ id }) => id === B)?.available).toBe(4);
  });

  test('by asking for something else in between', () => {
    const cluster = aborted();
    cluster.facts = {};
    cluster.settle(wants(A, 4));
    cluster.operate(wants(A, 4));
    cluster.shares.length = 0;
    cluster.run(TO_B, at(1));
    expect(stateOf(cluster, B).attempt).toBe(2);
  });
});

describe('what happens in the middle', () => {
  test('back to the stable one: nothing is wrong', () => {
    const cluster = atStepTwo();
    expect(cluster.operate(wants(A, 4))).toMatchObject({ phase: 'Aborting', canary: { reason: 'Reverted' } });
    cluster.settle(wants(A, 4));
    cluster.operate(wants(A, 4));
    expect(cluster.text).toBe('a4 b0z');
    expect(cluster.wrong).toEqual([]);
  });

  test('another change: the first canary ends, and the second begins at the first step', () => {
    const cluster = atStepTwo();
    expect(cluster.operate(wants(C, 4))).toMatchObject({ phase: 'Aborting', canary: { reason: 'SupersededBy' } });
    cluster.run(wants(C, 4), counting(1));
    expect(cluster.shares).toEqual(['b0', 'b5', 'b25', 'b0', 'c0', 'c5']);
    expect(cluster.text).toBe('a4 b0z c1');
    expect(cluster.wrong).toEqual([]);
  });

  test('and back again: it has another try from the beginning', () => {
    const cluster = atStepTwo();
    cluster.run(wants(C, 4), counting(1));
    cluster.shares.length = 0;
    cluster.run(TO_B, counting(1));
    expect(cluster.shares).toEqual(['c5', 'c0', 'b0', 'b5']);
    expect(stateOf(cluster, B).attempt).toBe(2);
  });

  test('an aborted one that is asked for while another one ends has another try', () => {
    const cluster = atStepTwo();
    cluster.fact({ abort: B });
    cluster.settle(TO_B);
    cluster.facts = {};
    cluster.run(wants(C, 4), counting(1));
    cluster.run(TO_B, counting(1));
    expect(stateOf(cluster, B)).toMatchObject({ phase: 'Stepping', attempt: 2 });
  });

  test('another change while it gets everything: that is finished first, and is the stable one then', () => {
    const cluster = atStepOne();
    cluster.fact({ promote: B });
    cluster.run(TO_B, ({ phase, canary }) => phase === 'Promoting' && canary?.share === 10_000);
    const next = cluster.run(wants(C, 4), counting(1));
    expect(next.canary).toMatchObject({ revision: C, stable: B });
    expect(cluster.shares).toEqual(['b0', 'b5', 'b100', 'c0', 'c5']);
    expect(cluster.wrong).toEqual([]);
  });

  test('another change while its pods for everything do not come: the cure does not wait for them', () => {
    const cluster = atStepOne();
    cluster.fact({ promote: B });
    cluster.run(TO_B, ({ phase }) => phase === 'Promoting');
    for (let round = 0; round < 20; round += 1) {
      cluster.operate(wants(C, 4));
      cluster.pass();
      cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, available: Math.min(1, one.replicas) } : one));
    }
    const next = cluster.run(wants(C, 4), counting(1));
    expect(next.canary).toMatchObject({ revision: C, stable: A });
    expect(cluster.shares).toEqual(['b0', 'b5', 'b0', 'c0', 'c5']);
    expect(cluster.wrong).toEqual([]);
  });

  test('another change while it has everything, and not all pods say that they know it: it waits for the deadline', () => {
    const cluster = atStepOne();
    cluster.fact({ promote: B });
    cluster.run(TO_B, ({ phase, canary }) => phase === 'Promoting' && canary?.share === 10_000);
    cluster.delivers = false;
    cluster.said = '';
    const to = cluster.now + 10 * MINUTE;
    expect(cluster.next(wants(C, 4)).againMs).toBeLessThanOrEqual(to);
    cluster.run(wants(C, 4), () => cluster.now > to - MINUTE, 30_000);
    expect(cluster.next(wants(C, 4))).toMatchObject({ phase: 'Promoting', canary: { revision: B, share: 10_000 } });
    cluster.run(wants(C, 4), ({ phase }) => phase === 'Aborting', 30_000);
    cluster.delivers = true;
    expect(cluster.run(wants(C, 4), counting(1)).canary).toMatchObject({ revision: C, stable: A });
    expect(cluster.wrong).toEqual([]);
  });

  test('a second revision that serves, from a change without steps: the stable one gets everything first', () => {
    const cluster = running();
    cluster.operate(wants(B, 4, { canary: undefined }));
    cluster.pass();
    cluster.operate(wants(B, 4, { canary: undefined }));
    expect(cluster.next(wants(C, 4))).toMatchObject({ phase: 'Preparing', canary: { reason: 'Settling' } });
    cluster.run(wants(C, 4), counting(1));
    expect(cluster.text).toBe('a4 b0z c1');
  });

  test('a pause holds its clock and its step; the share stays, scaling goes on, and so does an abort', () => {
    const cluster = atStepOne();
    const held = wants(B, 4, { isPaused: true });
    cluster.pass(2 * MINUTE);
    cluster.operate(held);
    for (let round = 0; round < 60; round += 1) {
      cluster.pass(MINUTE);
      cluster.operate(held);
    }
    expect(cluster.next(held)).toMatchObject({
      phase: 'Paused',
      canary: { reason: 'UserPaused', step: 1, share: 500 },
    });
    cluster.operate(wants(B, 40, { isPaused: true }));
    expect(cluster.all.map(({ id, replicas }) => [id, replicas]).toSorted()).toEqual([
      [A, 40],
      [B, 2],
    ]);
    cluster.operate(held);
    const since = cluster.now;
    cluster.run(TO_B, at(2), 1_000);
    // Of five minutes two had counted, and a second or so was the operator's.
    expect((cluster.now - since) / MINUTE).toBeCloseTo(3, 0);
    cluster.fact({ abort: B });
    expect(cluster.operate(held).phase).toBe('Aborting');
  });

  test('a pause before it begins', () => {
    const cluster = running();
    for (let round = 0; round < 3; round += 1) {
      expect(cluster.operate(wants(B, 4, { isPaused: true })).phase).toBe('Paused');
      expect(cluster.text).toBe('a4 b0');
      cluster.pass();
    }
    cluster.run(TO_B, counting(1));
  });

  test('more and fewer pods: of both sides, and the share stays', () => {
    const cluster = atStepTwo();
    for (const [replicas, text] of [
      [12, /^a\d*\/?12 b\d*\/?3$/],
      [4, /^a4 b1$/],
      [0, /^a0 b0$/],
      [4, /^a\d*\/?4 b\d*\/?1$/],
    ] as const) {
      cluster.least = 0;
      cluster.operate(wants(B, replicas));
      expect(cluster.text).toMatch(text);
      for (let round = 0; round < 15; round += 1) cluster.pass();
      cluster.operate(wants(B, replicas));
    }
    expect(stateOf(cluster, B)).toMatchObject({ phase: 'Stepping', share: 2_500 });
  });

  test.each<[what: string, shares: number[], step: number]>([
    ['the same share at another place', [500, 1_000, 2_500, 9_000], 3],
    ['a larger one instead', [500, 3_000, 9_000], 2],
    ['none that is as large', [500, 1_000], 2],
  ])('steps that are edited: %s', (_what, shares, step) => {
    const cluster = atStepTwo();
    const canary = { minReplicas: 1, steps: shares.map((share) => ({ share, forMs: 60_000, approval: true })) };
    const edited = wants(B, 4, { canary });
    cluster.shares.length = 0;
    const next = cluster.run(edited, ({ phase }) => phase === 'Paused' || phase === 'Complete');
    if (shares.at(-1) === 1_000) expect(cluster.shares).toEqual(['b25', 'b100', '-']);
    else expect(next.canary).toMatchObject({ step, share: shares[step - 1] });
  });

  test('steps that are taken out: none is left', () => {
    const cluster = atStepTwo();
    cluster.settle(wants(B, 4, { canary: undefined }));
    expect(cluster.shares).toEqual(['b0', 'b5', 'b25', 'b100', '-']);
    expect(cluster.wrong).toEqual([]);
  });

  test('pods of a data plane that knows no canary: it waits, with a way out, and for ever', () => {
    const cluster = running();
    cluster.knows = false;
    cluster.run(TO_B, () => cluster.now > 1_000_000_000 + 60 * MINUTE, MINUTE);
    expect(cluster.next(TO_B)).toMatchObject({ phase: 'Preparing', canary: { reason: 'DataPlaneTooOld', share: 0 } });
    cluster.knows = true;
    cluster.run(TO_B, at(1));
  });

  test('pods that cannot be asked: nobody is sent to it', () => {
    const cluster = running();
    cluster.reachable = false;
    cluster.run(TO_B, () => cluster.now > 1_000_000_000 + 60 * MINUTE, MINUTE);
    expect(cluster.next(TO_B)).toMatchObject({ phase: 'Preparing', canary: { reason: 'PodsUnreachable', share: 0 } });
  });

  test('pods for a larger share that do not come: the share stays, and it is told', () => {
    const cluster = running(40);
    const wanted = wants(B, 40);
    cluster.run(wanted, counting(1));
    cluster.broken.add(B);
    const alive = () => {
      cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, available: 2 } : one));
    };
    for (let round = 0; round < 60; round += 1) {
      cluster.pass(30_000);
      alive();
      cluster.operate(wanted);
    }
    expect(cluster.next(wanted)).toMatchObject({ phase: 'Stepping', canary: { reason: 'NoProgress', share: 500 } });
    cluster.broken.clear();
    cluster.run(wanted, at(2));
  });

  test('the operator was away for longer than pods believe it: the step counts from the beginning', () => {
    const cluster = atStepOne();
    cluster.pass(4 * MINUTE);
    cluster.operate(TO_B);
    cluster.pass(30 * MINUTE);
    cluster.operate(TO_B);
    expect(stateOf(cluster, B)).toMatchObject({ share: 500, countedMs: 0 });
    const since = cluster.now;
    cluster.run(TO_B, at(2), 1_000);
    expect(cluster.now - since).toBeGreaterThanOrEqual(5 * MINUTE);
  });

  test('a file that says that its time is over, and stays so: it is remembered once, and not at each look', () => {
    const cluster = atStepOne();
    const looks = [0, 1, 2, 3].map(() => {
      cluster.now += 10;
      cluster.file.untilMs = 1_000;
      cluster.operate(TO_B);
      return stateOf(cluster, B);
    });
    expect(looks[0]).toMatchObject({ phase: 'Stepping', countedMs: 0 });
    expect(looks.slice(1)).toEqual([looks[0], looks[0], looks[0]]);
  });

  test('the stable revision is deleted by hand: there is nobody left for a share', () => {
    const cluster = atStepTwo();
    cluster.all = cluster.all.filter(({ id }) => id !== A);
    expect(cluster.settle(TO_B).phase).toBe('Complete');
    expect(cluster.all.find(({ id }) => id === B)?.available).toBe(4);
  });

  test('times of a clock that was ahead', () => {
    const cluster = atStepOne();
    const ahead = { ...stateOf(cluster, B), sinceMs: cluster.now + 1e9, countsSinceMs: cluster.now + 1e9 };
    cluster.all = cluster.all.map((one) => (one.id === B ? { ...one, state: ahead } : one));
    cluster.run(TO_B, at(2), 10_000);
  });
});

describe('an operator that is killed', () => {
  const stories: [what: string, begin: () => CanaryCluster, wanted: typeof TO_B, facts: object, end: RegExp][] = [
    ['on the way to the end', () => running(), TO_B, { promote: `${B}:3` }, /^a1z b4$/],
    ['when all is promoted at once', () => running(), TO_B, { promote: B }, /^a1z b4$/],
    ['in an abort', atStepTwo, TO_B, { abort: B }, /^a4 b0z$/],
    ['on the way back', atStepTwo, wants(A, 4), {}, /^a4 b0z$/],
    ['between two canaries', atStepTwo, wants(C, 4), { promote: C }, /^a1z b0z c4$/],
  ];
  const kills = [0, 1, 2, 3, 4].flatMap((writes) => stories.map((story) => [writes, ...story] as const));
  test.each(kills)('after %d writes, every other time, %s', (writes, _what, begin, wanted, facts, end) => {
    const cluster = begin();
    cluster.shares.length = 0;
    cluster.fact(facts);
    let round = 0;
    const limit = () => {
      round += 1;
      return round % 2 === 1 && round < 400 ? writes : Number.POSITIVE_INFINITY;
    };
    cluster.settle(wanted, limit);
    for (let last = 0; last < 5; last += 1) {
      cluster.pass();
      cluster.operate(wanted);
    }
    expect(cluster.text).toMatch(end);
    expect(cluster.wrong).toEqual([]);
  });

  test.each(stories)('at each write of each round once: the same end, %s', (_what, begin, wanted, facts, end) => {
    for (let at = 0; at < 40; at += 1) {
      for (const writes of [0, 1, 2, 3, 4]) {
        const cluster = begin();
        cluster.fact(facts);
        let round = -1;
        cluster.settle(wanted, () => {
          round += 1;
          return round === at ? writes : Number.POSITIVE_INFINITY;
        });
        for (let last = 0; last < 5; last += 1) {
          cluster.pass();
          cluster.operate(wanted);
        }
        expect([at, writes, cluster.text]).toEqual([at, writes, expect.stringMatching(end)]);
        expect(cluster.wrong).toEqual([]);
      }
    }
  });
});

interface Chaos {
  cluster: CanaryCluster;
  random: Random;
  asked: string;
  replicas: number;
  isPaused: boolean;
}

/** What may happen in a round, and how probable it is. */
const HAPPENS: [probability: number, act: (chaos: Chaos) => void][] = [
  [0.03, (chaos) => Object.assign(chaos, { asked: chaos.random.pick([A, B, C]) })],
  [0.03, (chaos) => Object.assign(chaos, { replicas: chaos.random.whole(0, 7) })],
  [0.05, (chaos) => Object.assign(chaos, { isPaused: !chaos.isPaused })],
  [0.1, ({ cluster }) => cluster.broken.clear()],
  [0.04, ({ cluster, random }) => cluster.broken.add(random.pick([A, B, C]))],
  [0.1, ({ cluster, random }) => Object.assign(cluster, { reachable: random.chance(0.8) })],
  [0.1, ({ cluster, random }) => Object.assign(cluster, { delivers: random.chance(0.8) })],
  [0.05, ({ cluster, asked }) => cluster.fact({ promote: asked })],
  [0.05, ({ cluster, asked }) => cluster.fact({ promote: `${asked}:2` })],
  [0.03, ({ cluster, asked }) => cluster.fact({ abort: asked })],
  [0.1, ({ cluster, asked, random }) => cluster.fact({ retry: `${asked}#${random.whole(1, 4)}` })],
];

function happen(chaos: Chaos): void {
  const { cluster, random } = chaos;
  for (const [probability, act] of HAPPENS) if (random.chance(probability)) act(chaos);
  cluster.least = 0;
  const { asked, replicas, isPaused } = chaos;
  cluster.operate(wants(asked, replicas, { isPaused }), random.chance(0.3) ? random.whole(0, 4) : undefined);
  cluster.pass(random.whole(0, 120_000));
}

const FALLS_IN = ['Aborting', 'Aborted', 'Over', 'Preparing'];

test('random worlds: never two canaries, never a pod before it is known, and shares fall by an abort alone', () => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= 200; seed += 1) {
    const chaos: Chaos = { cluster: running(), random: new Random(seed), asked: B, replicas: 4, isPaused: false };
    let before: { revision: string; share: number } | undefined;
    for (let round = 0; round < 120; round += 1) {
      happen(chaos);
      const { shares } = chaos.cluster.file;
      const phase = (shares && stateOf(chaos.cluster, shares.revision)?.phase) ?? '';
      const hasFallen = shares && shares.revision === before?.revision && shares.share < before.share;
      const isRight = !hasFallen || (shares.share === 0 && FALLS_IN.includes(phase));
      expect([seed, round, isRight]).toEqual([seed, round, true]);
      before = shares;
      seen.add(phase);
    }
    expect([seed, ...chaos.cluster.wrong]).toEqual([seed]);
  }
  // Else nothing was tried.
  expect([...seen]).toEqual(expect.arrayContaining(['Preparing', 'Stepping', 'Promoting', 'Retiring', 'Aborting']));
});

describe('facts', () => {
  test.each<[text: string, fact: Fact | undefined]>([
    [B, { revision: B, attempt: 1 }],
    [`${B}:2`, { revision: B, attempt: 1, step: 2 }],
    [`${B}#3`, { revision: B, attempt: 3 }],
    [`${B}#3:12`, { revision: B, attempt: 3, step: 12 }],
    [` ${B} `, { revision: B, attempt: 1 }],
    ['', undefined],
    ['true', undefined],
    [`${B}#0`, undefined],
    [`${B}:0`, undefined],
    [`${B}:100`, undefined],
    [`${B}#9999999`, undefined],
    ['b', undefined],
  ])('"%s"', (text, fact) => {
    expect(readFacts({ promote: text }).promote).toEqual(fact);
    if (fact) expect(factText(fact)).toBe(text.trim());
  });

  test('an abort is of whatever try: who stops something must not have to know which it is', () => {
    expect(readFacts({ abort: `${B}#7:2` }).abort).toBe(B);
  });
});

describe('what a canary remembers', () => {
  test('times that somebody has written make nobody look again at once, for ever', () => {
    const cluster = atStepOne();
    cluster.fact({ abort: B });
    cluster.settle(TO_B);
    cluster.all = cluster.all.map((one) =>
      one.id === B ? { ...one, state: { ...(one.state as CanaryState), downSinceMs: 0, countedMs: 1e15 } } : one,
    );
    expect(cluster.next(TO_B)).toMatchObject({ phase: 'Aborted' });
    expect(cluster.next(TO_B).againMs ?? Number.POSITIVE_INFINITY).toBeGreaterThan(cluster.now);
  });

  test('comes back as it was', () => {
    const state = stateOf(atStepTwo(), B);
    expect(readCanaryState(canaryStateText(state))).toEqual(state);
    expect(canaryStateText(state).length).toBeLessThan(300);
  });

  test.each(['', '{}', 'null', '[]', '{"phase":"Stepping"}', 'x'.repeat(100), '{"phase":"Nothing","attempt":1}'])(
    '%s is nothing that anybody can read',
    (text) => expect(readCanaryState(text)).toBe('lost'),
  );

  test('nothing is nothing', () => expect(readCanaryState(undefined)).toBeUndefined());
});
