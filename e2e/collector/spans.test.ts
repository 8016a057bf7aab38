/** Spans of a pod, as a real OpenTelemetry Collector has received them. */
import { Fleet } from '../harness/engine/fleet.ts';
import { Pod, until } from '../harness/engine/pod.ts';
import { BUILD_TIMEOUT_MS, Collector, ENDPOINT, type Span } from './collector.ts';

const CLIENT = 'b7ad6b7169203331';
const spec = { tracing: { endpoint: ENDPOINT } };
/** nginx and HAProxy have clocks of their own, of whole milliseconds, and some work between them. */
const TOLERANCE_MS = 60;

let pod: Pod;
let collector: Collector;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 1, ...spec }, { revision: 'r7' });
  collector = await Collector.start(pod);
}, BUILD_TIMEOUT_MS);
afterAll(() => pod?.stop());

let last = 0;
function newTrace(): string {
  last += 1;
  return `0af7651916cd43dd8448eb21${String(last).padStart(8, '0')}`;
}

const from = (trace: string, flags = '01') => ({ traceparent: `00-${trace}-${CLIENT}-${flags}` });

function only(spans: Span[], name: string): Span {
  const found = spans.filter((span) => span.name === name);
  expect([name, found.length]).toEqual([name, 1]);
  return found[0] as Span;
}

function msOf({ fromMs, toMs }: Span): number {
  return toMs - fromMs;
}

/** What the worker has got as its parent. */
function parentOf(body: string): string {
  return JSON.parse(body).headers.traceparent.split('-')[2];
}

test('a request is one tree: the client, the request, its wait and its render, below which the program is', async () => {
  const trace = newTrace();
  const first = pod.get('/?hold=1&id=first');
  await pod.begun('first');
  const answer = pod.get('/shop/1?token=secret&id=tree', {
    headers: { ...from(trace), 'x-request-id': 'tree', cookie: 'session=secret', authorization: 'Bearer secret' },
  });
  await until('it waits', async () => (await pod.metric('haproxy_backend_current_queue{proxy="line"}')) > 0);
  pod.release('first');
  await first;
  const { status, body } = await answer;
  expect(status).toBe(200);
  const spans = await collector.trace(trace, 'GET', 'queue', 'render');
  expect(spans.map(({ name }) => name).sort()).toEqual(['GET', 'queue', 'render']);
  const [whole, queue, render] = ['GET', 'queue', 'render'].map((name) => only(spans, name)) as [Span, Span, Span];

  expect([whole.parentId, queue.parentId, render.parentId]).toEqual([CLIENT, whole.id, whole.id]);
  expect(new Set([CLIENT, ...spans.map(({ id }) => id)]).size).toBe(4);
  expect(parentOf(body)).toBe(render.id);
  expect(spans.map(({ kind }) => kind)).toEqual(['SERVER', 'INTERNAL', 'CLIENT']);

  const line = await until('it is logged', async () =>
    (await pod.accessLog()).find(({ requestId }) => requestId === 'tree'),
  );
  expect([msOf(queue), render.events[0]?.atMs]).toEqual([line.queueMs, render.fromMs + Number(line.renderMs)]);
  expect(Math.abs(msOf(whole) - Number(line.totalSeconds) * 1000)).toBeLessThan(1.5);
  expect(msOf(queue)).toBeGreaterThan(0);
  for (const part of [queue, render]) {
    expect(part.fromMs).toBeGreaterThanOrEqual(whole.fromMs);
    expect(part.toMs).toBeLessThanOrEqual(whole.toMs + 1);
  }
  expect(render.fromMs).toBeGreaterThanOrEqual(queue.toMs);
  expect(msOf(whole) - msOf(queue) - msOf(render)).toBeLessThan(TOLERANCE_MS);

  expect(whole.attributes).toEqual({
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'url.scheme': 'http',
    'url.path': '/shop/1',
    'server.address': '127.0.0.1',
    'server.port': expect.any(Number),
    'network.protocol.version': '1.1',
    'corelane.tries': 1,
  });
  expect(render.attributes).toEqual({
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'corelane.worker': 'worker-0',
    'corelane.pod': 'local',
    'corelane.handed_over': false,
  });
  expect(whole.resource).toEqual({
    'service.name': 'local',
    'service.namespace': 'default',
    'service.instance.id': 'local',
    'k8s.namespace.name': 'default',
    'k8s.pod.name': 'local',
    'corelane.revision': 'r7',
  });
  expect(whole.scope).toBe('corelane');
  expect(JSON.stringify(spans)).not.toContain('secret');
});

test('without a parent the request is where the trace begins', async () => {
  const { body } = await pod.get('/?id=root');
  const [, trace = ''] = JSON.parse(body).headers.traceparent.split('-');
  const spans = await collector.trace(trace, 'GET', 'render');
  expect([only(spans, 'GET').parentId, only(spans, 'render').id]).toEqual(['', parentOf(body)]);
});

