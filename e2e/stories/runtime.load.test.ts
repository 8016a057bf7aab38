/**
 * What the worker runtime tells people on a real cluster: where a render was stuck, what a worker does with its time,
 * and that it is not there. (What it does to processes is in sidecar/test.)
 *
 * A load test: it asserts durations, such as "stuck 2 s".
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CpuProfile } from '../../operator/cli/flame-graph.ts';
import { apply, corelane, eventually, get, kubectl } from '../harness/cluster/cluster.ts';
import { imageNames, installOperator } from '../harness/cluster/operator.ts';
import { type LivePod, podsOf, untilReady } from '../harness/cluster/renderservice.ts';
import { ROOT } from '../harness/cluster/shell.ts';

const NAMESPACE = 'runtime-story';
const NAME = 'storefront';
/** A process that does not get NODE_OPTIONS, as a compiled binary. */
const BARE = 'bare';
const WORKERS = 2;

const folder = mkdtempSync(join(tmpdir(), 'corelane-runtime-'));
let pod: string;

function renderService(name: string, command: string[], spec: object = {}) {
  const worker = {
    name: 'worker',
    image: imageNames().storefront,
    command,
    resources: { requests: { cpu: '20m', memory: '64Mi' } },
    volumeMounts: [{ name: 'app', mountPath: '/app' }],
  };
  const template = { spec: { containers: [worker], volumes: [{ name: 'app', configMap: { name: 'app' } }] } };
  return {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name, namespace: NAMESPACE },
    spec: { replicas: 1, workersPerPod: WORKERS, template, ...spec },
  };
}

beforeAll(async () => {
  await installOperator();
  await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found'], { timeoutMs: 240_000 });
  const data = { 'price.mjs': readFileSync(join(ROOT, 'e2e/harness/cluster/price.mjs'), 'utf8') };
  const bounds = { watchdog: { stallTimeout: '2s' }, timeouts: { render: '10s' } };
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'app', namespace: NAMESPACE }, data },
    renderService(NAME, ['node', '/app/price.mjs'], bounds),
    renderService(BARE, ['env', '-u', 'NODE_OPTIONS', 'node', '/app/price.mjs']),
  ];
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  await untilReady(NAMESPACE, NAME);
  const [found] = (await podsOf(NAMESPACE, NAME)) as [LivePod];
  pod = found.metadata.name;
  await untilServing(NAME);
});

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await kubectl(['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
});

/** Status and headers of a POST through a Service, sent from inside the cluster. */
async function post(service: string, path: string): Promise<Record<string, string>> {
  const script = `fetch('http://${service}.${NAMESPACE}.svc${path}', { method: 'POST' }).then(({ status, headers }) =>
    console.log(JSON.stringify({ status, ...Object.fromEntries(headers) })))`;
  return JSON.parse(await inPod(script));
}

/** Ready comes a moment before kube-proxy knows the pod. */
function untilServing(service: string): Promise<true> {
  return eventually(`Service ${service} to answer`, 60_000, async () => {
    const { status } = await post(service, '/').catch(() => ({ status: 'refused' }));
    return String(status) === '200' ? true : undefined;
  });
}

function inPod(script: string): Promise<string> {
  const command = ['env', 'NODE_OPTIONS=', 'node', '-e', script];
  return kubectl(['-n', NAMESPACE, 'exec', pod, '-c', 'worker-0', '--', ...command]);
}

/** As many clients as there are workers, until `work` has ended; resolves with how often which status came. */
async function underLoad(work: () => Promise<void>): Promise<Record<string, number>> {
  const mark = '/tmp/load-ends';
  const script = `const { existsSync } = require('node:fs');
    const statuses = {}; const end = Date.now() + 60_000;
    const client = async () => {
      while (Date.now() < end && !existsSync('${mark}')) {
        const { status } = await fetch('http://${NAME}.${NAMESPACE}.svc/', { method: 'POST' });
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
    };
    Promise.all(Array.from({ length: ${WORKERS} }, client)).then(() => console.log(JSON.stringify(statuses)))`;
  const loaded = inPod(script);
  await work().finally(() => inPod(`require('node:fs').writeFileSync('${mark}', '')`));
  return JSON.parse(await loaded);
}

