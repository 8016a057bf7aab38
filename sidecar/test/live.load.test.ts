/**
 * Settings that change while a pod, or a fleet, runs. Here because of times that must pass, of a load, and of what a
 * moment of the machine can spoil.
 */
import http from 'node:http';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { liveSerial, renderLive } from '../../operator/src/render/live.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { page, seconds, statusOf } from './cache.ts';
import { error, type Input, liveSettings, statuses } from './live.ts';

let pod: Pod;
const stop = () => pod?.stop();
const { live, change, hold } = liveSettings(() => pod);

/** Says to pods which revision rests, and waits until they know. */
async function restAll(pods: Pod[], resting: string | undefined): Promise<void> {
  for (const one of pods) {
    const settings = renderLive(one.spec, undefined, resting);
    one.writeLive(settings);
    await until('it has them', async () => (await live(one)) === `serial=${liveSerial(settings)}\n`);
  }
}

describe('one worker', () => {
  const input: Input = {
    ...{ workersPerPod: 1, queue: { maxLength: 1, timeout: '60s' }, timeouts: { render: '60s' } },
    fallback: { html: '<p>one</p>' },
  };
  beforeAll(async () => {
    pod = await Pod.start(input);
  });
  afterAll(stop);
  afterEach(() => change(input));

  test('concurrency: more at a time, and fewer, without a moment in which there are too many', async () => {
    const limit = () => pod.metric('haproxy_server_limit_sessions{proxy="workers",server="worker-0"}');
    const inLine = () => pod.metric('haproxy_server_limit_sessions{proxy="line",server="slots"}');
    await change({ ...input, concurrency: 3 });
    // The worker is told first.
    await until('three at a time', async () => (await limit()) === 3);
    const three = ['wide-1', 'wide-2', 'wide-3'];
    const wide = await hold(three);
    expect(pod.events({ event: 'begin' }).find(({ id }) => id === 'wide-3')?.inFlight).toBeLessThanOrEqual(3);
    await change(input);
    // Places are looked at at another moment than the file.
    await until('one at a time', async () => (await limit()) === 1 && (await inLine()) === 1);
    // All three are there still, and one that comes now waits for the last of them.
    const waits = pod.get('/?id=narrow');
    await pod.queued(1);
    await wide.release();
    expect((await waits).status).toBe(200);
    // The worker itself goes on letting three through for two seconds: HAProxy might not know yet.
    const limitInWorker = () => pod.runtimeMetric(0, 'corelane_worker_concurrency_limit');
    await until('one at a time in the worker', async () => (await limitInWorker()) === 1);
    await Promise.all([1, 2, 3, 4].map((n) => pod.get(`/?ms=20&id=after-${n}`)));
    const begun = pod.events({ event: 'begin' }).filter(({ id }) => id?.startsWith('after-'));
    expect(Math.max(...begun.map(({ inFlight = 0 }) => inFlight))).toBe(1);
  });

  test('timeouts.render: from the next request on', async () => {
    await change({ ...input, concurrency: 2, timeouts: { render: '60s' } });
    const before = await hold(['slow-before']);
    await change({ ...input, concurrency: 2, timeouts: { render: '10s' } });
    expect(error(await pod.get('/?hold=1&id=slow-after'))).toEqual([504, 'render-timeout']);
    // It had begun earlier, and has had longer.
    await before.release();
    pod.release('slow-after');
  });
});

describe('with concurrency: Auto', () => {
  const input: Input = { workersPerPod: 1, concurrency: 'Auto', concurrencyRange: { min: 1, max: 4 } };
  beforeAll(async () => {
    pod = await Pod.start(input);
  });
  afterAll(stop);

  test('concurrencyRange: both bounds, at once', async () => {
    const limit = () => pod.metric('haproxy_server_limit_sessions{proxy="workers",server="worker-0"}');
    await change({ ...input, concurrencyRange: { min: 6, max: 9 } });
    await until('the least', async () => (await limit()) === 6);
    const limitInWorker = () => pod.runtimeMetric(0, 'corelane_worker_concurrency_limit');
    await until('the least in the worker', async () => (await limitInWorker()) === 6);
    await hold(['a', 'b', 'c', 'd', 'e', 'f']).then((six) => six.release());
    await change({ ...input, concurrencyRange: { min: 1, max: 2 } });
    await until('the most', async () => (await limit()) === 2);
    await until('the most in the worker', async () => (await limitInWorker()) === 2);
  });
});

