/** The scaling loop's calls, counted; what it does on a real API server is in test/api/scaling.load.test.ts. */
import { Autoscaler } from '../../src/controller/autoscaler.ts';
import type { Caches } from '../../src/controller/caches.ts';
import { EventRecorder } from '../../src/kube/events.ts';
import { ApiError, type RequestOptions } from '../../src/kube/rest.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { podReading } from '../../src/pods/reading.ts';
import type { PodSample } from '../../src/pods/sample.ts';

interface Call {
  method: string;
  path: string;
  options: RequestOptions;
}

const STARTED = { running: { startedAt: '2026-01-01T00:00:00Z' } };

function pod(name: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: name },
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'worker-0', ready: true, state: STARTED }],
    },
    workerCores: { 'worker-0': 0.5 },
  };
}

function service(name: string, spec: object) {
  const template = { spec: { containers: [{ name: 'worker', image: 'x:1' }] } };
  const metadata = { name, namespace: 'ns', uid: `uid-${name}`, generation: 1, resourceVersion: '7' };
  return {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata,
    spec: { replicas: 4, template, ...spec },
  };
}

/** A loop over these RenderServices, and the calls that it makes. */
function loop(services: ReturnType<typeof service>[], answer: (call: Call) => unknown) {
  const calls: Call[] = [];
  const errors: unknown[] = [];
  const eventErrors: unknown[] = [];
  const decisions: string[] = [];
  const request = async (method: string, path: string, options: RequestOptions = {}) => {
    calls.push({ method, path, options });
    return answer({ method, path, options });
  };
  const renderServices = {
    remember: () => {},
    list: () => services,
    get: (_ns: string, name: string) => services.find(({ metadata }) => metadata.name === name),
  };
  const servingPodsOf = (_ns: string, name: string) => [0, 1, 2, 3].map((index) => pod(`${name}-${index}`));
  const caches = { rest: { request }, renderServices, servingPodsOf } as unknown as Caches;
  const autoscaler = new Autoscaler({
    caches,
    sampleOf: () => undefined,
    events: new EventRecorder({
      rest: caches.rest,
      instance: 'test',
      onError: (_key, error) => eventErrors.push(error),
    }),
    ...{ periodMs: 15_000, onChange: () => {}, onUtilization: () => {} },
    onDecision: (key, { from, to, reason }) => decisions.push(`${key} ${from} -> ${to} ${reason}`),
    onError: (_key, error) => errors.push(error),
  });
  return { autoscaler, calls, errors, eventErrors, decisions };
}

const scaling = { minReplicas: 2, maxReplicas: 10 };
const noMetrics = () => ({ items: [] });

test('one list call for each RenderService that scales on CPU, whatever the number of pods', async () => {
  const all = [
    service('a', { scaling }),
    service('b', { scaling }),
    service('c', {}),
    service('d', { scaling: { ...scaling, occupancy: {} } }),
  ];
  const { autoscaler, calls, errors } = loop(all, noMetrics);
  await autoscaler.round();
  expect(errors).toEqual([]);
  const list = (name: string) => ({
    method: 'GET',
    path: '/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods',
    options: expect.objectContaining({ query: { labelSelector: `corelane.dev/renderservice=${name}` } }),
  });
  expect(calls).toEqual([list('a'), list('b')]);
});

test('the number is written through the scale subresource, with the version that was seen', async () => {
  const { autoscaler, calls, decisions } = loop([service('a', { replicas: 1, scaling })], noMetrics);
  await autoscaler.round();
  expect(calls.find(({ method }) => method === 'PATCH')).toMatchObject({
    path: '/apis/corelane.dev/v1alpha1/namespaces/ns/renderservices/a/scale',
    options: { body: { metadata: { resourceVersion: '7' }, spec: { replicas: 2 } } },
  });
  expect(decisions).toEqual(['ns/a 1 -> 2 OutsideBounds']);
});

