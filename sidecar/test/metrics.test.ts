/**
 * What a pod's page of metrics says: all that its access log has, and nothing else, whatever happens; in as many series
 * as a Prometheus of many pods can bear.
 */
import { once } from 'node:events';
import net from 'node:net';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { POD_METRICS } from '../../operator/gen/metrics/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { canaryAt, setCanary } from './canary.ts';
import { countedOf, type Family, familiesOf, metricsPage, ofNginx, pageAndLog, samplesOf } from './metrics.ts';

/** Series of a pod of four workers without the cache: twenty thousand pods are two and a half million. */
const SERIES_MAX = 120;
const WORKERS = 4;

const error = ({ status, headers }: Answer) => [status, headers['x-corelane-error']];

let pod: Pod;
/** Requests that have been sent to the pod, and have ended. */
let sent = 0;
beforeAll(async () => {
  pod = await Pod.start({
    workersPerPod: WORKERS,
    queue: { maxLength: 3, timeout: '8s' },
    timeouts: { render: '8s', clientBody: '1s' },
    watchdog: { stallTimeout: '1s', quarantine: { enabled: false } },
    webSockets: { enabled: true },
    buffering: { request: { maxSize: '1Mi' } },
  });
});
afterAll(() => pod?.stop());

async function get(path: string, call?: Parameters<Pod['get']>[1]): Promise<Answer> {
  sent += 1;
  return pod.get(path, call);
}

const allUp = () =>
  Promise.all(Array.from({ length: WORKERS }, (_unused, n) => until(`worker-${n} is up`, () => pod.isUp(n))));

/** All workers have a request that is held. */
async function hold(ids: string[]): Promise<Promise<Answer>[]> {
  const held = ids.map((id) => get(`/?hold=1&id=${id}`));
  await Promise.all(ids.map((id) => pod.begun(id)));
  return held;
}

const WORKER_IDS = Array.from({ length: WORKERS }, (_unused, n) => String(n));

/** What is sent, and what its client is told. */
const FAULTS: Record<string, () => Promise<unknown>> = {
  'nothing but pages': async () => {
    for (const ms of [0, 30, 60, 120, 260]) expect((await get(`/?ms=${ms}&id=ok-${ms}`)).status).toBe(200);
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
      expect(error(await get(`/?status=${status}&id=s-${status}`))).toEqual([status, undefined]);
  },
  'a burst': async () => {
    const held = await hold(WORKER_IDS.map((n) => `burst-${n}`));
    const waiting = [1, 2, 3].map((n) => get(`/?id=waits-${n}`));
    await pod.queued(3);
    const refused = await Promise.all(Array.from({ length: 60 }, (_unused, n) => get(`/?id=refused-${n}`)));
    expect(new Set(refused.map((answer) => String(error(answer))))).toEqual(new Set(['503,queue-full']));
    // The page is of this second, or of the one before.
    await until('the page shows who waits', async () => {
      const gauges = samplesOf(await metricsPage(pod));
      return gauges.get('corelane_queue_length') === 3 && gauges.get('corelane_workers{state="busy"}') === WORKERS;
    });
    pod.release(...WORKER_IDS.map((n) => `burst-${n}`));
    for (const answer of await Promise.all([...held, ...waiting])) expect(answer.status).toBe(200);
  },
  'who waits for too long, and renders beyond their limit': async () => {
    const held = await hold(WORKER_IDS.map((n) => `late-${n}`));
    expect(error(await get('/?id=waits-long'))).toEqual([503, 'queue-timeout']);
    for (const answer of await Promise.all(held)) expect(error(answer)).toEqual([504, 'render-timeout']);
    pod.release(...WORKER_IDS.map((n) => `late-${n}`));
    await allUp();
  },
  'workers that die': async () => {
    // The second worker's answer is the only one.
    expect((await get('/?die=once&id=once')).status).toBe(200);
    expect(pod.events({ event: 'begin', id: 'once' })).toHaveLength(2);
    expect(error(await get('/?die=1&id=post', { method: 'POST' }))).toEqual([502, 'worker-died']);
    await allUp();
    expect(error(await get('/?die=1&id=twice'))).toEqual([502, 'worker-died']);
    await allUp();
  },
  'a worker that is stuck': async () => {
    expect(error(await get('/?loop=1&id=stuck'))).toEqual([502, 'worker-stuck']);
    await allUp();
  },
  'clients that do not end what they begin': async () => {
    const slow = get('/?id=stopped', { method: 'POST', headers: { 'content-length': '10' } });
    await expect(slow).rejects.toMatchObject({ code: 'ECONNRESET' });
    const leave = new AbortController();
    const left = get('/?hold=1&id=left', { signal: leave.signal });
    await pod.begun('left');
    leave.abort();
    await expect(left).rejects.toThrow();
    pod.release('left');
    const body = Buffer.alloc(1024 * 1024 + 1);
    const large = await get('/?id=large', { method: 'POST', body, headers: { expect: '100-continue' } });
    expect(error(large)).toEqual([413, 'body-too-large']);
  },
  'bytes that are no request, and a host that is none': async () => {
    const socket = net.connect(pod.port(PORTS.http), '127.0.0.1');
    sent += 1;
    socket.end('nothing of HTTP\r\n\r\n').resume();
    await once(socket, 'close');
    expect((await get('/?id=host', { headers: { host: 'a"b' } })).status).toBe(400);
  },
  "a WebSocket, whose time is nobody's": async () => {
    const socket = net.connect(pod.port(PORTS.http), '127.0.0.1');
    sent += 1;
    const head = 'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13';
    socket.write(`GET /?id=ws HTTP/1.1\r\n${head}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`);
    const [bytes] = await once(socket, 'data');
    expect(String(bytes)).toContain(' 101 ');
    socket.destroy();
  },
  'headers that only the proxies may send': async () => {
    const header = (text: string) => `header=${encodeURIComponent(text)}`;
    const forged = ['X-Corelane-Queue-Ms:99999999999999999999', 'X-Corelane-Render-Ms:NaN', 'X-Corelane-Error:a"b\\'];
    const answer = await get(`/?id=forged&${forged.map(header).join('&')}`);
    expect(error(answer)).toEqual([200, undefined]);
  },
};

