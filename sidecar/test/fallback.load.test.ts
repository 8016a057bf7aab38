/**
 * The page for browsers after each time-out and each end of a worker. Here because those time-outs are short, and must
 * outlast what the tests do meanwhile.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { browser, filling, SHELL, seen } from './fallback.ts';

let pod: Pod;
const stop = () => pod?.stop();
const { whileFull } = filling(() => pod);

describe('every error of the proxies, and none of the application', () => {
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 1,
      queue: { timeout: '2s' },
      timeouts: { render: '3s' },
      watchdog: { stallTimeout: '1s' },
      fallback: { html: SHELL },
    });
  });
  afterAll(stop);
  const isUp = () => until('the worker is up', () => pod.isUp(0));

  test('too long a wait, and too long a render', async () => {
    const busy = pod.get('/?hold=1&id=long', browser());
    await pod.begun('long');
    expect(seen(await pod.get('/?id=late', browser()))).toEqual([503, 'queue-timeout', 'shell']);
    expect(seen(await pod.get('/?id=late'))).toEqual([503, 'queue-timeout', 'json']);
    expect(seen(await busy)).toEqual([503, 'render-timeout', 'shell']);
    pod.release('long');
    expect(pod.events({ id: 'late' })).toEqual([]);
    await until('the render ends', () => pod.events({ event: 'end', id: 'long' })[0]);
  });

  test('a worker that dies, is stuck, says nonsense', async () => {
    await isUp();
    expect(seen(await pod.get('/?die=1&id=dies', browser()))).toEqual([503, 'worker-died', 'shell']);
    await isUp();
    expect(seen(await pod.get('/?head=70000&id=nonsense', browser()))).toEqual([503, 'bad-response', 'shell']);
    await isUp();
    const stuck = { 'x-loop': '1', 'x-forwarded-for': '192.0.2.1' };
    for (const _ of [1, 2]) {
      expect(seen(await pod.get('/?id=poison', browser(stuck)))).toEqual([503, 'worker-stuck', 'shell']);
      await isUp();
    }
    const refused = await pod.get('/?id=poison', browser(stuck));
    expect([...seen(refused), refused.headers['retry-after']]).toEqual([503, 'poison', 'shell', '30']);
    expect(seen(await pod.get('/?id=poison', { headers: stuck }))).toEqual([503, 'poison', 'json']);
  });

  test('no worker', async () => {
    const [worker = ''] = pod.workers;
    await docker('stop', '--time', '1', worker);
    await until('it is down', async () => !(await pod.isUp(0)));
    expect(seen(await pod.get('/?id=none', browser()))).toEqual([503, 'no-worker', 'shell']);
    await docker('start', worker);
    await isUp();
  });
});

describe("errors of nginx' own", () => {
  afterEach(stop);

  test('a client that has more requests than it may is told so', async () => {
    pod = await Pod.start({ workersPerPod: 1, fallback: { html: SHELL }, limits: { perClient: { requests: 1 } } });
    const busy = pod.get('/?hold=1&id=busy');
    await pod.begun('busy');
    expect(seen(await pod.get('/', browser()))).toEqual([429, 'client-limit', 'json']);
    pod.release('busy');
    expect((await busy).status).toBe(200);
  });

  test('HAProxy does not answer', async () => {
    const edit = (_file: string, text: string) =>
      text.replace(/proxy_read_timeout [0-9]+ms/, 'proxy_read_timeout 500ms');
    pod = await Pod.start({ workersPerPod: 1, fallback: { html: SHELL } }, { edit });
    const page = pod.get('/?hold=1&id=mute', browser());
    await pod.begun('mute');
    expect(seen(await pod.get('/?id=behind'))).toEqual([504, 'proxy-timeout', 'json']);
    expect(seen(await page)).toEqual([503, 'proxy-timeout', 'shell']);
    pod.release('mute');
  });
});

test('an error of a peer that has the request', async () => {
  const fallback = { html: SHELL };
  const fleet = await Fleet.start(2, {
    workersPerPod: 1,
    timeouts: { render: '3s' },
    queue: { timeout: '60s' },
    fallback,
  });
  try {
    const [home, other] = fleet.pods as [Pod, Pod];
    const busy = home.get('/?hold=1&id=busy');
    await home.begun('busy');
    const away = home.get('/?hold=1&id=away', browser());
    await other.begun('away');
    home.release('busy');
    expect((await busy).status).toBe(200);
    expect(seen(await away)).toEqual([503, 'render-timeout', 'shell']);
    other.release('away');
  } finally {
    await fleet.stop();
  }
});

describe('a page of a ConfigMap', () => {
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 1,
      timeouts: { render: '1s' },
      queue: { maxLength: 1, timeout: '60s' },
      fallback: { configMap: { name: 'shop-shell' }, status: 200 },
    });
  });
  afterAll(stop);

  test('that is not there: a browser gets what programs get', async () => {
    await whileFull(async () => {
      const answer = await pod.get('/', browser());
      expect([...seen(answer), answer.headers['retry-after']]).toEqual([503, 'queue-full', 'json', '1']);
    });
    expect(seen(await pod.get('/?die=1&id=dies', browser()))).toEqual([502, 'worker-died', 'json']);
    await until('the worker is up', () => pod.isUp(0));
    expect(seen(await pod.get('/?hold=1&id=long', browser()))).toEqual([504, 'render-timeout', 'json']);
    pod.release('long');
    await until('the render ends', () => pod.events({ event: 'end', id: 'long' })[0]);
    await docker('kill', '--signal', 'KILL', pod.haproxy);
    expect(seen(await pod.get('/', browser()))).toEqual([502, 'proxy-down', 'json']);
    await docker('start', pod.haproxy);
    await until('served', () =>
      pod.get('/').then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  });
});
