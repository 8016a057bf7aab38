/**
 * The ports that every pod of the cluster may reach, 8998 and 8999, under floods of connections and of pages. Here
 * because the verdicts depend on rates.
 */
import { fileURLToPath } from 'node:url';
import { docker, logs, NODE_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { samplePod } from '../../operator/src/pods/sample.ts';
import { figure } from '../../operator/test/support/figure.ts';

const APPS = fileURLToPath(new URL('apps', import.meta.url));
/** Another pod tries what a HAProxy without limits for strangers could not even hold in the kernel's queue. */
const CONNECTIONS = { 'another pod': 10_000, 'the node': 5_000 };
const SECONDS = 5;
/** As kubelet does. */
const PROBE_MS = 2_000;
const PROBE_EVERY_MS = 250;

const SPEC: Partial<RenderServiceSpecInput> = { workersPerPod: 2, drain: { delay: '0s', timeout: '60s' } };

let fleet: Fleet;
let pod: Pod;
beforeAll(async () => {
  fleet = await Fleet.start(1, SPEC);
  pod = fleet.pods[0] as Pod;
});
afterAll(() => fleet?.stop());

/** Where an attacker sits: on the pod's network, or at the address from which kubelet's probes come. */
const SOURCES = { 'another pod': () => fleet.network, 'the node': () => 'host' };
type Source = keyof typeof SOURCES;

interface Received {
  opened: number;
  openAtOnce: number;
  answers: Record<string, number>;
}

/** Starts flood.mjs; the function that it gives waits for its end, and tells how it was received. */
async function flood(source: Source, port: number, kinds: string[]): Promise<() => Promise<Received>> {
  const container = await start(
    // The CPU time that nobody else wants, as if it were on another machine.
    ...[
      '--network',
      SOURCES[source](),
      '--cpu-shares',
      '2',
      '--volume',
      `${APPS}:/app:ro`,
      '--ulimit',
      'nofile=20000:20000',
    ],
    ...[
      '--entrypoint',
      'node',
      NODE_IMAGE,
      '/app/flood.mjs',
      await pod.address(),
      `${port}`,
      `${CONNECTIONS[source]}`,
      `${SECONDS}`,
    ],
    ...kinds,
  );
  return async () => {
    await until('the attack ends', async () => !(await pod.state(container)).Running);
    const seen = await logs(container);
    await docker('rm', container);
    return JSON.parse(seen);
  };
}

/** Statuses of kubelet's probes and of requests until `attack` has ended. */
async function beside<T>(attack: Promise<T>): Promise<{ statuses: Record<string, number>; attacked: T }> {
  const statuses: Record<string, number> = {};
  const count = async (name: string, path: string, port: number, ms: number) => {
    const call = pod.get(path, { port, signal: AbortSignal.timeout(ms) });
    const status = await call.then(
      (answer) => answer.status,
      (error) => error.code ?? error.name,
    );
    const key = `${name} ${status}`;
    statuses[key] = (statuses[key] ?? 0) + 1;
  };
  const calls: Promise<void>[] = [];
  const once = (n: number) => {
    calls.push(count('livez', '/livez', PORTS.health, PROBE_MS));
    calls.push(count('readyz', '/readyz', PORTS.health, PROBE_MS));
    calls.push(count('request', `/?id=beside-${n}`, PORTS.http, 60_000));
  };
  let n = 0;
  const timer = setInterval(() => once(++n), PROBE_EVERY_MS);
  try {
    const attacked = await attack;
    await Promise.all(calls);
    return { statuses, attacked };
  } finally {
    clearInterval(timer);
  }
}

const ALL_WELL = {
  'livez 200': expect.any(Number),
  'readyz 200': expect.any(Number),
  'request 200': expect.any(Number),
};

const ATTACKS = [
  [['idle', 'half', 'slow']],
  [['requests:/livez', 'requests:/metrics', 'requests:/']],
  [['unread:/metrics', 'h2']],
];

test("pages with all metrics come at a bounded rate; one metric, the operator's question and the workers' are not meant", async () => {
  const whole = async (path: string) => {
    const { status, headers, body } = await pod.get(path, { port: PORTS.stats });
    return [status, headers['retry-after'], status === 200 && body.length > 50_000];
  };
  const paths = [
    '/metrics',
    '/',
    '/metrics?metrics=-haproxy_process_uptime_seconds',
    '/metrics?scope=server&scope=frontend&metrics=a',
    '/;norefresh',
  ];
  for (const path of paths) expect([path, ...(await whole(path))]).toEqual([path, 200, undefined, expect.any(Boolean)]);
  for (const path of paths) expect([path, ...(await whole(path))]).toEqual([path, 429, '10', false]);
  for (let n = 0; n < 20; n += 1) expect(await pod.isUp(0)).toBe(true);
  const operatorsPage = async (path: string) => {
    const { status, body } = await pod.get(path, { port: PORTS.stats });
    expect([path, status]).toEqual([path, 200]);
    return body;
  };
  const { sample } = await samplePod(operatorsPage, ['worker-0', 'worker-1']);
  expect(sample.workers).toHaveLength(2);
});

describe.each(Object.keys(SOURCES) as Source[])('thousands of connections from %s to each port', (source) => {
  test.each(ATTACKS)('%j: probes and requests do not notice', async (kinds) => {
    const ports = [PORTS.health, PORTS.stats];
    const ends = await Promise.all(ports.map((port) => flood(source, port, kinds)));
    const { statuses, attacked } = await beside(Promise.all(ends.map((end) => end())));
    expect({ statuses, attacked }).toEqual({ statuses: ALL_WELL, attacked: expect.anything() });
    for (const { opened } of attacked) expect(opened).toBeGreaterThanOrEqual(CONNECTIONS[source]);
    if (source === 'the node') return;
    // Most are closed before a word: an answer, be it 408, is a place that was taken.
    for (const [index, { opened, answers }] of attacked.entries()) {
      const answered = Object.values(answers).reduce((sum, count) => sum + count, 0);
      figure(`port ${ports[index]}, flood of ${kinds.join(', ')}: answered`, (100 * answered) / opened, '%', '< 5 %');
      expect(answered).toBeLessThan(opened / 20);
    }
  });
});