test('what is not sampled has no spans, and its program stays below the client', async () => {
  const [none, some] = [newTrace(), newTrace()];
  const { body } = await pod.get('/?id=none', { headers: from(none, '00') });
  expect(parentOf(body)).toBe(CLIENT);
  await pod.get('/?id=some', { headers: from(some) });
  await collector.trace(some, 'GET');
  expect((await collector.spans()).filter(({ traceId }) => traceId === none)).toEqual([]);
});

test('a first try that a worker has died with is a span of its own', async () => {
  const trace = newTrace();
  const { status, body } = await pod.get('/?die=once&id=dies', { headers: { ...from(trace), 'x-request-id': 'dies' } });
  expect(status).toBe(200);
  const spans = await collector.trace(trace, 'GET', 'try', 'render');
  const [whole, first, render] = ['GET', 'try', 'render'].map((name) => only(spans, name)) as [Span, Span, Span];
  expect([whole.attributes['corelane.tries'], whole.isError]).toEqual([2, false]);
  expect([first.isError, first.attributes, first.parentId]).toEqual([
    true,
    { 'http.response.status_code': 502 },
    whole.id,
  ]);
  expect(first.toMs).toBeLessThanOrEqual(render.fromMs);
  expect([render.id, render.isError]).toEqual([parentOf(body), false]);
});

test('an error has its reason', async () => {
  const refused = await Pod.start({ workersPerPod: 1, queue: { timeout: '1s' }, ...spec });
  try {
    const beside = await Collector.start(refused);
    const first = refused.get('/?hold=1&id=first');
    await refused.begun('first');
    const trace = newTrace();
    expect((await refused.get('/?id=late', { headers: from(trace) })).status).toBe(503);
    refused.release('first');
    await first;
    const spans = await beside.trace(trace, 'GET', 'queue');
    const [whole, queue] = [only(spans, 'GET'), only(spans, 'queue')];
    expect([whole.isError, queue.isError]).toEqual([true, true]);
    expect(whole.attributes).toMatchObject({
      'http.response.status_code': 503,
      'error.type': 'queue-timeout',
      'corelane.reason': 'queue-timeout',
    });
    expect(msOf(queue)).toBeGreaterThanOrEqual(990);
    expect(spans).toHaveLength(2);
  } finally {
    await refused.stop();
  }
});

test('a hand-over is a span around the render, with the pod that has rendered', async () => {
  const fleet = await Fleet.start(2, { workersPerPod: 1, queue: { timeout: '60s' }, ...spec });
  try {
    const [home, other] = fleet.pods as [Pod, Pod];
    const collectors = await Promise.all([home, other].map((one) => Collector.start(one)));
    const first = home.get('/?hold=1&id=first');
    await home.begun('first');
    const trace = newTrace();
    const { body } = await home.get('/?id=away', { headers: from(trace) });
    expect(other.events({ event: 'begin', id: 'away' })).toHaveLength(1);
    fleet.release('first');
    await first;
    const spans = await (collectors[0] as Collector).trace(trace, 'GET', 'hand-over', 'render');
    const [whole, over, render] = ['GET', 'hand-over', 'render'].map((name) => only(spans, name)) as [Span, Span, Span];
    expect([over.parentId, render.parentId, render.id]).toEqual([whole.id, over.id, parentOf(body)]);
    expect(render.attributes).toMatchObject({ 'corelane.handed_over': true, 'corelane.worker': 'worker-0' });
    expect(render.attributes['corelane.pod']).toBe(over.attributes['corelane.pod']);
    expect(render.attributes['corelane.pod']).not.toBe('local');
    expect(over.fromMs).toBeLessThanOrEqual(render.fromMs);
    expect(over.toMs).toBeGreaterThanOrEqual(render.toMs);
    // The pod that renders tells of nothing: the request is another one's.
    expect((await (collectors[1] as Collector).spans()).filter(({ traceId }) => traceId === trace)).toEqual([]);
  } finally {
    await fleet.stop();
  }
});

test('what a pod has to tell at its end is told', async () => {
  const ending = await Pod.start({ workersPerPod: 1, ...spec });
  try {
    const beside = await Collector.start(ending);
    await until('the Collector is there', async () => {
      const { body } = await ending.get('/?id=before');
      const [, trace = ''] = JSON.parse(body).headers.traceparent.split('-');
      return (await beside.trace(trace, 'GET')).length > 0;
    });
    const trace = newTrace();
    await ending.get('/?id=last', { headers: from(trace) });
    await ending.engine.run('stop', '--time', '10', ending.workers[0] as string);
    expect(await beside.trace(trace, 'GET', 'render')).toHaveLength(3);
  } finally {
    await ending.stop();
  }
});
