/**
 * What one round of scaling costs for 200 RenderServices of 20 pods with 4 workers each: calls, time and memory.
 *   node bench/scaling-round.ts [--json]
 * A stand-in answers for the API server, in a process of its own, with lists as large as the real ones (34 kB each):
 * what is measured is the operator's part, connections, JSON, recommender.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { Autoscaler } from '../operator/src/controller/autoscaler.ts';
import type { Caches } from '../operator/src/controller/caches.ts';
import { PooledKubeConfig } from '../operator/src/kube/config.ts';
import { EventRecorder } from '../operator/src/kube/events.ts';
import { Rest } from '../operator/src/kube/rest.ts';

const SERVICES = 200;
const PODS = 20;
const WORKERS = 4;
const ROUNDS = 10;

function podName(service: string, pod: number): string {
  return `${service}-7d4f9c6b5d-${String(pod).padStart(5, 'x')}`;
}

/** A list as metrics-server writes it: workers and two proxies per pod. */
function metricsList(service: string): string {
  const containers = ['nginx', 'haproxy', ...Array.from({ length: WORKERS }, (_unused, index) => `worker-${index}`)];
  const items = Array.from({ length: PODS }, (_unused, pod) => ({
    metadata: {
      name: podName(service, pod),
      namespace: 'bench',
      creationTimestamp: new Date().toISOString(),
      labels: {
        'app.kubernetes.io/name': service,
        'app.kubernetes.io/instance': service,
        'app.kubernetes.io/managed-by': 'corelane',
        'corelane.dev/renderservice': service,
        'pod-template-hash': '7d4f9c6b5d',
      },
    },
    timestamp: new Date().toISOString(),
    window: '15.043s',
    containers: containers.map((name) => ({ name, usage: { cpu: '170123456n', memory: '131072Ki' } })),
  }));
  return JSON.stringify({ kind: 'PodMetricsList', apiVersion: 'metrics.k8s.io/v1beta1', metadata: {}, items });
}

function serve(): void {
  const lists = new Map<string, string>();
  const server = createServer((request, response) => {
    const selector = new URL(request.url ?? '', 'http://x').searchParams.get('labelSelector') ?? '';
    response.setHeader('content-type', 'application/json');
    const service = selector.split('=')[1] ?? '';
    const list = lists.get(service) ?? metricsList(service);
    lists.set(service, list);
    response.end(list);
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as { port: number }).port));
}

/** The caches of an operator with this fleet. */
function caches(rest: Rest): Caches {
  const container = { name: 'worker', image: 'x:1' };
  const spec = {
    replicas: PODS,
    scaling: { minReplicas: 2, maxReplicas: 40 },
    template: { spec: { containers: [container] } },
  };
  const services = Array.from({ length: SERVICES }, (_unused, index) => ({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name: `shop-${index}`, namespace: 'bench', uid: `uid-${index}`, generation: 1, resourceVersion: '1' },
    spec,
  }));
  const cores = Object.fromEntries(Array.from({ length: WORKERS }, (_unused, index) => [`worker-${index}`, 1]));
  const pods = new Map(
    services.map(({ metadata: { name } }) => [
      name,
      Array.from({ length: PODS }, (_unused, pod) => ({
        metadata: { name: podName(name, pod), uid: `${name}-${pod}` },
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
        workerCores: cores,
      })),
    ]),
  );
  const renderServices = {
    list: () => services,
    get: (_namespace: string, name: string) => services[Number(name.slice('shop-'.length))],
  };
  return {
    rest,
    renderServices,
    servingPodsOf: (_namespace: string, name: string) => pods.get(name) ?? [],
  } as unknown as Caches;
}

async function measure(port: number): Promise<void> {
  const config = new PooledKubeConfig();
  config.loadFromClusterAndUser(
    { name: 'bench', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'bench' },
  );
  let calls = 0;
  const rest = new Rest(config, {
    observe: () => {
      calls += 1;
    },
  });
  const nothing = () => {};
  const autoscaler = new Autoscaler({
    caches: caches(rest),
    sampleOf: () => undefined,
    events: new EventRecorder({ rest, instance: 'bench', onError: nothing }),
    ...{ periodMs: 15_000, onChange: nothing, onDecision: nothing },
    onError: (key, error) => {
      throw new Error(`${key}: ${(error as Error).message}`);
    },
  });
  const before = process.memoryUsage().rss;
  const seconds: number[] = [];
  const cpuSeconds: number[] = [];
  let peak = before;
  for (let round = 0; round < ROUNDS; round += 1) {
    const started = performance.now();
    const cpu = process.cpuUsage();
    await autoscaler.round();
    seconds.push((performance.now() - started) / 1000);
    const { user, system } = process.cpuUsage(cpu);
    cpuSeconds.push((user + system) / 1e6);
    peak = Math.max(peak, process.memoryUsage().rss);
  }
  await config.close();
  const utilization = autoscaler.figuresOf(`uid-${SERVICES - 1}`)?.utilization;
  const median = (values: number[]) =>
    Number((values.toSorted((one, other) => one - other)[Math.floor(ROUNDS / 2)] as number).toFixed(3));
  const result = {
    services: SERVICES,
    pods: SERVICES * PODS,
    callsPerRound: calls / ROUNDS,
    utilizationPercent: Math.round(1000 * (utilization ?? Number.NaN)) / 10,
    firstRoundSeconds: Number((seconds[0] as number).toFixed(3)),
    medianRoundSeconds: median(seconds),
    medianCpuSeconds: median(cpuSeconds),
    rssGrowthMiB: Math.round((peak - before) / 2 ** 20),
    rssMiB: Math.round(peak / 2 ** 20),
  };
  console.log(JSON.stringify(result, null, 2));
}

if (process.argv.includes('--serve')) {
  serve();
} else {
  const server = fork(fileURLToPath(import.meta.url), ['--serve']);
  const [port] = (await once(server, 'message')) as [number];
  try {
    await measure(port);
  } finally {
    server.kill();
  }
}
