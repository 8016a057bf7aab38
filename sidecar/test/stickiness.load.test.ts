/**
 * Requests that name a revision beside a canary, or one that is full, gone, or not alone with its name: larger fleets,
 * and pods that do not answer in time.
 */
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { calling, NEXT, NOW, OLD, Revisions } from '../../e2e/harness/engine/revisions.ts';
import { canaryAt, NAVIGATION, placeOf, setCanary } from './canary.ts';
import { ALWAYS, cookie, SPEC, stickyMetric, toldRevision } from './stickiness.ts';

describe('by id', () => {
  let all: Revisions;
  let pod: Pod;
  beforeAll(async () => {
    all = await Revisions.start(SPEC, [OLD, calling('yesterday')], [NOW, calling('today')], NEXT);
    pod = all.of(NOW);
  });
  afterAll(() => all?.stop());
  afterEach(() => Promise.all(all.pods.map((one) => setCanary(one, undefined))));

  const at = async (path: string, headers: Record<string, string> = {}, call = {}) =>
    all.renderedBy(await pod.get(path, { headers, ...call }));

  test('an id of a canary that has not begun, or that was aborted, leads nowhere; its own pods give it away', async () => {
    const rest = canaryAt(0);
    await Promise.all(all.pods.map((one) => setCanary(one, rest)));
    for (const one of all.pods) {
      pod = one;
      expect(await at('/', { 'x-deployment-id': NEXT })).toBe('today');
      expect(await at('/', { 'x-deployment-id': 'yesterday' })).toBe('yesterday');
    }
    const some = canaryAt(1);
    await Promise.all(all.pods.map((one) => setCanary(one, some)));
    for (const one of all.pods) {
      pod = one;
      expect(await at('/', { 'x-deployment-id': NEXT })).toBe(NEXT);
    }
    pod = all.of(NOW);
  });

  test('a revision that is full is left, and so is one that is gone', async () => {
    const old = all.of(OLD);
    const held = pod.get('/?hold=1&id=held&dpl=yesterday');
    await old.begun('held');
    // It waits for it.
    const waits = pod.get('/?id=waits&dpl=yesterday');
    await until(
      'it waits there',
      async () => (await old.metric('haproxy_server_current_queue{proxy="line",server="slots"}')) === 1,
    );
    all.fleet.release('held');
    expect([all.renderedBy(await held), all.renderedBy(await waits)]).toEqual(['yesterday', 'yesterday']);

    await Promise.all(old.workers.map((worker) => all.fleet.engine.run('pause', old.haproxy, worker)));
    try {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => pod.get('/?dpl=yesterday', { method: 'POST' })),
      );
      expect(new Set(answers.map((answer) => all.renderedBy(answer)))).toEqual(new Set(['today']));
      expect(await stickyMetric(pod, 'fallbacks', 'id')).toBeGreaterThan(0);
    } finally {
      await Promise.all(old.workers.map((worker) => all.fleet.engine.run('unpause', old.haproxy, worker)));
    }
    await until('it is found again', async () => (await at('/?dpl=yesterday')) === 'yesterday');
  });
});

describe('by an id that two revisions have, and one of two workers', () => {
  let all: Revisions;
  let old: Pod;
  let now: Pod;
  beforeAll(async () => {
    all = await Revisions.start(SPEC, [OLD, { ...calling('old'), workersPerPod: 2 }], [NOW, calling('same')]);
    [old, now] = [all.of(OLD), all.of(NOW)];
  });
  afterAll(() => all?.stop());

  test('a second try is for whoever is there', async () => {
    await now.get('/?die=once&id=dies&dpl=old');
    expect([old, now].map((pod) => pod.events({ event: 'begin', id: 'dies' }).length)).toEqual([1, 1]);
    for (const pod of all.pods)
      await until('all are up again', async () => (await pod.isUp(0)) && (await pod.isUp(pod.workers.length - 1)));
  });

  test('it names none of them', async () => {
    const next = await all.add(NEXT, { ...SPEC, ...calling('same') });
    await all.fleet.untilAllKnown();
    const named = { headers: { 'x-deployment-id': 'same' } };
    await until('the pod knows both', async () => all.renderedBy(await old.get('/', named)) === 'old');
    for (const pod of [now, next]) {
      const before = pod.events({ event: 'begin' }).length;
      await pod.get('/', named);
      expect(pod.events({ event: 'begin' })).toHaveLength(before + 1);
    }
  });
});

describe('by cookie', () => {
  let all: Revisions;
  let pod: Pod;
  beforeAll(async () => {
    all = await Revisions.start(ALWAYS, OLD, NOW, NEXT);
    pod = all.of(NOW);
  });
  afterAll(() => all?.stop());
  afterEach(() => Promise.all(all.pods.map((one) => setCanary(one, undefined))));

  test('while there is a canary a page is of its place, and what belongs to it of that page', async () => {
    const whole = canaryAt(10_000);
    await Promise.all(all.pods.map((one) => setCanary(one, whole)));
    const page = await pod.get('/', { headers: { ...NAVIGATION, cookie: cookie(NOW) } });
    expect([all.renderedBy(page), toldRevision(page)?.revision]).toEqual([NEXT, NEXT]);
    expect(placeOf(page)).toBeDefined();
    expect(all.renderedBy(await pod.get('/', { headers: { cookie: cookie(NOW) } }))).toBe(NOW);
    const aborted = canaryAt(0);
    await Promise.all(all.pods.map((one) => setCanary(one, aborted)));
    expect(all.renderedBy(await pod.get('/', { headers: { cookie: cookie(NEXT) } }))).toBe(NOW);
  });

  test('with Canary nobody is kept or told beside one, and with Off not even by a canary', async () => {
    const asked = { headers: { ...NAVIGATION, cookie: cookie(OLD) } };
    await Promise.all(
      all.pods.map((one) => setCanary(one, undefined, { ...one.spec, rollout: rolloutWith('Canary', one) })),
    );
    const page = await pod.get('/', asked);
    expect([all.renderedBy(page), page.headers['set-cookie']]).toEqual([NOW, undefined]);
    const half = canaryAt(5_000);
    await Promise.all(
      all.pods.map((one) => setCanary(one, half, { ...one.spec, rollout: rolloutWith('Canary', one) })),
    );
    expect(placeOf(await pod.get('/', { headers: NAVIGATION }))).toBeDefined();
    await Promise.all(all.pods.map((one) => setCanary(one, half, { ...one.spec, rollout: rolloutWith('Off', one) })));
    const sides = new Set<string | undefined>();
    for (let n = 0; n < 20; n += 1) {
      const answer = await pod.get('/', { headers: { ...NAVIGATION, cookie: 'corelane-bucket=1' } });
      expect(answer.headers['set-cookie']).toBeUndefined();
      expect(JSON.parse(answer.body).headers.cookie).toBeUndefined();
      sides.add(all.renderedBy(answer));
    }
    expect(sides).toEqual(new Set([NOW, NEXT]));
  });

  function rolloutWith(cookie: 'Off' | 'Canary', { spec: { rollout } }: Pod) {
    return { ...rollout, stickiness: { cookie } };
  }

  test('pods that keep people lend each other nothing across revisions', async () => {
    const crossing = { ...pod.spec, pooling: { ...pod.spec.pooling, acrossRevisions: true } };
    await Promise.all(all.pods.map((one) => setCanary(one, undefined, crossing)));
    const answers = await Promise.all(Array.from({ length: 20 }, () => pod.get('/?ms=20')));
    expect(new Set(answers.map((answer) => all.renderedBy(answer)))).toEqual(new Set([NOW]));
  });
});
