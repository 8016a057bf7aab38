/**
 * What an application, or a client, may tell nginx: nothing. X-Accel-* of a worker have no effect, buffering included
 * (I4).
 */

import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';

let pod: Pod;
beforeAll(async () => {
  // Room for a page of 60 MB: what does not fit on the disk goes at the speed of its client, whatever an application
  // says.
  const sidecar = { nginx: { ephemeralStorageLimit: '64Gi' } };
  pod = await Pod.start({ workersPerPod: 1, timeouts: { clientSend: '120s' }, sidecar });
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

test.each(['/@corelane_draining', '/%40corelane_502', '//@corelane_draining', '/@corelane_413'])(
  'a client that names an inner place in its URL, %s, gets a page',
  async (path) => {
    const { status, body } = await pod.get(path, { headers: { 'x-accel-redirect': '@corelane_502' } });
    expect([status, JSON.parse(body).method]).toEqual([200, 'GET']);
  },
);
