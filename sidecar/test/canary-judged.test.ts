/** What a canary is judged by: each request is counted once, where it was decided, by what its client got. */
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { type BothClients, clientsSince, type SidesPage } from '../../operator/src/pods/side-counts.ts';
import { CANARY, CanaryFleet, COOKIE, canaryAt, IN_QUEUE, type Side } from './canary.ts';
import { page } from './canary-judged.ts';

const SPEC: Partial<RenderServiceSpecInput> = { workersPerPod: 1, queue: { maxLength: 3 } };

let all: CanaryFleet;
let stable: Pod;
let canary: Pod;
beforeAll(async () => {
  all = await CanaryFleet.start(1, 1, SPEC, PATIENT_PEERS);
  [stable, canary] = [all.stable[0] as Pod, all.canary[0] as Pod];
  await all.untilSidesKnown();
});
afterAll(() => all?.stop());
/** Whoever is nobody in particular is on the canary's side then. */
beforeEach(() => all.set(canaryAt(10_000)));
afterEach(() => all.set(undefined));

/** A place that is on the canary's side at any share, and one that is on the other side. */
const OFFSET = Number.parseInt(CANARY, 16) % 10_000;
const PLACES = { canary: (20_000 - OFFSET) % 10_000, stable: (20_000 - OFFSET - 1) % 10_000 };
let visitors = 0;
/** Somebody who has not been here before, with a place on that side. */
const at = (side: Side) => {
  visitors += 1;
  const cookie = `${COOKIE}=${PLACES[side]}`;
  return { cookie, 'x-forwarded-for': `2001:db8:${visitors.toString(16)}::1` };
};

interface Figures {
  requests: number;
  errors: number;
  renders: number;
}
const figures = ({ requests, errors, times }: SidesPage['canary']): Figures => ({
  ...{ requests, errors },
  renders: times.reduce((sum, count) => sum + count, 0),
});
const NONE: Figures = { requests: 0, errors: 0, renders: 0 };
const less = (one: Figures, other: Figures): Figures => ({
  requests: one.requests - other.requests,
  errors: one.errors - other.errors,
  renders: one.renders - other.renders,
});

/** What is counted more. */
const moreOf = (before: SidesPage, after: SidesPage): Record<Side, Figures> => ({
  canary: less(figures(after.canary), figures(before.canary)),
  stable: less(figures(after.stable), figures(before.stable)),
});

/** What is counted more in a pod when that has been done. */
async function counted(pod: Pod, act: () => Promise<unknown>): Promise<Record<Side, Figures>> {
  const before = await page(pod);
  await act();
  return moreOf(before, await page(pod));
}
const one = (more: Partial<Figures> = {}): Figures => ({ ...NONE, requests: 1, ...more });
const RENDERED = one({ renders: 1 });
const FAILED = one({ errors: 1 });
const status = async (answer: Promise<Answer>) => (await answer).status;
let id = 0;
const fresh = () => {
  id += 1;
  return `judged-${id}`;
};

test('an answer of either side, by the pod that has decided, also where the other one renders it', async () => {
  for (const side of ['canary', 'stable'] as const) {
    // One of 10,000 is on the canary's side at this share.
    if (side === 'stable') await all.set(canaryAt(1));
    for (const pod of all.pods) {
      const other = pod === stable ? canary : stable;
      const before = await page(other);
      const more = await counted(pod, () => pod.get(`/?id=${fresh()}`));
      expect(more).toEqual({ canary: NONE, stable: NONE, [side]: RENDERED });
      expect(await page(other)).toEqual(before);
    }
  }
});

test('an error is 5xx, whoever has made it; 4xx and redirects are none', async () => {
  const get = (path: string) => stable.get(path);
  expect((await counted(stable, () => get(`/e-${fresh()}?status=500`))).canary).toEqual(FAILED);
  expect((await counted(stable, () => get(`/e-${fresh()}?status=503`))).canary).toEqual(FAILED);
  for (const code of [301, 404, 429, 499])
    expect((await counted(stable, () => get(`/?status=${code}&id=${fresh()}`))).canary).toEqual(RENDERED);
});

