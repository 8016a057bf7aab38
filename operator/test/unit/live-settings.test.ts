/** How pods get to know their live settings: whom the operator nudges, whom it asks, and what it says meanwhile. */
import type { RenderService } from '../../src/api/resource.ts';
import { LiveSettings } from '../../src/controller/live-settings.ts';
import { ApiError, type RequestOptions, type Rest } from '../../src/kube/rest.ts';
import type { KubeObject } from '../../src/kube/types.ts';

const SHOP = { metadata: { uid: 'shop', namespace: 'default', name: 'shop' } } as RenderService;
const settle = async () => {
  for (let n = 0; n < 50; n += 1) await Promise.resolve();
};

/** By name: the settings that it has, or nothing, if it does not answer. */
/** Pods whose data plane knows canaries. */
const canaries = new Set<string>();
let has: Record<string, string | undefined>;
let pods: KubeObject[];
let asked: string[];
let nudged: [pod: string, value: string][];
let refusal: Error | undefined;
let changes: number;
let failures: number;
let nowMs: number;
let sleepers: { atMs: number; wake: () => void }[];
let live: LiveSettings;

function pod(name: string, isReady = true): KubeObject {
  const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
  const metadata = { name, namespace: 'default', uid: `uid-${name}` };
  return { apiVersion: 'v1', kind: 'Pod', metadata, status: { phase: 'Running', podIP: name, conditions } };
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

beforeEach(() => {
  [has, pods, asked, nudged, refusal, changes, failures, nowMs, sleepers] = [{}, [], [], [], undefined, 0, 0, 0, []];
  const rest = {
    async request(method: string, path: string, { body, contentType }: RequestOptions) {
      expect([method, contentType]).toEqual(['PATCH', 'application/merge-patch+json']);
      const name = path.split('/').at(-1) as string;
      const { metadata } = body as { metadata: { uid: string; annotations: Record<string, string> } };
      expect(body).toEqual({
        metadata: { uid: `uid-${name}`, annotations: { 'corelane.dev/live': expect.any(String) } },
      });
      nudged.push([name, metadata.annotations['corelane.dev/live'] as string]);
      if (refusal) throw refusal;
    },
  } as unknown as Rest;
  live = new LiveSettings({
    rest,
    podsOf: () => pods,
    onChange() {
      changes += 1;
    },
    onFailed() {
      failures += 1;
    },
    async get(address, path) {
      asked.push(address);
      expect(path).toBe('/live');
      if (has[address] === undefined) throw new Error('no answer');
      return `serial=${has[address]}\n${canaries.has(address) ? 'canary=1\nsticky=1\n' : ''}`;
    },
    nowMs: () => nowMs,
    pause: (ms) => new Promise((resolve) => void sleepers.push({ atMs: nowMs + ms, wake: resolve })),
  });
});
afterEach(() => live.stop());

test('a pod that answers after the lead has gone is not nudged', async () => {
  pods = [pod('a')];
  has = {
    get a() {
      live.stop();
      return '0';
    },
  };
  live.want(SHOP, '1');
  await pass(60_000);
  expect([asked, nudged]).toEqual([['a'], []]);
});

test('pods that have them already are asked once, and left alone', async () => {
  pods = [pod('a'), pod('b')];
  has = { a: '1', b: '1' };
  live.want(SHOP, '1');
  await pass(60_000);
  expect([asked, nudged]).toEqual([['a', 'b'], []]);
  expect(live.of('shop')).toMatchObject({ serial: '1', pods: 2, have: 2, others: 0, silent: 0 });
  expect(live.of('shop')?.problem).toBeUndefined();
  live.want(SHOP, '1');
  await pass(60_000);
  expect(asked).toHaveLength(2);
});

test('which pods know canaries is asked with each change', async () => {
  pods = [pod('a'), pod('b')];
  has = { a: '1', b: '1' };
  canaries.add('a');
  live.want(SHOP, '1');
  await pass(1_000);
  expect(live.of('shop')).toMatchObject({ have: 2, knowing: 1, keeping: 1 });
  canaries.add('b').delete('a');
  has = { a: '2', b: '2' };
  live.want(SHOP, '2');
  await pass(10_000);
  expect(live.of('shop')).toMatchObject({ have: 2, knowing: 1 });
  canaries.clear();
});

test('a newer generation with the same settings is known, and is no news', async () => {
  const generation = (number: number) =>
    ({ ...SHOP, metadata: { ...SHOP.metadata, generation: number } }) as RenderService;
  pods = [pod('a')];
  has = { a: '1' };
  live.want(generation(1), '1');
  await pass(1_000);
  const before = changes;
  live.want(generation(2), '1');
  await pass(1_000);
  expect([live.of('shop')?.generation, changes, asked]).toEqual([2, before, ['a']]);
});

describe('settings in the place of which the ConfigMap has had others', () => {
  const shop = { ...SHOP, metadata: { ...SHOP.metadata, generation: 3 } } as RenderService;

  beforeEach(async () => {
    pods = [pod('a'), pod('b')];
    has = { a: '1', b: '1' };
    live.want(shop, '1');
    await pass(1_000);
    asked = [];
  });

  test('are those of no generation until it has them again', () => {
    live.found('shop', '1');
    expect(live.of('shop')?.generation).toBe(3);
    live.found('shop', undefined);
    expect(live.of('shop')?.generation).toBe(0);
    live.want(shop, '1');
    expect(live.of('shop')?.generation).toBe(3);
    live.found('another', undefined);
    expect(live.of('another')).toBeUndefined();
  });

  test('are asked for again, of pods that have acknowledged them, too', async () => {
    live.found('shop', '0');
    has = { a: '1', b: '0' };
    live.want(shop, '1');
    // Until then nothing is known, which is not that they lack them.
    expect(live.of('shop')).toMatchObject({ have: 0, others: 0, unasked: 2 });
    await pass(300);
    expect(asked).toEqual(['a', 'b']);
    expect(live.of('shop')).toMatchObject({ have: 1, others: 1, unasked: 0 });
    expect(nudged).toEqual([['b', '1']]);
    has = { a: '1', b: '1' };
    await pass(2_000);
    expect(live.of('shop')).toMatchObject({ have: 2, others: 0 });
  });

  test('are nudged for with another value than the last time', async () => {
    live.want(shop, '2');
    await settle();
    has = { a: '2', b: '2' };
    await pass(1_000);
    nudged = [];
    live.found('shop', '1');
    has = { a: '1', b: '2' };
    live.want(shop, '2');
    await settle();
    expect(nudged).toEqual([['a', '2.1']]);
  });
});

test('a change: each pod is nudged at once, and asked until it has it', async () => {
  pods = [pod('a'), pod('b')];
  has = { a: '1', b: '1' };
  live.want(SHOP, '1');
  await pass(1_000);
  asked = [];
  live.want(SHOP, '2');
  await settle();
  expect([asked, nudged]).toEqual([
    [],
    [
      ['a', '2'],
      ['b', '2'],
    ],
  ]);
  expect(live.of('shop')).toMatchObject({ have: 0, others: 2 });
  await pass(450);
  expect(asked).toEqual(['a', 'b']);
  has = { a: '2', b: '1' };
  await pass(400);
  expect(live.of('shop')).toMatchObject({ have: 1, others: 1, problem: 'b: it still has those of before' });
  has = { a: '2', b: '2' };
  await pass(400);
  expect(live.of('shop')).toMatchObject({ have: 2, others: 0 });
  expect(nudged).toHaveLength(2);
  expect(changes).toBeGreaterThanOrEqual(3);
});

test('kubelet has looked too early: another nudge, with another value, ever later', async () => {
  pods = [pod('a')];
  has = { a: '1' };
  live.want(SHOP, '2');
  await pass(15_000);
  expect(nudged.map(([, value]) => value)).toEqual(['2', '2.1', '2.2', '2.3']);
  await pass(600_000);
  expect(nudged.length).toBeLessThan(18);
  expect(asked.length).toBeLessThan(100);
});

test('a change on the way to another one: the first is forgotten', async () => {
  pods = [pod('a')];
  has = { a: '1' };
  live.want(SHOP, '1');
  await pass(100);
  live.want(SHOP, '2');
  await pass(600_000);
  live.want(SHOP, '3');
  await settle();
  expect(nudged.at(-1)).toEqual(['a', '3']);
  has = { a: '3' };
  await pass(500);
  expect(live.of('shop')).toMatchObject({ serial: '3', have: 1 });
});

test('a pod that has just begun is not nudged, nor counted before it is ready', async () => {
  pods = [pod('a', false)];
  live.want(SHOP, '1');
  await pass(5_000);
  expect(nudged).toEqual([]);
  expect(live.of('shop')).toMatchObject({ pods: 0, have: 0, silent: 0 });
  has = { a: '1' };
  pods = [pod('a')];
  live.want(SHOP, '1');
  await pass(20_000);
  expect(nudged).toEqual([]);
  expect(live.of('shop')).toMatchObject({ pods: 1, have: 1 });
});

test('a pod that cannot be asked is nudged once, and asked four times a minute', async () => {
  pods = [pod('a')];
  live.want(SHOP, '1');
  await pass(600_000);
  expect(nudged).toEqual([['a', '1']]);
  expect(asked.length).toBeLessThan(50);
  expect(live.of('shop')).toMatchObject({
    silent: 1,
    others: 0,
    problem: 'a: the operator cannot read its port 8999 (no answer)',
  });
});

test('what forbids the nudge is told once', async () => {
  refusal = new ApiError(403, 'Forbidden', 'no');
  pods = [pod('a'), pod('b')];
  has = { a: '1', b: '1' };
  live.want(SHOP, '2');
  await pass(60_000);
  expect(failures).toBe(1);
  has = { a: '2', b: '2' };
  await pass(60_000);
  expect(live.of('shop')).toMatchObject({ have: 2 });
});

test('who is gone is forgotten, and nothing goes on for him', async () => {
  pods = [pod('a')];
  has = { a: '1' };
  live.want(SHOP, '2');
  await pass(500);
  live.keepOnly(new Set());
  expect(live.of('shop')).toBeUndefined();
  await pass(1_000);
  const before = nudged.length;
  await pass(600_000);
  expect(nudged).toHaveLength(before);
});

test('a new leader asks so many at a time in all, and everybody in the end', async () => {
  let [inFlight, most] = [0, 0];
  const asks: (() => void)[] = [];
  const many = new LiveSettings({
    rest: { async request() {} } as unknown as Rest,
    podsOf: (_namespace, name) => Array.from({ length: 70 }, (_unused, n) => pod(`${name}-${n}`)),
    onChange() {},
    onFailed() {},
    async get() {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await new Promise<void>((resolve) => void asks.push(resolve));
      inFlight -= 1;
      return 'serial=1\n';
    },
    nowMs: () => nowMs,
    pause: () => new Promise(() => {}),
  });
  const names = Array.from({ length: 20 }, (_unused, n) => `shop${n}`);
  for (const name of names) many.want({ metadata: { uid: name, namespace: 'default', name } } as RenderService, '1');
  let answered = 0;
  for (let round = 0; round < 10; round += 1) {
    await settle();
    for (const answer of asks.splice(0)) {
      answered += 1;
      answer();
    }
  }
  expect([most, answered]).toEqual([512, 20 * 70]);
  for (const name of names) expect(many.of(name)).toMatchObject({ pods: 70, have: 70 });
  many.stop();
});