test.each(Object.entries(FAULTS))('%s: the page says what the log says, in no more series', async (_name, run) => {
  await run();
  const [page, log] = await pageAndLog(pod, sent);
  expect(Object.fromEntries(ofNginx(page))).toEqual(Object.fromEntries(countedOf(log)));
  expect(samplesOf(page).size).toBeLessThanOrEqual(SERIES_MAX);
  expect(samplesOf(page).size).toBeGreaterThan(90);
});

test('the failures that are common are 0 before they happen', async () => {
  const fresh = await Pod.start({ workersPerPod: 1 });
  try {
    const samples = samplesOf(await metricsPage(fresh));
    for (const reason of ['queue-full', 'queue-timeout', 'no-worker', 'render-timeout', 'worker-died', 'worker-stuck'])
      expect([reason, samples.get(`corelane_requests_total{code="5xx",reason="${reason}"}`)]).toEqual([reason, 0]);
  } finally {
    await fresh.stop();
  }
});

/** Rows by their names, with the labels that the samples of a family have. */
const labelsOf = ({ samples }: Family) =>
  new Set([...samples.keys()].flatMap((series) => [...series.matchAll(/([a-z]+)="/g)].map(([, label]) => label)));

/** Families of a page that are not as the table of the docs has them. */
function unlikeTable(page: Map<string, Family>): unknown[] {
  return [...page].flatMap(([name, family]) => {
    const row = POD_METRICS.find((one) => one.name === name);
    const labels = [...labelsOf(family)].filter((label) => label !== 'le').sort();
    const isLike = row && row.type === family.type && String(row.labels.toSorted()) === String(labels);
    return isLike && family.help.length > 10 ? [] : [{ name, type: family.type, labels, row }];
  });
}

test('each family is in the table of the docs, and each row of that on the page of some pod', async () => {
  const [few, all] = [await metricsPage(pod), await metricsPage(pod, '?detail=1')];
  const other = await Pod.start({
    workersPerPod: 1,
    cache: { enabled: true },
    concurrency: 'Auto',
    classes: [{ name: 'api', match: [{ pathPrefix: '/api/' }] }],
    tracing: { endpoint: 'http://127.0.0.1:9' },
  });
  // One with a cache takes part in no canary.
  const sides = await Pod.start({ workersPerPod: 1 });
  try {
    await setCanary(sides, canaryAt(0));
    for (const path of ['/?ms=50&id=a', '/api/b?id=b']) expect((await other.get(path)).status).toBe(200);
    const seen = new Set([...few.keys(), ...all.keys()]);
    const more = await until('the time by requests in progress is on the page', async () => {
      const page = await metricsPage(other, '?detail=1');
      return page.has('corelane_worker_level_seconds_total') ? page : undefined;
    });
    for (const page of [few, all, more, await metricsPage(other), await metricsPage(sides)]) {
      expect(unlikeTable(page)).toEqual([]);
      for (const name of page.keys()) seen.add(name);
    }
    const missing = POD_METRICS.map(({ name }) => name).filter((name) => !seen.has(name));
    // It wants some seconds of work; the others pods of several revisions, which the tests of stickiness have.
    const isElsewhere = (name: string) => name === 'corelane_worker_wait_ratio' || name.startsWith('corelane_sticky_');
    expect(missing.filter((name) => !isElsewhere(name))).toEqual([]);
    // Only the rows with detail are not for everybody.
    const isFew = (name: string) => !POD_METRICS.find((row) => row.name === name)?.detail;
    expect([...few.keys()].filter((name) => !isFew(name))).toEqual([]);
    expect([...all.keys()].filter((name) => isFew(name) && !few.has(name))).toEqual([]);
    // The same words for the same figure, whoever has written them.
    for (const [name, { help, type }] of few)
      expect([name, all.get(name)?.help, all.get(name)?.type]).toEqual([name, help, type]);
  } finally {
    await Promise.all([other.stop(), sides.stop()]);
  }
});

test('who asks again and again gets the page of this second', async () => {
  const began = performance.now();
  const pages = new Set<string>();
  for (let n = 0; n < 40; n += 1) pages.add((await pod.get('/corelane/metrics', { port: PORTS.stats })).body);
  const seconds = (performance.now() - began) / 1000;
  expect(pages.size).toBeLessThanOrEqual(2 + seconds);
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
  await docker('pause', pod.nginx);
  const { body } = await until('a page without nginx', async () => {
    const answer = await pod.get('/corelane/metrics', { port: PORTS.stats });
    return answer.body.includes('corelane_requests_total') ? undefined : answer;
  }).finally(() => docker('unpause', pod.nginx));
  const without = samplesOf(familiesOf(body));
  expect(without.get('corelane_workers{state="up"}')).toBe(WORKERS);
  expect(without.get('corelane_worker_up{worker="1"}')).toBe(1);
});