const times = async (count: number, call: (n: number) => Promise<unknown>) => {
  for (let n = 0; n < count; n += 1) await call(n);
};

test('what fails by chance counts each time; of clients that are here by their place it is told who has failed', async () => {
  const nobody = () => stable.get(`/chance-${fresh()}?status=500`);
  expect((await counted(stable, () => times(5, nobody))).canary).toEqual({ requests: 5, errors: 5, renders: 0 });
  await all.set(canaryAt(5_000));
  /** Another place of the canary's and another page each time. */
  const visits = (address: string, what: string) => (n: number) =>
    stable.get(`/mine-${fresh()}?${what}`, {
      headers: { 'x-forwarded-for': address, cookie: `${COOKIE}=${(PLACES.canary + 7 * n) % 10_000}` },
    });
  const before = await page(stable);
  await times(20, visits('192.0.2.1', 'status=500'));
  // Everybody has as many addresses of IPv6 as he likes.
  await times(3, visits('2001:db8:ffff::1', 'status=500'));
  await times(3, visits('2001:db8:ffff:1::2', 'status=500'));
  await times(120, visits('192.0.2.2', 'ms=1'));
  const after = await page(stable);
  expect(moreOf(before, after)).toEqual({ canary: NONE, stable: NONE });
  const { canary: ofCanary, stable: ofStable } = clientsSince(before, after);
  expect([ofCanary.failed.length, ofCanary.seen]).toEqual([2, 126]);
  expect(ofStable).toEqual({ seen: 0, failed: [] });
});

test('as many places of either side are compared, and a cookie of anybody counts nowhere', async () => {
  await all.set(canaryAt(500));
  const seen = async (headers: Record<string, string>): Promise<BothClients> => {
    const before = await page(stable);
    const after = await stable.get(`/?status=500&id=${fresh()}`, { headers }).then(() => page(stable));
    expect(moreOf(before, after)).toEqual({ canary: NONE, stable: NONE });
    return clientsSince(before, after);
  };
  const nobody = { seen: 0, failed: [] };
  const one = { seen: 1, failed: [expect.any(String)] };
  expect(await seen(at('canary'))).toEqual({ canary: one, stable: nobody });
  expect(await seen(at('stable'))).toEqual({ canary: nobody, stable: one });
  // Of the other side, and not one of the 500 that are compared with the canary's.
  const between = { ...at('stable'), cookie: `${COOKIE}=${(PLACES.canary + 5_000) % 10_000}` };
  expect(await seen(between)).toEqual({ canary: nobody, stable: nobody });
  expect(await seen({ cookie: at('canary').cookie })).toEqual({ canary: nobody, stable: nobody });
});

test('an answer that is lost is one error of the side that has lost it, and its second try is counted nowhere', async () => {
  const name = fresh();
  // The other side's worker knows it.
  await all.set(canaryAt(1));
  await stable.get(`/?id=${name}`, { headers: at('stable') });
  await all.set(canaryAt(10_000));
  const more = await counted(stable, () => stable.get(`/lost-${name}?die=once&id=${name}`));
  expect(more).toEqual({ canary: FAILED, stable: NONE });
  await until('its worker is back', () => canary.isUp(0));
});

test('the second try fails, too: one error', async () => {
  const name = fresh();
  const more = await counted(stable, async () =>
    expect(await status(stable.get(`/both-${name}?die=1&id=${name}`))).toBe(502),
  );
  expect(more).toEqual({ canary: FAILED, stable: NONE });
  await until('their workers are back', async () => (await canary.isUp(0)) && (await stable.isUp(0)));
});

test('what may be rendered once, and is lost: one error', async () => {
  const name = fresh();
  const call = { method: 'POST', body: 'x' };
  const more = await counted(stable, async () =>
    expect(await status(stable.get(`/once-${name}?die=1&id=${name}`, call))).toBe(502),
  );
  expect(more).toEqual({ canary: FAILED, stable: NONE });
  await until('its worker is back', () => canary.isUp(0));
});

