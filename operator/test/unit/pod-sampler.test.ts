/** When pods are asked for their metrics, and what is kept of the answers. sidecar/test/pod-sample has the answers. */

import type { KubeObject } from '../../src/kube/types.ts';
import { poisonEvent, stuckWorkerEvents } from '../../src/pods/events.ts';
import { isFull, type WorkerSample } from '../../src/pods/sample.ts';
import { PodSampler } from '../../src/pods/sampler.ts';

function pod(index: number, status: object = { phase: 'Running', podIP: `10.0.0.${index}` }, metadata: object = {}) {
  const name = `pod-${index}`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: `uid-${index}`, ...metadata },
    status,
    workerCores: { 'worker-0': 1 },
  } as KubeObject;
}

/** A page of HAProxy with one worker and a queue. */
function page(queue: number): string {
  return `# HELP haproxy_server_status Current status of the service, per state label value.
haproxy_server_status{proxy="workers",server="worker-0",state="UP"} 1
haproxy_server_status{proxy="workers",server="waiting-room",state="UP"} 1
haproxy_backend_current_queue{proxy="line"} ${queue}
`;
}

/** A sampler of `pods`; `answers` gives the page of an address, or throws. */
function world(pods: KubeObject[], answers: (address: string) => Promise<string>) {
  const changed: string[] = [];
  const results: string[] = [];
  const sampler = new PodSampler({
    pods: () => pods,
    onChange: ({ metadata }) => changed.push(metadata.name),
    onResult: (result) => results.push(result),
    get: (address) => answers(address),
  });
  return { sampler, pods, changed, results };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

test('pods that run are asked, others are not', async () => {
  const asked: string[] = [];
  const starting = pod(2, { phase: 'Pending', podIP: '10.0.0.2' });
  const stopping = pod(3, undefined, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  const { sampler } = world([pod(1), starting, stopping], async (address) => {
    asked.push(address);
    return page(3);
  });
  expect(sampler.hasRound).toBe(false);
  await sampler.round();
  expect(new Set(asked)).toEqual(new Set(['10.0.0.1']));
  expect(sampler.hasRound).toBe(true);
  expect(sampler.of(pod(1))).toMatchObject({ queue: 3, workers: [{ name: 'worker-0', up: true, busy: 0 }] });
  expect(sampler.of(starting)).toBeUndefined();
});

test('only news is told, and the first round as a whole', async () => {
  let queue = 0;
  const { sampler, changed } = world([pod(1), pod(2)], async (address) => page(address === '10.0.0.2' ? queue : 0));
  await sampler.round();
  expect(new Set(changed)).toEqual(new Set(['pod-1', 'pod-2']));
  changed.length = 0;
  await sampler.round();
  expect(changed).toEqual([]);
  queue = 5;
  await sampler.round();
  expect(changed).toEqual(['pod-2']);
});

test('a pod that does not answer keeps its metrics for a while, and says why it has no new ones', async () => {
  let works = true;
  const { sampler, results, changed } = world([pod(1)], async () => {
    if (!works) throw new Error('no route');
    return page(1);
  });
  await sampler.round();
  works = false;
  changed.length = 0;
  await sampler.round();
  await sampler.round();
  expect(sampler.of(pod(1))?.queue).toBe(1);
  expect(sampler.errorOf(pod(1))).toBe('no route');
  expect(results).toEqual(['ok', 'error', 'error']);
  expect(changed).toEqual(['pod-1']);
});

test('a pod that has gone is forgotten', async () => {
  const { sampler, pods } = world([pod(1)], async () => page(1));
  await sampler.round();
  pods.pop();
  await sampler.round();
  expect(sampler.of(pod(1))).toBeUndefined();
});

test('never more than 64 at a time', async () => {
  let running = 0;
  let most = 0;
  const pods = Array.from({ length: 200 }, (_unused, index) => pod(index));
  const { sampler } = world(pods, async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return page(0);
  });
  await sampler.round();
  expect(most).toBe(64);
  expect(sampler.of(pod(199))).toBeDefined();
});

test('the first round asks as fast as it can, the next ones one pod a millisecond', async () => {
  const asked = new Set<string>();
  const pods = Array.from({ length: 300 }, (_unused, index) => pod(index));
  const { sampler } = world(pods, async (address) => {
    asked.add(address);
    return page(0);
  });
  // Nobody has been asked before.
  sampler.start();
  while (!sampler.hasRound) await Promise.resolve();
  expect(asked.size).toBe(300);
  sampler.stop();
  const { sampler: next } = world(pods, async (address) => {
    asked.add(address);
    return page(0);
  });
  await next.round();
  asked.clear();
  const began = performance.now();
  next.start();
  await new Promise(setImmediate);
  expect(asked.size).toBeLessThan(100);
  await until(() => asked.size === 300);
  expect(performance.now() - began).toBeGreaterThan(250);
  next.stop();
});

test('what is no news is kept where it was', async () => {
  let queue = 0;
  const { sampler } = world([pod(1)], async () => page(queue));
  await sampler.round();
  const first = sampler.of(pod(1));
  await sampler.round();
  expect(sampler.of(pod(1))).toBe(first);
  queue = 2;
  await sampler.round();
  expect(sampler.of(pod(1))).toMatchObject({ queue: 2 });
  expect(first).toMatchObject({ queue: 0 });
});

test('pods that do not answer hold up nobody but themselves', async () => {
  let isDown = false;
  const pending: (() => void)[] = [];
  const asked: string[] = [];
  const pods = Array.from({ length: 251 }, (_unused, index) => pod(index));
  const { sampler } = world(pods, async (address) => {
    asked.push(address);
    if (!isDown || address === '10.0.0.250') return page(0);
    await new Promise<void>((resolve) => pending.push(resolve));
    throw new Error('no route');
  });
  await sampler.round();
  isDown = true;
  // The round in which they fall silent waits for all of them.
  let isOver = false;
  void sampler.round().then(() => {
    isOver = true;
  });
  await until(() => {
    for (const end of pending.splice(0)) end();
    return isOver;
  });
  expect(sampler.errorOf(pod(0))).toBe('no route');
  asked.length = 0;
  sampler.start();
  await until(() => asked.includes('10.0.0.250') && pending.length === 64);
  // Nobody has answered yet, and the other one's metrics are new.
  expect(new Set(asked).size).toBe(65);
  sampler.stop();
  for (const end of pending.splice(0)) end();
});

test('pods that answer the first question, and the next one not in time, hold up nobody but themselves', async () => {
  const { now: realNow } = performance;
  let now = 1_000;
  performance.now = () => now;
  try {
    const hanging: (() => void)[] = [];
    const asked = new Set<string>();
    const pods = Array.from({ length: 201 }, (_unused, index) => pod(index));
    const sampler = new PodSampler({
      pods: () => pods,
      onChange: () => undefined,
      onResult: () => undefined,
      countedFor: () => 'shop',
      counted: () => new Set(['shop']),
      get: async (address, path) => {
        asked.add(address);
        if (path.startsWith('/metrics')) return page(0);
        if (address !== '10.0.0.200') await new Promise<void>((resolve) => hanging.push(resolve));
        throw new Error('timeout');
      },
    });
    let isOver = false;
    void sampler.round().then(() => {
      isOver = true;
    });
    await until(() => {
      now += 2_000;
      for (const end of hanging.splice(0)) end();
      return isOver;
    });
    asked.clear();
    sampler.start();
    await until(() => hanging.length === 64);
    await new Promise(setImmediate);
    expect([...asked]).toContain('10.0.0.200');
    sampler.stop();
    for (const end of hanging.splice(0)) end();
  } finally {
    performance.now = realNow;
  }
});

test('a pod tells of its own workers, and a page may be as long and as strange as it likes', async () => {
  const invented = Array.from(
    { length: 2_000 },
    (_unused, n) => `haproxy_server_status{proxy="workers",server="worker-${n + 1}",state="UP"} 0\n`,
  );
  const asked: string[] = [];
  const sampler = new PodSampler({
    pods: () => [pod(1)],
    onChange: () => undefined,
    onResult: () => undefined,
    get: async (_address, path) => {
      asked.push(path.split('?')[0] as string);
      return path.startsWith('/metrics') ? page(0) + invented.join('') : 'corelane_worker_up{worker="0"} 1\n';
    },
  });
  await sampler.round();
  expect(sampler.of(pod(1))?.workers.map(({ name }) => name)).toEqual(['worker-0']);
  expect(asked).toEqual(['/metrics', '/workers/0/metrics', '/workers/0/stalls']);
});

test.each<[what: string, worker: Partial<WorkerSample>, load: object, isFull: boolean]>([
  ['requests wait', {}, { queue: 1 }, true],
  ['one was refused since the last look', {}, { queueFullTotal: 6 }, true],
  ['one waited in vain since the last look', {}, { queueTimeoutTotal: 6 }, true],
  ['nobody waits', {}, {}, false],
  ['a HAProxy that was started again', {}, { queueFullTotal: 0, queueTimeoutTotal: 0 }, false],
  ['a worker has room', { places: 2 }, { queue: 1 }, false],
  ['HAProxy does not say how many requests a worker may have', { places: undefined }, { queue: 1 }, false],
  ['a worker has what was given up', { blocked: true }, { queue: 1 }, false],
  ['a worker that is down has no request', { up: false, busy: 0 }, { queue: 1 }, true],
])('a pod is full: %s', (_what, changes, load, expected) => {
  const taken: WorkerSample = { name: 'worker-0', up: true, busy: 1, places: 1, downs: 0 };
  const before = { workers: [taken], queue: 0, queueFullTotal: 5, queueTimeoutTotal: 5 };
  const workers = [taken, { ...taken, name: 'worker-1', ...changes }];
  expect(isFull({ ...before, workers, ...load }, before)).toBe(expected);
});

test('workers that are taken and idle for a minute are told; a pod at peace is asked for nothing more', async () => {
  const { now: realNow } = performance;
  let now = 1_000;
  performance.now = () => now;
  try {
    let [queue, idleS] = [2, 100];
    const asked: string[] = [];
    const ofWorker = (name: string, value: number) => `${name}{proxy="workers",server="worker-0"} ${value}\n`;
    const ofLoop = (what: string, value: number) =>
      `corelane_worker_event_loop_${what}_seconds_total{worker="0"} ${value}\n`;
    const sampler = new PodSampler({
      pods: () => [pod(1)],
      onChange: () => undefined,
      onResult: () => undefined,
      get: async (_address, path) => {
        asked.push(path.split('?')[0] as string);
        if (path === '/corelane/metrics') return ofLoop('active', 5) + ofLoop('idle', idleS);
        if (!path.startsWith('/metrics')) return 'corelane_worker_up{worker="0"} 1\n';
        const taken = ofWorker('haproxy_server_current_sessions', 1) + ofWorker('haproxy_server_limit_sessions', 1);
        return page(queue) + taken;
      },
    });
    const look = async () => {
      await sampler.round();
      now += 15_000;
      idleS += 15;
      return sampler.of(pod(1))?.areWorkersIdle;
    };
    const said: unknown[] = [];
    for (let looks = 0; looks < 5; looks += 1) said.push(await look());
    expect(said).toEqual([undefined, undefined, undefined, undefined, true]);
    queue = 0;
    asked.length = 0;
    expect(await look()).toBeUndefined();
    expect(asked).toEqual(['/metrics']);
  } finally {
    performance.now = realNow;
  }
});

test('a pod has one time for all its pages, and half of them are none', async () => {
  const workerCores = Object.fromEntries(Array.from({ length: 64 }, (_unused, n) => [`worker-${n}`, 1]));
  const slow = { ...pod(1), workerCores } as KubeObject;
  const down = Object.keys(workerCores).map(
    (name) => `haproxy_server_status{proxy="workers",server="${name}",state="UP"} 1\n`,
  );
  let asked = 0;
  const sampler = new PodSampler({
    pods: () => [slow],
    onChange: () => undefined,
    onResult: () => undefined,
    get: (_address, path, signal) => {
      asked += 1;
      if (path.startsWith('/metrics')) return Promise.resolve(down.join(''));
      // Hangs until its time is over.
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  });
  await sampler.round();
  expect(asked).toBe(2);
  expect(sampler.of(slow)).toBeUndefined();
  expect(sampler.errorOf(slow)).toMatch(/aborted|timeout/);
}, 15_000);

test('a stall is told once, and one from before this process began not at all', async () => {
  const at = (secondsAgo: number) => new Date(Date.now() - secondsAgo * 1000).toISOString();
  const stall = (time: string) => ({
    time,
    seconds: 10.1,
    in: 'renderPrice /app/price.js:41',
    requests: [],
    stack: [],
  });
  let stalls = [stall(at(3600)), stall(at(5))];
  let downs = 1;
  const told: string[] = [];
  const storefront = pod(1);
  const sampler = new PodSampler({
    pods: () => [storefront],
    onChange: () => undefined,
    onResult: () => undefined,
    onStalls: (where, found) => told.push(...stuckWorkerEvents(where, found).map(({ note }) => note)),
    get: async (_address, path) => {
      if (path === '/workers/0/stalls') return JSON.stringify({ stalls });
      if (path === '/workers/0/metrics') return 'corelane_worker_up{worker="0"} 1\n';
      return `${page(0)}haproxy_server_check_up_down_total{proxy="workers",server="worker-0"} ${downs}\n`;
    },
  });
  const note = 'worker-0 of pod-1 stuck 10 s in renderPrice /app/price.js:41';
  await sampler.round();
  expect(told).toEqual([note]);
  await sampler.round();
  expect(told).toEqual([note]);
  downs += 1;
  stalls = [...stalls, stall(at(1))];
  await sampler.round();
  expect(told).toEqual([note, note]);
});

test('a pod that begins to refuse a URL is told once each time, and not by a new leader', async () => {
  let refused = 7;
  const told: string[] = [];
  const sampler = new PodSampler({
    pods: () => [pod(1)],
    onChange: () => undefined,
    onResult: () => undefined,
    onPoison: (where, count) => told.push(poisonEvent(where, count).note),
    get: async () => `${page(0)}haproxy_backend_http_requests_total{proxy="poison"} ${refused}\n`,
  });
  await sampler.round();
  expect(told).toEqual([]);
  refused = 9;
  await sampler.round();
  expect(told).toEqual([expect.stringMatching(/^pod-1 has refused 2 requests \(503 poison\)/)]);
  refused = 10;
  await sampler.round();
  expect(told).toHaveLength(1);
  await sampler.round();
  // HAProxy has been started again.
  refused = 1;
  await sampler.round();
  expect(told).toHaveLength(2);
});

test('what a supervisor says is not trusted: no control characters, no flood', () => {
  const stall = { worker: 'worker-0', time: '', seconds: 1, in: `a\n\u0000é${'x'.repeat(9999)}` };
  const events = stuckWorkerEvents(pod(1), Array(20).fill(stall));
  expect(events).toHaveLength(5);
  for (const { note } of events) expect(note).toMatch(/^[\x20-\x7e]{1,700}$/);
  expect(events[0]?.note).toContain('15 more');
});

test.each(['NaN', '+Inf', '-1', '1e300', '0.5'])(
  'a pod that has %s requests has none: no status could say so',
  async (value) => {
    const text = page(0).replace(/ 0\n$/, ` ${value}\n`);
    const sessions = `haproxy_server_current_sessions{proxy="workers",server="worker-0"} ${value}\n`;
    const { sampler } = world([pod(1)], async () => text + sessions);
    await sampler.round();
    expect(sampler.of(pod(1))).toMatchObject({ queue: 0, workers: [{ busy: 0 }] });
  },
);

test.each([
  ['3', 3],
  ['0', undefined],
  ['-1', undefined],
  ['NaN', undefined],
])('a worker that gets %s requests at a time: %s', async (value, places) => {
  const limit = `haproxy_server_limit_sessions{proxy="workers",server="worker-0"} ${value}\n`;
  const { sampler } = world([pod(1)], async () => page(0) + limit);
  await sampler.round();
  expect(sampler.of(pod(1))?.workers[0]?.places).toBe(places);
});

test.each([
  // HAProxy says one more than there are, and has them among its requests and places.
  [4, { busy: 1, places: 2 }],
  [1, { busy: 4, places: 5 }],
  // Before a supervisor has said it; and what a container may say.
  [0, { busy: 4, places: 5 }],
  ['NaN', { busy: 4, places: 5 }],
  [1_000_000, { busy: 0, places: 1 }],
])('what goes on without a slot is not among the requests and places of a worker: %s', async (limit, expected) => {
  const ofWorker = (metric: string, proxy: string, value: number | string) =>
    `haproxy_server_${metric}{proxy="${proxy}",server="worker-0"} ${value}\n`;
  const lines = [
    ofWorker('current_sessions', 'workers', 4),
    ofWorker('limit_sessions', 'workers', 5),
    ofWorker('limit_sessions', 'workers-alive', limit),
  ];
  const { sampler } = world([pod(1)], async () => page(0) + lines.join(''));
  await sampler.round();
  expect(sampler.of(pod(1))?.workers[0]).toMatchObject(expected);
});
