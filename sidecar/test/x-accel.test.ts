/**
 * What an application, or a client, may tell nginx: nothing. X-Accel-* of a worker have no effect, buffering included
 * (I4).
 */

import { logs } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';

let pod: Pod;
beforeAll(async () => {
  // Room for a page of 60 MB: what does not fit on the disk goes at the speed of its client, whatever an application
  // says.
  const sidecar = { nginx: { ephemeralStorageLimit: '64Gi' } };
  const accessLog = { query: 'None' as const, clientAddress: 'None' as const, samplingPercent: 50 };
  pod = await Pod.start({ workersPerPod: 1, timeouts: { clientSend: '120s' }, sidecar, accessLog });
});
afterAll(() => pod?.stop());

/** A page whose worker sends these headers, too. */
function page(id: string, headers: Record<string, string>, more = ''): string {
  const query = Object.entries(headers).map(([name, value]) => `&header=${encodeURIComponent(`${name}:${value}`)}`);
  return `/?id=${id}${query.join('')}${more}`;
}

test('X-Accel-Buffering: a client that does not read holds no worker all the same (I4)', async () => {
  const slow = await rawConnection(pod.port(PORTS.http));
  slow.pause();
  // More than all sockets on the way hold.
  const path = page('unbuffered', { 'X-Accel-Buffering': 'no' }, '&size=60000000');
  slow.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  await pod.begun('unbuffered');
  const sessions = 'haproxy_backend_current_sessions{proxy="workers"}';
  await until('HAProxy has no request', async () => (await pod.metric(sessions)) === 0);
  expect((await pod.get('/?id=beside-unbuffered')).status).toBe(200);
  slow.destroy();
});

test('X-Accel-Limit-Rate: a response is as fast as ever', async () => {
  // 200 s at that rate.
  const path = page('limited', { 'X-Accel-Limit-Rate': '1000' }, '&size=200000');
  const { status, body } = await pod.get(path, { signal: AbortSignal.timeout(30_000) });
  expect([status, body.length]).toEqual([200, 200_000]);
});

test('X-Accel-Charset, X-Accel-Expires and X-Accel-Redirect change nothing, and nobody sees them', async () => {
  const path = page('others', {
    'content-type': 'text/html',
    'X-Accel-Charset': 'utf-16',
    'X-Accel-Expires': '3600',
    'X-Accel-Redirect': '/ping',
    'X-Accel-Anything': '1',
  });
  const { status, headers, body } = await pod.get(path);
  expect([status, headers['content-type'], JSON.parse(body).id]).toEqual([200, 'text/html', 'others']);
  expect(Object.keys(headers).filter((name) => name.startsWith('x-accel') || name === 'expires')).toEqual([]);
});

test.each(['@corelane_draining', '@corelane_502', '/@corelane_413'])(
  'no application is rendered twice, or led elsewhere, by X-Accel-Redirect: %s',
  async (target) => {
    const id = `led-${target.replace(/\W/g, '')}`;
    const { status, headers, body } = await pod.get(page(id, { 'X-Accel-Redirect': target }));
    expect([status, headers['x-corelane-error'], JSON.parse(body).id]).toEqual([200, undefined, id]);
    expect(pod.events({ event: 'begin', id })).toHaveLength(1);
  },
);

test.each([
  ...['/@corelane_draining', '/%40corelane_502', '//@corelane_draining', '/@corelane_413'],
  ...['//corelane-400', '/%2fcorelane-400', '/x/..//corelane-431', '///corelane-431'],
])('a client that names an inner place in its URL, %s, gets a page', async (path) => {
  const { status, body } = await pod.get(path, { headers: { 'x-accel-redirect': '@corelane_502' } });
  expect([status, JSON.parse(body).method]).toEqual([200, 'GET']);
});

test('the log has a sample of the requests, all that fail, paths only and no address; the metrics have all', async () => {
  const get = (path: string, id: string, headers = {}) =>
    pod.get(path, { headers: { 'x-request-id': id, ...headers } });
  for (let n = 0; n < 100; n += 1) await get('/sampled?token=secret', `sampled-${n}`);
  for (let n = 0; n < 20; n += 1) await get('/failed?status=500', `failed-${n}`);
  await get('/refused?token=secret', 'refused', { host: 'shop.example,other', 'x-forwarded-for': '203.0.113.7' });
  const lines = await until('the last one is logged', async () => {
    const all = await pod.accessLog();
    return all.some(({ requestId }) => requestId === 'refused') ? all : undefined;
  });
  const of = (name: string) => lines.filter(({ requestId }) => String(requestId).startsWith(name));
  const shown = (name: string) => of(name).map(({ uri, samplingPercent }) => [uri, samplingPercent]);
  // The chance that all of them have a line, or none, is that of 100 coins.
  const { length } = of('sampled-');
  expect([0, 100]).not.toContain(length);
  expect(shown('sampled-')).toEqual(Array(length).fill(['/sampled', 50]));
  expect(shown('failed-')).toEqual(Array(20).fill(['/failed', 100]));
  expect(of('refused')).toMatchObject([{ uri: '/refused', error: 'bad-request', samplingPercent: 100 }]);
  expect([...new Set(lines.map(({ client, proxy }) => `${client}${proxy}`))]).toEqual(['']);
  expect(await logs(pod.nginx)).not.toContain('203.0.113.7');
  // The page of metrics is a second old.
  await until('all are counted', async () => (await ofMetrics('code="4xx",reason="bad-request"')) >= 1);
  expect(await ofMetrics('code="2xx",reason=""')).toBeGreaterThanOrEqual(100);
  expect(await ofMetrics('code="5xx",reason=""')).toBeGreaterThanOrEqual(20);
});

/** Requests that the pod has counted. */
async function ofMetrics(labels: string): Promise<number> {
  const { body } = await pod.get('/corelane/metrics', { port: PORTS.stats });
  const line = body.split('\n').find((text) => text.startsWith(`corelane_requests_total{${labels}} `));
  return Number(line?.split(' ')[1] ?? 0);
}
