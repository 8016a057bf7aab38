/** Who looks at a canary, when, and what comes of what pods say: those that come, go, say nothing, or lie. */
import type { RenderService } from '../../src/api/resource.ts';
import { CanaryWatch, type WatchSubject } from '../../src/controller/canary-watch.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { noEvidence } from '../../src/rollout/evidence.ts';
import { ANALYSIS } from '../support/canary-cluster.ts';

const SHOP = { metadata: { uid: 'shop', namespace: 'default', name: 'shop' } } as RenderService;
const [STABLE, CANARY] = ['7f3a9c21d0', '19be04aa3c'];
const NUMBER = Number.parseInt(CANARY, 16);
const SUBJECT: WatchSubject = { revision: CANARY, attempt: 1, stable: STABLE, share: 5_000, plan: ANALYSIS };
const settle = async () => {
  for (let n = 0; n < 100; n += 1) await Promise.resolve();
};

interface Counts {
  requests: number;
  errors: number;
  times: Record<number, number>;
}
interface Told {
  epoch: string;
  revision: number;
  canary: Counts;
  stable: Counts;
  /** Lines about clients. */
  clients?: string;
}

/** By address; undefined: it does not answer. */
let told: Map<string, Told | string | undefined>;
let pods: KubeObject[];
let asked: string[];
let nowMs: number;
let wallMs: number;
let sleepers: { atMs: number; wake: () => void }[];
let changes: number;
let watch: CanaryWatch;

const none = (): Counts => ({ requests: 0, errors: 0, times: {} });
const silentPage = (): Told => ({ epoch: '1.0', revision: NUMBER, canary: none(), stable: none() });
const side = ({ requests, errors, times }: Counts) =>
  `${requests} ${errors}${Object.entries(times)
    .map(([bucket, count]) => ` ${bucket}:${count}`)
    .join('')}`;
const pageOf = (one: Told) =>
  `epoch=${one.epoch}\nrevision=${one.revision}\ncanary=${side(one.canary)}\nstable=${side(one.stable)}\n${one.clients ?? ''}`;

function pod(name: string, { revision = STABLE, isReady = true, labels = {}, ageMs = 3_600_000 } = {}): KubeObject {
  const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
  const metadata = {
    ...{ name, namespace: 'default', uid: `uid-${name}` },
    labels: { 'corelane.dev/revision': revision, ...labels },
  };
  const startedAt = new Date(wallMs - ageMs).toISOString();
  const containerStatuses = [{ name: 'worker-0', ready: true, state: { running: { startedAt } } }];
  told.set(name, silentPage());
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata },
    status: { phase: 'Running', podIP: name, conditions, containerStatuses },
  };
}

async function pass(ms: number): Promise<void> {
  const endMs = nowMs + ms;
  await settle();
  for (;;) {
    const next = sleepers.toSorted((one, other) => one.atMs - other.atMs)[0];
    if (!next || next.atMs > endMs) break;
    nowMs = next.atMs;
    sleepers = sleepers.filter((one) => one !== next);
    next.wake();
    await settle();
  }
  nowMs = endMs;
}

/** In a pod. */
const serve = (name: string, canary: Partial<Counts>, stable: Partial<Counts> = {}) => {
  const page = told.get(name) as Told;
  for (const [of, more] of [
    [page.canary, canary],
    [page.stable, stable],
  ] as const) {
    of.requests += more.requests ?? 0;
    of.errors += more.errors ?? 0;
    for (const [bucket, count] of Object.entries(more.times ?? {}))
      of.times[Number(bucket)] = (of.times[Number(bucket)] ?? 0) + count;
  }
};
const seen = () => watch.of('shop', CANARY, 1);
const evidence = () => seen()?.evidence ?? noEvidence(0);