test('another signal begins with an empty window', async () => {
  const services = [service('a', { replicas: 4, scaling: { minReplicas: 2, maxReplicas: 10, warmUp: '0s' } })];
  const usage = () => {
    const timestamp = new Date().toISOString();
    const containers = [{ name: 'worker-0', usage: { cpu: '85m' } }];
    return { items: [0, 1, 2, 3].map((n) => ({ metadata: { name: `a-${n}` }, timestamp, containers })) };
  };
  let now = 0;
  const { now: realNow } = performance;
  performance.now = () => now;
  const { autoscaler, decisions } = loop(services, ({ path }) => (path.includes('metrics') ? usage() : {}));
  const round = async () => {
    now += 15_000;
    await autoscaler.round();
  };
  const reason = () => autoscaler.viewOf('uid-a')?.condition.reason;
  while (reason() !== 'Measuring' && now < 600_000) await round();
  expect(reason()).toBe('Measuring');
  (services[0] as unknown as { spec: { scaling: object } }).spec.scaling = {
    ...{ minReplicas: 2, maxReplicas: 10, warmUp: '0s' },
    cpu: { statistic: 'Max' },
  };
  await round();
  expect(reason()).toBe('FillingWindow');
  expect(decisions).toEqual([]);
  performance.now = realNow;
});

describe('after a conflict', () => {
  const conflictOnce = (replicasNow: number) => {
    let isFirst = true;
    return ({ method, path }: Call) => {
      if (path.includes('metrics')) return noMetrics();
      if (method === 'GET') return service('a', { replicas: replicasNow, scaling });
      if (method === 'PATCH' && isFirst) {
        isFirst = false;
        throw new ApiError(409, 'Conflict', 'changed');
      }
      return {};
    };
  };

  test('it writes again if only something else has changed', async () => {
    const { autoscaler, decisions } = loop([service('a', { replicas: 1, scaling })], conflictOnce(1));
    await autoscaler.round();
    expect(decisions).toEqual(['ns/a 1 -> 2 OutsideBounds']);
  });

  test('a number that somebody else has written stays', async () => {
    const { autoscaler, calls, decisions, errors } = loop([service('a', { replicas: 1, scaling })], conflictOnce(5));
    await autoscaler.round();
    expect({ decisions, errors }).toEqual({ decisions: [], errors: [] });
    expect(calls.filter(({ method }) => method === 'PATCH')).toHaveLength(1);
  });
});

describe('when the write has no answer', () => {
  const errors = [new TypeError('fetch failed'), new ApiError(500, 'InternalError', 'etcdserver: request timed out')];

  /** Writes have no answer the first time, and were done or not. */
  function unanswered(error: Error, wasDone: boolean) {
    const one = service('a', { replicas: 1, scaling });
    const fails = { PATCH: 1, GET: 0 };
    const answer = ({ method, path, options }: Call) => {
      if (path.includes('metrics')) return noMetrics();
      if (method !== 'PATCH' && method !== 'GET') return {};
      if (method === 'PATCH' && (wasDone || fails.PATCH === 0))
        Object.assign(one.spec, (options.body as KubeObject).spec);
      if (fails[method]-- > 0) throw error;
      return one;
    };
    return { ...loop([one], answer), fails };
  }

  test.each(errors.map((error) => ({ error, message: error.message })))(
    'and was done, it counts, once: $message',
    async ({ error }) => {
      const { autoscaler, calls, decisions } = unanswered(error, true);
      await autoscaler.round();
      expect(decisions).toEqual([]);
      await autoscaler.round();
      await autoscaler.round();
      expect(decisions).toEqual(['ns/a 1 -> 2 OutsideBounds']);
      expect(autoscaler.viewOf('uid-a')?.lastDecision).toMatchObject({ from: 1, to: 2, reason: 'OutsideBounds' });
      expect(calls.filter(({ method }) => method === 'PATCH')).toHaveLength(1);
      expect(calls.filter(({ method }) => method === 'POST')).toHaveLength(1);
    },
  );

  test('and nobody says whether it was done, it asks again', async () => {
    const { autoscaler, decisions, fails } = unanswered(new TypeError('fetch failed'), true);
    fails.GET = 1;
    for (let round = 0; round < 3; round += 1) await autoscaler.round();
    expect(decisions).toEqual(['ns/a 1 -> 2 OutsideBounds']);
  });

  test('and was not done, it is done in the next round', async () => {
    const { autoscaler, calls, decisions } = unanswered(new TypeError('fetch failed'), false);
    await autoscaler.round();
    await autoscaler.round();
    expect(decisions).toEqual(['ns/a 1 -> 2 OutsideBounds']);
    expect(calls.filter(({ method }) => method === 'PATCH')).toHaveLength(2);
  });
});