test('priority: other delays, and other shares of the queue', async () => {
  const classes = (delay: string, maxQueue: string): Input => ({
    workersPerPod: 1,
    queue: { maxLength: 10, timeout: '60s' },
    priority: { classes: [{ name: 'later', match: [{ header: { name: 'X-Later' } }], delay, maxQueue }] },
  });
  pod = await Pod.start(classes('5m', '100%'));
  try {
    const later = { headers: { 'x-later': '1' } };
    const order = async (name: string) => {
      const busy = await hold([`${name}-busy`]);
      const answers = [pod.get(`/?id=${name}-later`, later)];
      await pod.queued(1);
      answers.push(pod.get(`/?id=${name}-soon`));
      await pod.queued(2);
      await busy.release();
      expect(await statuses(answers)).toEqual([200, 200]);
      const begun = pod
        .events({ event: 'begin' })
        .filter(({ id }) => new RegExp(`^${name}-(soon|later)$`).test(id ?? ''));
      return begun.map(({ id }) => id?.split('-')[1]);
    };
    expect(await order('before')).toEqual(['soon', 'later']);
    await change(classes('0s', '100%'));
    expect(await order('after')).toEqual(['later', 'soon']);
    await change(classes('3s', '0%'));
    const busy = await hold(['share-busy']);
    const refused = await pod.get('/', later);
    expect([...error(refused), refused.headers['retry-after']]).toEqual([503, 'queue-full', '3']);
    await busy.release();
  } finally {
    await pod.stop();
  }
});

test('limits.perClient.requests: more, or fewer, and who has more already keeps them', async () => {
  const input = (requests: number): Input => ({
    ...{ workersPerPod: 1, queue: { maxLength: 10, timeout: '60s' }, limits: { perClient: { requests } } },
  });
  pod = await Pod.start(input(1));
  try {
    const from = { headers: { 'x-forwarded-for': '203.0.113.7' } };
    const held = [pod.get('/?hold=1&id=client-busy', from)];
    await pod.begun('client-busy');
    expect(error(await pod.get('/', from))).toEqual([429, 'client-limit']);
    await change(input(3));
    // nginx looks at another moment than HAProxy, which tells.
    await until('nginx has it, too', async () => {
      const signal = AbortSignal.timeout(500);
      return (await pod.get('/', { ...from, signal }).catch(() => ({ status: 0 }))).status === 0;
    });
    for (const id of ['client-2', 'client-3']) held.push(pod.get(`/?id=${id}`, from));
    await pod.queued(2);
    expect(error(await pod.get('/', from))).toEqual([429, 'client-limit']);
    await change(input(1));
    expect(error(await pod.get('/', from))).toEqual([429, 'client-limit']);
    pod.release('client-busy');
    expect(await statuses(held)).toEqual([200, 200, 200]);
    expect((await pod.get('/', from)).status).toBe(200);
  } finally {
    await pod.stop();
  }
});

test('cache: how long pages are kept, and how long after that', async () => {
  const cache = (value: string, staleIfError: string): Input => ({
    workersPerPod: 1,
    cache: { enabled: true, ttl: [{ pathPrefix: '/', value }], staleIfError },
  });
  pod = await Pod.start(cache('1s', '0s'));
  try {
    const kept = async (id: string) => {
      await pod.get(page(id));
      await seconds(2.2);
      return statusOf(await pod.get(page(id)))
        ?.split(';')[1]
        ?.trim();
    };
    expect(await kept('short')).not.toBe('hit');
    await change(cache('60s', '0s'));
    expect(await kept('long')).toBe('hit');
    // A page that is rendered once, and not a second time.
    const afterAnError = async (id: string) => {
      const path = page(id, 'max-age=60', '&good=1');
      expect((await pod.get(path)).status).toBe(200);
      await seconds(2.2);
      return (await pod.get(path)).status;
    };
    await change(cache('1s', '60s'));
    expect(await afterAnError('stale')).toBe(200);
    await change(cache('1s', '0s'));
    expect(await afterAnError('over')).toBe(500);
  } finally {
    await pod.stop();
  }
});

test('readiness.shedWhenFull and pooling.maxAsks: a fleet', async () => {
  const input: Input = {
    workersPerPod: 1,
    queue: { maxLength: 1, timeout: '60s' },
    readiness: { shedWhenFull: false },
  };
  const fleet = await Fleet.start(2, input);
  try {
    const [full, other] = fleet.pods as [Pod, Pod];
    pod = full;
    const all = [await hold(['full-busy'], full), await hold(['other-busy'], other)];
    const waits = full.get('/?id=full-waits');
    await full.queued(1);
    const ready = () => full.isReady();
    await seconds(3);
    expect(await ready()).toBe(true);
    await change({ ...input, readiness: { shedWhenFull: true } }, full);
    await until('it leaves the Service', async () => !(await ready()));
    await change({ ...input, readiness: { shedWhenFull: false }, pooling: { maxAsks: 1 } }, full);
    await until('it is back', ready);
    for (const one of all) await one.release();
    expect((await waits).status).toBe(200);
  } finally {
    await fleet.stop();
  }
});