beforeEach(() => {
  [told, pods, asked, nowMs, sleepers, changes] = [new Map(), [], [], 0, [], 0];
  wallMs = Date.parse('2026-01-01T00:00:00Z');
  watch = new CanaryWatch({
    podsOf: () => pods,
    onChange() {
      changes += 1;
    },
    async get(address, path) {
      expect(path).toBe('/canary');
      asked.push(address);
      const page = told.get(address);
      if (page === undefined) throw new Error('no answer');
      return typeof page === 'string' ? page : pageOf(page);
    },
    nowMs: () => nowMs,
    wallMs: () => wallMs + nowMs,
    pause: (ms) => new Promise((resolve) => void sleepers.push({ atMs: nowMs + ms, wake: resolve })),
  });
  pods = [pod('a'), pod('b'), pod('c', { revision: CANARY })];
});
afterEach(() => watch.stop());

/** With a first look, at which nothing is new. */
async function watching(subject: Partial<WatchSubject> = {}): Promise<void> {
  watch.want(SHOP, { ...SUBJECT, ...subject });
  await pass(100);
}

test('what is new in all pods that are ready and serve, every two seconds', async () => {
  pods.push(pod('d', { isReady: false }), pod('e', { labels: { 'corelane.dev/serving': 'false' } }));
  serve('a', { requests: 500, errors: 500 });
  await watching();
  expect(asked.toSorted()).toEqual(['a', 'b', 'c']);
  // Whoever has counted that is not known: it may have been written down before.
  expect(evidence()).toEqual(noEvidence(5_000));
  serve('a', { requests: 10, errors: 1 }, { requests: 12 });
  serve('c', { requests: 5 }, { requests: 4, errors: 2 });
  await pass(2_100);
  expect(evidence()).toMatchObject({ canary: { requests: 15, errors: 1 }, stable: { requests: 16, errors: 2 } });
  expect(seen()).toMatchObject({ pods: 3, silent: 0 });
  await pass(2_100);
  expect(evidence().canary.requests).toBe(15);
});

test('a client that fails in several pods is one, and what he gets else says how much is known', async () => {
  const tell = (name: string, canary: string) => {
    (told.get(name) as Told).clients = `canary-clients=${canary}\nstable-clients=0\n`;
  };
  tell('a', '3 aa');
  await watching();
  tell('a', '5 aa bb');
  tell('b', '4 bb cc');
  serve('a', { requests: 10, errors: 1 }, { requests: 10 });
  await pass(2_100);
  expect(evidence()).toMatchObject({ canary: { requests: 16, errors: 3 }, stable: { requests: 10, errors: 0 } });
  tell('b', '5 bb cc cc');
  await pass(2_100);
  expect(evidence().canary).toMatchObject({ requests: 17, errors: 3 });
});

test('it is told when it is against the canary, and now and then else', async () => {
  await watching();
  const before = changes;
  for (let look = 0; look < 20; look += 1) {
    serve('a', { requests: 1 }, { requests: 1 });
    await pass(2_100);
  }
  // In 42 s.
  expect(changes - before).toBeLessThanOrEqual(3);
  const calm = changes;
  serve('b', { requests: 30, errors: 30 }, { requests: 30 });
  await pass(2_100);
  expect(changes).toBe(calm + 1);
});