function profile(...args: string[]): Promise<string> {
  const common = ['profile', NAME, '--namespace', NAMESPACE, '--pod', pod];
  return corelane([...common, ...args]);
}

test('a render that never ends: 502 that says so, and its place in the access log and in the metrics', async () => {
  expect(await post(NAME, '/stuck')).toMatchObject({ status: 502, 'x-corelane-error': 'worker-stuck' });
  const place = /^renderPrice \/app\/.*price\.mjs:\d+$/;
  const line = await eventually('it is logged', 10_000, async () => {
    const log = await kubectl(['-n', NAMESPACE, 'logs', pod, '-c', 'nginx']);
    const lines = log.split('\n').filter((text) => text.startsWith('{'));
    return lines.map((text) => JSON.parse(text)).find(({ uri }) => uri === '/stuck');
  });
  expect(line).toMatchObject({ status: 502, error: 'worker-stuck', stuckIn: expect.stringMatching(place) });
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${pod}:8999/proxy/corelane/metrics?detail=1`;
  const metrics = await kubectl(['get', '--raw', path]);
  expect(metrics).toMatch(
    /^corelane_worker_last_stall_timestamp_seconds\{worker="\d",in="renderPrice \/app\/.*price\.mjs:\d+"\} \d/m,
  );
  expect(metrics).toContain(`corelane_workers{state="watched"} ${WORKERS}\n`);
});

test('corelane profile names the function that takes the time; a second one at a time is refused', async () => {
  const output = join(folder, 'cpu');
  const statuses = await underLoad(async () => {
    const both = await Promise.allSettled([0, 1].map(() => profile('--worker', '1', '--seconds', '3', '-o', output)));
    const [refused, ...others] = both.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
    expect(others).toEqual([]);
    expect(String(refused?.reason)).toMatch(/exited with 75:/);
    expect(String(refused?.reason)).toContain('there is a profile being taken of this worker already');
  });
  expect(Object.keys(statuses)).toEqual(['200']);
  const { nodes } = JSON.parse(readFileSync(`${output}.cpuprofile`, 'utf8')) as CpuProfile;
  expect(nodes.map(({ callFrame }) => callFrame.functionName)).toContain('renderPrice');
  expect(readFileSync(`${output}.html`, 'utf8')).toMatch(/<td>renderPrice<td>\/app\/.*price\.mjs:\d+/);
});

test('corelane profile --heap writes a heap snapshot', async () => {
  const output = join(folder, 'heap');
  expect(await profile('--worker', '0', '--heap', '-o', output)).toBe(`${output}.heapsnapshot\n`);
  const { snapshot, nodes, strings } = JSON.parse(readFileSync(`${output}.heapsnapshot`, 'utf8'));
  expect(nodes).toHaveLength(snapshot.node_count * snapshot.meta.node_fields.length);
  expect(strings).toContain('renderPrice');
});

test.each([
  [['--worker', String(WORKERS)], `has workers 0 to ${WORKERS - 1}, and no worker-${WORKERS}`],
  [['--pod', 'nobody'], `has no pod nobody; it has ${NAME}-`],
])('corelane profile %j: says what there is', async (args, message) => {
  const output = join(folder, 'none');
  await expect(profile(...args, '-o', output)).rejects.toThrow(message);
  expect(existsSync(`${output}.cpuprofile`)).toBe(false);
});

test('without the runtime pages are served, and status says that it is absent', async () => {
  await untilReady(NAMESPACE, BARE);
  await untilServing(BARE);
  await eventually('the condition', 30_000, async () => {
    const { status } = await get<{ status: { conditions: { type: string }[] } }>('-n', NAMESPACE, 'rsvc', BARE);
    const condition = status.conditions.find(({ type }) => type === 'WorkersHealthy');
    expect(condition).toMatchObject({ status: 'True', reason: 'RuntimeAbsent' });
    return true;
  });
});

test('kubectl describe shows where the render was stuck', async () => {
  const place = `worker-\\d of ${pod} stuck 2 s in renderPrice /app/.*price\\.mjs:\\d+`;
  await eventually('the event', 30_000, async () => {
    const text = await kubectl(['-n', NAMESPACE, 'describe', 'renderservice', NAME]);
    expect(text).toMatch(new RegExp(`Warning +WorkerStuck .*${place}`));
    return true;
  });
});