test('pooling.acrossRevisions: old and new pods share, or not', async () => {
  const input = (acrossRevisions: boolean): Input => ({
    ...{ workersPerPod: 1, queue: { maxLength: 10, timeout: '60s' }, pooling: { acrossRevisions } },
  });
  const fleet = await Fleet.start(1, input(false), { revision: 'old' });
  try {
    const home = fleet.pods[0] as Pod;
    const other = await fleet.add(input(false), { revision: 'new' });
    await fleet.untilAllKnown();
    const busy = await hold(['revision-busy'], home);
    const waits = home.get('/?id=waits');
    await home.queued(1);
    for (const one of [home, other]) await change(input(true), one);
    expect((await waits).status).toBe(200);
    expect(other.events({ event: 'begin', id: 'waits' })).toHaveLength(1);
    await busy.release();
  } finally {
    await fleet.stop();
  }
});

test('pooling.acrossRevisions: a pod of a revision that rests renders nothing for others', async () => {
  const queue = { maxLength: 10, timeout: '60s' };
  const input: Input = { workersPerPod: 1, queue, pooling: { acrossRevisions: true } };
  const rests = '00000000bb';
  const fleet = await Fleet.start(1, input, { revision: '00000000aa' });
  try {
    const home = fleet.pods[0] as Pod;
    const other = await fleet.add(input, { revision: rests });
    await fleet.untilAllKnown();
    await restAll(fleet.pods, rests);
    const busy = await hold(['resting-busy'], home);
    const waits = home.get('/?id=resting-waits');
    await home.queued(1);
    // It asks all that may render it as soon as it waits, and a free one says yes at once.
    await seconds(1);
    expect(other.events({ event: 'begin', id: 'resting-waits' })).toEqual([]);
    await restAll(fleet.pods, undefined);
    expect((await waits).status).toBe(200);
    expect(other.events({ event: 'begin', id: 'resting-waits' })).toHaveLength(1);
    await busy.release();
  } finally {
    await fleet.stop();
  }
});

test('a revision that rests: who has a connection is told to come with a new one, until it is asked for again', async () => {
  pod = await Pod.start({ workersPerPod: 1 }, { revision: '00000000ab' });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const answer = async () => {
      const { status, headers } = await pod.get('/', { agent });
      return [status, headers.connection];
    };
    expect(await answer()).toEqual([200, 'keep-alive']);
    for (const [resting, expected] of [
      // Beside nginx' own word, over which it prevails.
      ['00000000ab', 'keep-alive, close'],
      ['00000000ac', 'keep-alive'],
      ['ffffffffff', 'keep-alive'],
      ['00000000ab', 'keep-alive, close'],
      [undefined, 'keep-alive'],
    ] as const) {
      await restAll([pod], resting);
      // The connection of before is told, too: it is not only new ones.
      expect(await answer()).toEqual([200, expected]);
    }
  } finally {
    agent.destroy();
    await pod.stop();
  }
});

test('under load every change loses no request', async () => {
  const input: Input = { workersPerPod: 2, queue: { maxLength: 200, timeout: '60s' }, timeouts: { render: '60s' } };
  pod = await Pod.start(input);
  try {
    let isOver = false;
    const answers: number[] = [];
    const client = async () => {
      while (!isOver) answers.push((await pod.get('/?ms=5')).status);
    };
    const clients = Array.from({ length: 12 }, client);
    for (const [concurrency, maxLength, render] of [
      [4, 300, '40s'],
      [1, 100, '10s'],
      [16, 10_000, '60s'],
      [2, 50, '30s'],
    ] as const) {
      const before = answers.length;
      await change({ ...input, concurrency, queue: { maxLength, timeout: '60s' }, timeouts: { render } });
      await until('requests have met it', () => answers.length > before + 100);
    }
    isOver = true;
    await Promise.all(clients);
    const failed = answers.filter((status) => status !== 200).length;
    figure('requests lost while live settings change', failed, `of ${answers.length}`, '0');
    expect([...new Set(answers)]).toEqual([200]);
  } finally {
    await pod.stop();
  }
});