describe('pods', () => {
  test('that come later count from their first look on, and what those that are gone have said stays', async () => {
    await watching();
    serve('a', { requests: 7 });
    await pass(2_100);
    pods = [...pods.slice(1), pod('d')];
    serve('d', { requests: 100, errors: 100 });
    await pass(2_100);
    serve('d', { requests: 2 });
    await pass(2_100);
    expect(evidence().canary).toMatchObject({ requests: 9, errors: 0 });
  });

  test('that were started again have counted all of it since', async () => {
    await watching();
    serve('a', { requests: 50 });
    await pass(2_100);
    told.set('a', { ...silentPage(), epoch: '2.0' });
    serve('a', { requests: 3, errors: 1 });
    await pass(2_100);
    expect(evidence().canary).toMatchObject({ requests: 53, errors: 1 });
  });

  test('that do not answer are counted as silent, asked less often, and lose nothing', async () => {
    await watching();
    const page = told.get('a') as Told;
    told.set('a', undefined);
    asked = [];
    await pass(2_100);
    expect(seen()).toMatchObject({ pods: 3, silent: 1 });
    await pass(7_000);
    expect(asked.filter((name) => name === 'a')).toHaveLength(1);
    told.set('a', page);
    serve('a', { requests: 40, errors: 3 });
    await pass(10_000);
    expect(seen()).toMatchObject({ silent: 0, evidence: { canary: { requests: 40, errors: 3 } } });
  });

  test.each([
    ['what is no page', 'hello'],
    ['nothing', ''],
    ['512 kB', 'canary=1 1\n'.repeat(50_000)],
    ['more errors than requests', `epoch=1.0\nrevision=${NUMBER}\ncanary=1 5\nstable=0 0\n`],
  ])('that say %s are silent', async (_what, text) => {
    await watching();
    told.set('a', text);
    await pass(2_100);
    expect(seen()).toMatchObject({ silent: 1 });
    expect(evidence()).toEqual(noEvidence(5_000));
  });

  test('that say what cannot be are not believed, whichever way they lie', async () => {
    await watching();
    for (const page of [
      { ...silentPage(), canary: { requests: 900_000_000_000, errors: 900_000_000_000, times: {} } },
      { ...silentPage(), stable: { requests: 900_000_000_000, errors: 900_000_000_000, times: {} } },
      silentPage(),
    ]) {
      told.set('a', page);
      await pass(2_100);
      expect(evidence()).toEqual(noEvidence(5_000));
    }
  });

  test('that speak of another canary say nothing of this one', async () => {
    await watching();
    told.set('a', { ...silentPage(), revision: 42 });
    serve('a', { requests: 100, errors: 100 });
    await pass(2_100);
    expect(evidence()).toEqual(noEvidence(5_000));
    told.set('a', silentPage());
    serve('a', { requests: 2 });
    await pass(2_100);
    expect(evidence().canary.requests).toBe(2);
  });
});

describe('times', () => {
  /** Renders of about 100 ms, and of about 400 ms. */
  const [USUAL, SLOW] = [54, 70];
  const look = async (canary: Record<number, number>, stable: Record<number, number>) => {
    const requests = (times: Record<number, number>) => Object.values(times).reduce((sum, count) => sum + count, 0);
    serve('a', { requests: requests(canary), times: canary }, { requests: requests(stable), times: stable });
    await pass(2_100);
  };

  test('are judged when it is known what is usual, by what was known before', async () => {
    await watching();
    await look({ [USUAL]: 10, [SLOW]: 10 }, { [USUAL]: 200 });
    expect(evidence().canary).toMatchObject({ renders: 0, slow: 0 });
    await look({ [USUAL]: 5, [SLOW]: 15 }, { [USUAL]: 49, [SLOW]: 1 });
    expect(evidence()).toMatchObject({
      canary: { renders: 20, slow: 15 },
      stable: { renders: 50, slow: 1 },
      slowMs: expect.any(Number),
    });
    expect(evidence().slowMs).toBeGreaterThan(120);
    expect(evidence().slowMs).toBeLessThan(200);
  });

  test('of workers that are cold are not: neither too young ones, nor those that have rendered next to nothing', async () => {
    pods = [pod('a'), pod('c', { revision: CANARY, ageMs: 0 })];
    await watching();
    await look({}, { [USUAL]: 200 });
    for (let count = 0; count < 25; count += 1) await look({ [SLOW]: 2 }, { [USUAL]: 2 });
    expect(evidence().canary).toMatchObject({ requests: 50, renders: 0 });
    await pass(10_000);
    await look({ [USUAL]: 2 }, { [USUAL]: 2 });
    expect(evidence().canary).toMatchObject({ renders: 2, slow: 0 });
    // Another pod, at the next step.
    pods.push(pod('d', { revision: CANARY }));
    await look({ [SLOW]: 19 }, { [USUAL]: 2 });
    await look({ [SLOW]: 21 }, { [USUAL]: 2 });
    expect(evidence().canary).toMatchObject({ renders: 2 });
    await look({ [USUAL]: 3 }, { [USUAL]: 2 });
    expect(evidence().canary).toMatchObject({ renders: 5 });
  });

  test('are not judged where nobody wants that', async () => {
    await watching({ plan: { ...ANALYSIS, slowerThan: undefined } });
    await look({ [SLOW]: 30 }, { [USUAL]: 200 });
    await look({ [SLOW]: 30 }, { [USUAL]: 200 });
    expect(evidence()).toMatchObject({ canary: { requests: 60, renders: 0 }, stable: { requests: 400 } });
  });
});

