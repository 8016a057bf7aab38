/** Past its limits a pod answers at once, and says who made the error and when to come back (I3). */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { error } from './limits.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({
    workersPerPod: 1,
    queue: { maxLength: 2, timeout: '60s' },
    timeouts: { clientBody: '1s' },
    runtime: { nodeFlags: ['--max-http-header-size=20000'] },
  });
});
afterAll(() => pod?.stop());

test('a full queue refuses at once, and those in it are served', async () => {
  const busy = pod.get('/?hold=1&id=full');
  await pod.begun('full');
  const waiting = [1, 2].map((n) => pod.get(`/?id=full-waits-${n}`));
  await pod.queued(2);
  expect(error(await pod.get('/?id=full-refused'))).toEqual([503, 'queue-full', '1']);
  // The worker is still at the first one: the refusal has waited for nobody.
  expect(pod.events({ event: 'end', id: 'full' })).toEqual([]);
  pod.release('full');
  expect((await Promise.all([busy, ...waiting])).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(pod.events({ id: 'full-refused' })).toEqual([]);
});

test('who waits too long is told so, and is never rendered', async () => {
  const soon = await Pod.start({ workersPerPod: 1, queue: { timeout: '1s' } });
  try {
    await until('it is up', () => soon.isUp(0));
    const busy = soon.get('/?hold=1&id=timeout-busy');
    await soon.begun('timeout-busy');
    const answer = await soon.get('/?id=timeout-waits');
    expect(error(answer)).toEqual([503, 'queue-timeout', '1']);
    expect(JSON.parse(answer.body)).toEqual({ error: 'queue-timeout' });
    soon.release('timeout-busy');
    expect((await busy).status).toBe(200);
    expect(soon.events({ id: 'timeout-waits' })).toEqual([]);
  } finally {
    await soon.stop();
  }
});

test('the head of a response beyond 64 KiB is no death: its own reason, and no second worker', async () => {
  for (const [name, head] of [
    ['fits', 60_000],
    ['too-large', 70_000],
  ] as const)
    for (const method of ['GET', 'POST']) {
      const id = `${name}-${method}`;
      // The second time over a kept connection.
      for (let n = 0; n < 2; n += 1) {
        const { status, headers } = await pod.get(`/?head=${head}&id=${id}`, { method });
        const expected = name === 'fits' ? [200, undefined] : [502, 'bad-response'];
        expect([id, status, headers['x-corelane-error']]).toEqual([id, ...expected]);
      }
      expect(pod.events({ event: 'begin', id })).toHaveLength(2);
    }
});

test('a head that only the Node.js of the worker refuses has the reason, and an own 431 has none', async () => {
  const headers = { 'x-a': 'a'.repeat(13_000), 'x-b': 'b'.repeat(13_000) };
  for (const method of ['GET', 'POST']) {
    const answer = await pod.get(`/?id=own-bound-${method}`, { headers, method });
    expect([error(answer), answer.body]).toEqual([[431, 'head-too-large', undefined], '{"error":"head-too-large"}']);
    expect(pod.events({ id: `own-bound-${method}` })).toEqual([]);
  }
  expect(error(await pod.get('/?id=own-431&status=431'))).toEqual([431, undefined, undefined]);
});

test('errors of the application pass through; only the proxies name theirs', async () => {
  for (const status of [404, 500, 502, 503, 504, 418]) {
    const answer = await pod.get(`/?id=app-${status}&status=${status}`);
    expect([...error(answer), JSON.parse(answer.body).id]).toEqual([status, undefined, undefined, `app-${status}`]);
    expect(pod.events({ event: 'begin', id: `app-${status}` })).toHaveLength(1);
  }
});

test('a client that stops in the middle of its body is closed and logged', async () => {
  const stopped = new Promise((resolve) => {
    const signal = AbortSignal.timeout(20_000); // nginx' own default is 60 s
    const call = pod.get('/?id=stopped', { method: 'POST', headers: { 'content-length': '10' }, signal });
    call.then(resolve, resolve);
  });
  expect(await stopped).toMatchObject({ code: 'ECONNRESET' });
  const line = await until('it is logged', async () =>
    (await pod.accessLog()).find(({ uri }) => String(uri).includes('stopped')),
  );
  expect(line.status).toBe(408);
  expect(pod.events({ id: 'stopped' })).toEqual([]);
});

test('without HAProxy the answer says so, and both come back over stale sockets', async () => {
  await docker('kill', '--signal', 'KILL', pod.haproxy);
  expect(error(await pod.get('/?id=no-proxy'))).toEqual([502, 'proxy-down', undefined]);
  await docker('kill', '--signal', 'KILL', pod.nginx);
  await docker('start', pod.haproxy, pod.nginx);
  await until('ready', () =>
    pod.get('/readyz', { port: PORTS.health }).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  await until('served', () =>
    pod.get('/?id=restarted').then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
});