test('requests that are on a side by a rule, probes, pings and pages of figures are not counted', async () => {
  await all.set(canaryAt(1, { match: [{ header: 'X-Tester', value: '1' }] }));
  const before = await Promise.all(all.pods.map(page));
  expect(await status(stable.get(`/?status=500&id=${fresh()}`, { headers: { 'x-tester': '1' } }))).toBe(500);
  for (const pod of all.pods) {
    await pod.get('/readyz', { port: PORTS.health });
    await pod.get('/livez', { port: PORTS.health });
    await pod.get('/ping');
    await pod.get('/metrics', { port: PORTS.stats });
  }
  expect(await Promise.all(all.pods.map(page))).toEqual(before);
});

test('who goes, from the queue or while he is rendered, is nobody, and so is who finds no place', async () => {
  const [held, leaves] = [fresh(), fresh()];
  const more = await counted(canary, async () => {
    const inQueue = async () =>
      (await canary.metric(IN_QUEUE)) + (await canary.metric('haproxy_backend_current_queue{proxy="line"}'));
    const gone = new AbortController();
    const rendered = canary.get(`/?hold=1&id=${held}`, { signal: gone.signal }).catch(() => 'gone');
    await canary.begun(held);
    const queued = canary.get(`/?id=${leaves}`, { signal: gone.signal }).catch(() => 'gone');
    await until('it waits', async () => (await inQueue()) === 1);
    gone.abort();
    expect(await Promise.all([rendered, queued])).toEqual(['gone', 'gone']);
    await until('it has left', async () => (await inQueue()) === 0);
    canary.release(held);
    await until(
      'its worker idles',
      async () => (await canary.metric('haproxy_backend_current_sessions{proxy="workers"}')) === 0,
    );
  });
  expect(more.canary.errors).toBe(0);
  expect(more.stable).toEqual(NONE);
});

test('a queue that is full says nothing of either revision', async () => {
  // More than both pods have room for: what the canary has none for goes to the other side.
  const ids = Array.from({ length: 12 }, fresh);
  const more = await counted(canary, async () => {
    const answers = ids.map((name) => canary.get(`/?hold=1&id=${name}`));
    const refused = await Promise.race(answers);
    expect([refused.status, refused.headers['x-corelane-error']]).toEqual([503, 'queue-full']);
    for (const pod of all.pods) pod.release(...ids);
    await Promise.all(answers);
  });
  expect([more.canary.errors, more.stable.errors]).toEqual([0, 0]);
  expect(more.canary.requests + more.stable.requests).toBeLessThan(ids.length);
});

test('an application cannot say how long it took, nor that it was no error', async () => {
  const before = await page(stable);
  const get = (path: string) => stable.get(path);
  await get(`/?header=x-corelane-render-ms:99999&id=${fresh()}`);
  await get(`/f-${fresh()}?status=500&header=x-corelane-error:queue-full`);
  const after = await page(stable);
  expect(moreOf(before, after).canary).toEqual({ requests: 2, errors: 1, renders: 1 });
  expect(after.canary.times.slice(120)).toEqual(before.canary.times.slice(120));
});

test('another canary begins with nothing, and so does a HAProxy that was started again, which says so', async () => {
  await stable.get(`/?id=${fresh()}`);
  const before = await page(stable);
  expect(before.revision).toBe(Number.parseInt(CANARY, 16));
  expect(before.canary.requests).toBeGreaterThan(0);
  await all.set(canaryAt(1, { revision: 'aaaaaaaaaa' }));
  // Its pods are of no side: it renders what is there.
  await stable.get(`/?id=${fresh()}`);
  const other = await page(stable);
  expect([other.revision, other.epoch]).toEqual([0xaaaaaaaaaa, before.epoch]);
  expect(other.canary.requests + other.stable.requests).toBe(1);
  await stable.killProxy(stable.haproxy, 'haproxy', { withChildren: true });
  const again = await until('it answers', () => page(stable).catch(() => undefined));
  expect(again.epoch).not.toBe(before.epoch);
  expect([figures(again.canary), figures(again.stable)]).toEqual([NONE, NONE]);
});