describe('a subject', () => {
  test('that was judged before goes on where it was', async () => {
    const before = { ...noEvidence(5_000), canary: { ...noEvidence(0).canary, requests: 90, errors: 2 } };
    await watching({ evidence: before });
    serve('a', { requests: 10 });
    await pass(2_100);
    expect(evidence().canary).toMatchObject({ requests: 100, errors: 2 });
    // What is written down later is no news.
    watch.want(SHOP, { ...SUBJECT, evidence: before });
    expect(evidence().canary.requests).toBe(100);
  });

  test('with another share: what of it was before is known', async () => {
    await watching();
    serve('a', { requests: 10 });
    await pass(2_100);
    watch.want(SHOP, { ...SUBJECT, share: 7_500 });
    serve('a', { requests: 5 });
    await pass(2_100);
    expect(evidence()).toMatchObject({ share: 7_500, canary: { requests: 15 }, before: { requests: 10 } });
  });

  test('of another try begins with nothing', async () => {
    await watching();
    serve('a', { requests: 10, errors: 10 });
    await pass(2_100);
    watch.want(SHOP, { ...SUBJECT, attempt: 2 });
    expect(seen()).toBeUndefined();
    expect(watch.of('shop', CANARY, 2)?.evidence).toEqual(noEvidence(5_000));
    serve('a', { requests: 3 });
    await pass(2_100);
    expect(watch.of('shop', CANARY, 2)?.evidence.canary).toMatchObject({ requests: 3, errors: 0 });
  });

  test('that is over is not looked at any more, nor one whose RenderService is gone, or after the lead is lost', async () => {
    for (const end of [() => watch.want(SHOP, undefined), () => watch.keepOnly(new Set()), () => watch.stop()]) {
      await watching();
      end();
      await pass(2_100);
      asked = [];
      await pass(60_000);
      expect(asked).toEqual([]);
    }
    expect(seen()?.evidence ?? noEvidence(5_000)).toEqual(noEvidence(5_000));
  });
});

test('a thousand pods: 64 at a time, and five seconds more between two looks', async () => {
  let most = 0;
  let now = 0;
  const many = new CanaryWatch({
    podsOf: () => Array.from({ length: 1_000 }, (_unused, n) => pod(`many-${n}`)),
    onChange: () => undefined,
    async get() {
      now += 1;
      most = Math.max(most, now);
      await Promise.resolve();
      now -= 1;
      return pageOf(silentPage());
    },
    nowMs: () => nowMs,
    wallMs: () => wallMs,
    pause: (ms) => {
      expect(ms).toBe(7_000);
      return new Promise(() => undefined);
    },
  });
  many.want(SHOP, SUBJECT);
  for (let n = 0; n < 200; n += 1) await settle();
  expect(most).toBe(64);
  expect(many.of('shop', CANARY, 1)?.pods).toBe(1_000);
  many.stop();
});
