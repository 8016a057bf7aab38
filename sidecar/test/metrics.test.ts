/**
 * What a pod's page of metrics says: all that its access log has, and nothing else, whatever happens; in as many series
 * as a Prometheus of many pods can bear.
 */
import { once } from 'node:events';
import net from 'node:net';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { CountedPod, error, WORKER_IDS, WORKERS } from './counted-pod.ts';
import { familiesOf, metricsPage, samplesOf } from './metrics.ts';

let counted: CountedPod;
let pod: Pod;
/** The page before the first request. */
let fresh: Map<string, number>;
beforeAll(async () => {
  counted = await CountedPod.start({
    queue: { maxLength: 3, timeout: '60s' },
    timeouts: { clientBody: '1s' },
    watchdog: { quarantine: { enabled: false } },
    webSockets: { enabled: true },
    buffering: { request: { maxSize: '1Mi' } },
  });
  pod = counted.pod;
  await counted.allUp();
  fresh = samplesOf(await metricsPage(pod));
});
afterAll(() => pod?.stop());

/** What is sent, and what its client is told. */
const FAULTS: Record<string, () => Promise<unknown>> = {
  'nothing but pages': async () => {
    for (const ms of [0, 30, 60, 120, 260]) expect((await counted.get(`/?ms=${ms}&id=ok-${ms}`)).status).toBe(200);
    // Nobody's visits.
    for (const [path, port] of [
      ['/ping', PORTS.http],
      ['/readyz', PORTS.health],
      ['/livez', PORTS.health],
    ] as const)
      expect((await pod.get(path, { port })).status).toBe(200);
  },
  'errors of the application': async () => {
    for (const status of [301, 404, 500, 503, 999])
      expect(error(await counted.get(`/?status=${status}&id=s-${status}`))).toEqual([status, undefined]);
  },
  'a burst': async () => {
    const held = await counted.hold(WORKER_IDS.map((n) => `burst-${n}`));
    const waiting = [1, 2, 3].map((n) => counted.get(`/?id=waits-${n}`));
    await pod.queued(3);
    const refused = await Promise.all(Array.from({ length: 60 }, (_unused, n) => counted.get(`/?id=refused-${n}`)));
    expect(new Set(refused.map((answer) => String(error(answer))))).toEqual(new Set(['503,queue-full']));
    // The page is of this second, or of the one before.
    await until('the page shows who waits', async () => {
      const gauges = samplesOf(await metricsPage(pod));
      return gauges.get('corelane_queue_length') === 3 && gauges.get('corelane_workers{state="busy"}') === WORKERS;
    });
    pod.release(...WORKER_IDS.map((n) => `burst-${n}`));
    for (const answer of await Promise.all([...held, ...waiting])) expect(answer.status).toBe(200);
  },
  'workers that die': async () => {
    // The second worker's answer is the only one.
    expect((await counted.get('/?die=once&id=once')).status).toBe(200);
    expect(pod.events({ event: 'begin', id: 'once' })).toHaveLength(2);
    expect(error(await counted.get('/?die=1&id=post', { method: 'POST' }))).toEqual([502, 'worker-died']);
    await counted.allUp();
    expect(error(await counted.get('/?die=1&id=twice'))).toEqual([502, 'worker-died']);
    await counted.allUp();
  },
  'clients that do not end what they begin': async () => {
    const slow = counted.get('/?id=stopped', { method: 'POST', headers: { 'content-length': '10' } });
    await expect(slow).rejects.toMatchObject({ code: 'ECONNRESET' });
    const leave = new AbortController();
    const left = counted.get('/?hold=1&id=left', { signal: leave.signal });
    await pod.begun('left');
    leave.abort();
    await expect(left).rejects.toThrow();
    pod.release('left');
    const body = Buffer.alloc(1024 * 1024 + 1);
    const large = await counted.get('/?id=large', { method: 'POST', body, headers: { expect: '100-continue' } });
    expect(error(large)).toEqual([413, 'body-too-large']);
  },
  'bytes that are no request, and a host that is none': async () => {
    const socket = net.connect(pod.port(PORTS.http), '127.0.0.1');
    counted.sent += 1;
    socket.end('nothing of HTTP\r\n\r\n').resume();
    await once(socket, 'close');
    expect((await counted.get('/?id=host', { headers: { host: 'a"b' } })).status).toBe(400);
  },
  "a WebSocket, whose time is nobody's": async () => {
    const socket = net.connect(pod.port(PORTS.http), '127.0.0.1');
    counted.sent += 1;
    const head = 'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13';
    socket.write(`GET /?id=ws HTTP/1.1\r\n${head}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`);
    const [bytes] = await once(socket, 'data');
    expect(String(bytes)).toContain(' 101 ');
    socket.destroy();
  },
  'headers that only the proxies may send': async () => {
    const header = (text: string) => `header=${encodeURIComponent(text)}`;
    const forged = ['X-Corelane-Queue-Ms:99999999999999999999', 'X-Corelane-Render-Ms:NaN', 'X-Corelane-Error:a"b\\'];
    const answer = await counted.get(`/?id=forged&${forged.map(header).join('&')}`);
    expect(error(answer)).toEqual([200, undefined]);
  },
};

test.each(Object.entries(FAULTS))('%s: the page says what the log says, in no more series', async (_name, run) => {
  await run();
  await counted.expectPageOfLog();
});

test('the failures that are common are 0 before they happen', () => {
  for (const reason of ['queue-full', 'queue-timeout', 'no-worker', 'render-timeout', 'worker-died', 'worker-stuck'])
    expect([reason, fresh.get(`corelane_requests_total{code="5xx",reason="${reason}"}`)]).toEqual([reason, 0]);
});

test('a page comes without the part of who stands still', async () => {
  const [worker = ''] = pod.workers;
  await docker('pause', worker);
  const watched = `corelane_workers{state="watched"}`;
  const rest = await until('a page without worker-0', async () => {
    const page = samplesOf(await metricsPage(pod));
    return page.get(watched) === WORKERS - 1 ? page : undefined;
  }).finally(() => docker('unpause', worker));
  expect([...rest.keys()].filter((series) => series.includes('worker="0"'))).toEqual([]);
  expect(rest.get('corelane_worker_up{worker="1"}')).toBe(1);
  await counted.allUp();
  await docker('pause', pod.nginx);
  const { body } = await until('a page without nginx', async () => {
    const answer = await pod.get('/corelane/metrics', { port: PORTS.stats });
    return answer.body.includes('corelane_requests_total') ? undefined : answer;
  }).finally(() => docker('unpause', pod.nginx));
  const without = samplesOf(familiesOf(body));
  expect(without.get('corelane_workers{state="up"}')).toBe(WORKERS);
  expect(without.get('corelane_worker_up{worker="1"}')).toBe(1);
});