test('a decision whose Event cannot be written stands nevertheless', async () => {
  const { autoscaler, decisions, errors, eventErrors } = loop(
    [service('a', { replicas: 1, scaling })],
    ({ method }) => {
      if (method === 'POST') throw new ApiError(429, 'TooManyRequests', 'later');
      return noMetrics();
    },
  );
  await autoscaler.round();
  expect(decisions).toEqual(['ns/a 1 -> 2 OutsideBounds']);
  expect(autoscaler.viewOf('uid-a')?.lastDecision).toMatchObject({ from: 1, to: 2 });
  expect({ errors, events: eventErrors.length }).toEqual({ errors: [], events: 1 });
});

test.each(
  [
    [new ApiError(404, 'NotFound', 'no API'), /no Metrics API/],
    [new ApiError(403, 'Forbidden', 'no rights'), /may not list/],
    [
      new ApiError(503, 'ServiceUnavailable', 'the server is busy'),
      /does not answer: the server is busy; the number of pods is held$/,
    ],
    [new TypeError('fetch failed'), /does not answer; the number/],
  ].map(([error, message]) => ({ error: error as Error, message: message as RegExp })),
)('$error.message is a reason to hold', async ({ error, message }) => {
  const { autoscaler, calls } = loop([service('a', { scaling })], () => {
    throw error;
  });
  await autoscaler.round();
  expect(autoscaler.viewOf('uid-a')?.condition).toMatchObject({
    status: 'False',
    reason: 'NoMetrics',
    message: expect.stringMatching(message),
  });
  expect(calls).toHaveLength(1);
});

test('one that fails does not hold up the others', async () => {
  const { autoscaler, calls, errors } = loop(
    [service('a', { replicas: 1, scaling }), service('b', { scaling })],
    ({ path }) => {
      if (path.endsWith('/scale')) throw new ApiError(500, 'InternalError', 'x');
      return noMetrics();
    },
  );
  await autoscaler.round();
  expect(errors).toHaveLength(1);
  expect(calls.filter(({ path }) => path.includes('metrics'))).toHaveLength(2);
});

describe('the reading of a pod', () => {
  const wallMs = Date.parse('2026-01-01T00:10:00Z');
  const metrics = new Map([
    [
      'p',
      {
        takenMs: 1,
        coresByContainer: new Map([
          ['worker-0', 0.1],
          ['nginx', 4],
        ]),
      },
    ],
  ]);
  const sample = {
    workers: [{ name: 'worker-0', up: true, busy: 3, downs: 0 }],
    queue: 0,
    queueFullTotal: 2,
    queueTimeoutTotal: 5,
  } as PodSample;

  test('is usage over request of its workers, and nothing of the proxies', () => {
    expect(podReading(pod('p'), { metrics, sampleOf: () => sample, concurrency: 4, wallMs })).toEqual({
      name: 'p',
      state: 'ready',
      workers: [{ ageMs: 600_000, cpu: 0.2, occupancy: 0.75, places: 4 }],
      takenMs: 1,
      refusedTotal: 7,
    });
  });

  test('a worker that renders what was given up has no free slot, though HAProxy sees none taken', () => {
    const blocked = { ...sample, workers: [{ name: 'worker-0', up: true, busy: 0, downs: 1, blocked: true as const }] };
    const reading = podReading(pod('p'), { metrics, sampleOf: () => blocked, concurrency: 4, wallMs });
    expect(reading.workers[0]?.occupancy).toBe(1);
  });

  test('occupancy is of the places that the worker has now, where its pod says how many', () => {
    const moving = { ...sample, workers: [{ name: 'worker-0', up: true, busy: 3, downs: 0, places: 6 }] };
    const reading = podReading(pod('p'), { metrics, sampleOf: () => moving, concurrency: 1, wallMs });
    expect(reading.workers[0]).toMatchObject({ occupancy: 0.5, places: 6 });
  });

  test.each([
    [[{ type: 'Ready', status: 'False' }], 'starting'],
    [[], 'starting'],
    [[{ type: 'PodScheduled', status: 'False' }], 'stuck'],
  ])('%j is %s', (conditions, state) => {
    const one = { ...pod('p'), status: { conditions } };
    expect(podReading(one, { metrics: undefined, sampleOf: () => undefined, concurrency: 1, wallMs })).toMatchObject({
      state,
    });
  });
});
