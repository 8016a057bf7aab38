/**
 * What is told of sampled requests, who hears it, and that it costs nobody anything; `make test-tracing` has what a
 * real OpenTelemetry Collector makes of it.
 */
import { logs, NODE_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import { withModules } from '../../e2e/harness/engine/haproxy-modules.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { parseRecord, type Record } from '../spans/record.ts';
import { page, seconds, statusOf } from './cache.ts';
import { CLIENT, figure, NOBODY, SAMPLED, TRACE } from './spans.ts';

const FAILED = 'corelane_worker_spans_total{worker="0",result="failed"}';

/** HAProxy leads a request back to nginx for so long after a page was filled, expired or not. */
const LEADS_BACK = withModules({ 'cache/herds.lua': (text) => text.replace('GRACE_MS = 1000', 'GRACE_MS = 60000') });

/** A program that has taken the port of the thread: one JSON text a line for each datagram. */
async function listener(pod: Pod): Promise<string> {
  const script = `const socket = require('node:dgram').createSocket('udp4');
    socket.on('message', (bytes) => console.log(JSON.stringify(bytes.toString('latin1'))));
    socket.bind(${PORTS.spans}, '127.0.0.1', () => console.log('bound'));`;
  const container = await start('--network', pod.network, NODE_IMAGE, 'node', '-e', script);
  await until('it listens', async () => (await logs(container)).includes('bound'));
  return container;
}

async function told(container: string): Promise<{ text: string; record: Record | undefined }[]> {
  const lines = (await logs(container)).split('\n').filter((line) => line.startsWith('"'));
  return lines
    .map((line) => JSON.parse(line) as string)
    .map((text) => ({ text, record: parseRecord(text, Date.now()) }));
}

/** The record of a request, by its path. */
function recordOf(container: string, path: string, kind = 'request'): Promise<Record> {
  let texts: string[] = [];
  const what = () => `${path} is told; the last ones are ${JSON.stringify(texts.slice(-5))}`;
  return until(what, async () => {
    const all = await told(container);
    texts = all.map(({ text }) => text);
    return all.find(({ record }) => record?.path === path && record.kind === kind)?.record;
  });
}

describe('nginx tells', () => {
  let pod: Pod;
  let heard: string;
  beforeAll(async () => {
    pod = await Pod.start({ workersPerPod: 1, cache: { enabled: true }, ...NOBODY }, { workers: false, ...LEADS_BACK });
    // The thread finds its port taken: it ends, and the worker works.
    heard = await listener(pod);
    await pod.startWorkers();
    await until('ready', () => pod.isReady());
  });
  afterAll(() => pod?.stop());

  test('of a sampled request, when it has ended, without what is secret', async () => {
    const headers = { ...SAMPLED, cookie: 'a=secret', authorization: 'secret', 'user-agent': 'secret' };
    const { body } = await pod.get('/told?id=told&token=secret', { headers });
    const record = await recordOf(heard, '/told');
    const [, trace, parent, flags] = JSON.parse(body).headers.traceparent.split('-');
    expect([trace, flags]).toEqual([TRACE, '01']);
    expect(record).toMatchObject({
      ...{ traceId: TRACE, parentId: CLIENT, spanId: parent, kind: 'request', status: 200, method: 'GET' },
      ...{ worker: 'worker-0', pod: '', error: '', tries: [{ status: 200 }], protocol: '1.1', scheme: 'http' },
    });
    // Its last bit is that of the span of the request.
    expect(parent).toMatch(/^[0-9a-f]{15}[02468ace]$/);
    expect(parent).not.toBe(CLIENT);
    expect(JSON.stringify(await told(heard))).not.toContain('secret');
  });

  test('of one that begins a trace', async () => {
    const { body } = await pod.get('/begins?id=begins');
    const record = await recordOf(heard, '/begins');
    expect([`00-${record.traceId}-${record.spanId}-01`, record.parentId]).toEqual([
      JSON.parse(body).headers.traceparent,
      '',
    ]);
  });

  test('nothing of what is not sampled, whose parent stays', async () => {
    const traceparent = `00-${TRACE}-${CLIENT}-00`;
    const { body } = await pod.get('/unsampled?id=unsampled', { headers: { traceparent } });
    expect(JSON.parse(body).headers.traceparent).toBe(traceparent);
    await pod.get('/after?id=after', { headers: SAMPLED });
    await recordOf(heard, '/after');
    expect((await told(heard)).filter(({ text }) => text.includes('/unsampled'))).toEqual([]);
  });

  test('nothing of pings and of its own pages', async () => {
    await pod.get(pod.spec.ping.path, { headers: SAMPLED });
    await pod.get('/after-ping?id=after', { headers: SAMPLED });
    await recordOf(heard, '/after-ping');
    expect((await told(heard)).filter(({ text }) => text.includes(pod.spec.ping.path))).toEqual([]);
  });

  test.each([
    ['long', `/long/${'x'.repeat(4_000)}`],
    ['percent-encoded', '/%0a%0d%7f%3fb"{}'],
    ['in bytes', '/\xff\xfe\x80', '/%FF%FE%80'],
  ])('of a path that is %s in one datagram that is a record', async (_what, path, expected = path.slice(0, 512)) => {
    const before = (await told(heard)).length;
    await pod.get(`${path}?id=odd`, { headers: SAMPLED });
    await until('it is told', async () => (await told(heard)).length > before);
    const { text, record } = (await told(heard)).at(-1) as { text: string; record: Record };
    expect(text.length).toBeLessThanOrEqual(2_048);
    expect(record?.path).toBe(expected);
  });

  test('of a refusal its reason', async () => {
    await pod.get('/refused', { headers: { ...SAMPLED, host: 'shop.example,other' } });
    expect(await recordOf(heard, '/refused')).toMatchObject({ status: 400, error: 'bad-request', tries: [] });
  });

  test('of a page that is rendered for others beside the request that is given the old one', async () => {
    const path = page('swr', 'max-age=1, stale-while-revalidate=60').replace('/?', '/swr/a?');
    const first = await pod.get(path);
    expect([first.status, statusOf(first)]).toEqual([200, 'Corelane; fwd=uri-miss']);
    await seconds(2.1);
    const headers = { traceparent: `00-${'1'.repeat(32)}-${CLIENT}-01` };
    const second = await pod.get(path, { headers });
    expect([second.status, statusOf(second)]).toEqual([200, 'Corelane; hit']);
    const render = await recordOf(heard, '/swr/a', 'render');
    expect(render).toMatchObject({ traceId: '1'.repeat(32), worker: 'worker-0' });
    const request = await until('the request is told', async () =>
      (await told(heard)).find(({ record }) => record?.kind === 'request' && record.traceId === render.traceId),
    );
    expect(request.record).toMatchObject({ spanId: render.spanId, cache: 'stale' });
  });

  test('each with its number', async () => {
    for (const path of ['/first', '/second', '/third']) {
      await pod.get(`${path}?id=number`, { headers: SAMPLED });
      await recordOf(heard, path);
    }
    const numbers = (await told(heard)).map(({ record }) => record?.number);
    expect(numbers).toEqual(numbers.map((_number, index) => index));
  });
});

describe('it costs nobody anything', () => {
  let pod: Pod;
  beforeAll(async () => {
    const options = ['--env', 'CORELANE_SPANS_HEADERS=x-key=secret'];
    pod = await Pod.start({ workersPerPod: 2, ...NOBODY }, { options });
  });
  afterAll(() => pod?.stop());

  test('that the endpoint is not there: spans are dropped, and counted', async () => {
    const told = () => figure(pod, 'corelane_span_records_total{result="told"}');
    // The page of metrics is a second old, and the thread may listen later than the pod is ready.
    await until('the thread listens', async () => {
      await pod.get('/?id=first', { headers: SAMPLED });
      return (await told()) >= 2;
    });
    for (const _ of Array(20)) expect((await pod.get('/?id=dead', { headers: SAMPLED })).status).toBe(200);
    await until('they are told', async () => (await told()) >= 20);
    await until('they are given up', async () => (await figure(pod, FAILED)) >= 60);
    expect((await pod.supervisorLog(0)).filter(({ event }) => event === 'spans')).toMatchObject([
      { message: expect.stringContaining('ECONNREFUSED') },
    ]);
  });

  test('what a program sends in place of nginx', async () => {
    const script = `const socket = require('node:dgram').createSocket('udp4');
      const texts = ['', 'x'.repeat(60000), '1 request 1\\n'.repeat(99), '\\0\\0', '\\u{1f600}'];
      const send = (left) => left === 0 ? socket.close() : socket.send(texts[left % 5], ${PORTS.spans}, '127.0.0.1', () => send(left - 1));
      send(100);`;
    await pod.inWorker(1, script);
    const invalid = 'corelane_worker_spans_total{worker="0",result="invalid"}';
    // The kernel drops what is too much at a time.
    await until('they are refused', async () => (await figure(pod, invalid)) > 0);
    // No series: none has failed yet.
    const before = (await figure(pod, FAILED)) || 0;
    // The kernel may drop this one, too, while there is something left of them.
    await until('requests have their spans again', async () => {
      expect((await pod.get('/?id=after', { headers: SAMPLED })).status).toBe(200);
      return (await figure(pod, FAILED)) > before;
    });
  });

  test('the headers of the Secret are not for the program', async () => {
    const read = (pid: number) =>
      pod.inWorker(0, `console.log(require('fs').readFileSync('/proc/${pid}/environ', 'latin1'))`);
    const own = await read(pod.server(0));
    expect(own).toContain('CORELANE_SPANS_ENDPOINT');
    expect(own).not.toContain('secret');
  });
});
