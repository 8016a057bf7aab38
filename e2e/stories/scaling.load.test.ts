/**
 * Scaling on real CPU, as metrics-server measures it: burners push per-core CPU over 20 %, the fleet grows by three
 * pods and by three again; the load ends, and it shrinks one pod at a time. Beside it a RenderService without
 * `scaling`, which a real HPA drives through the scale subresource by the CPU of its worker containers alone.
 *
 * A load test: it burns CPU, and expects an exact sequence of scaling steps.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plot, type TimeLine } from '../../operator/plots/index.ts';
import { apply, eventually, get, kubectl } from '../harness/cluster/cluster.ts';
import { type Load, lost, startLoad } from '../harness/cluster/load.ts';
import { imageNames, installOperator } from '../harness/cluster/operator.ts';
import { type LiveRenderService, untilReady } from '../harness/cluster/renderservice.ts';
import { ROOT } from '../harness/cluster/shell.ts';

const NAMESPACE = 'scaling-story';
const RENDER_MS = 20;
/** 140 millicores at least: 35 % of four pods' requests, about 20 % of seven. */
const RATE_PER_S = 7;
const WORKER_MILLICORES = 100;
const SECONDS_MAX = 400;
/** Down to one for the picture; each step takes its window, and the third is as the second. */
const FEWEST = process.env.UPDATE_BENCHMARKS ? 1 : 5;

/** The shortest windows: metrics-server has new figures every 10 s. */
const FAST = { window: '15s', cooldown: '0s' };
const scaling = {
  minReplicas: 1,
  maxReplicas: 7,
  warmUp: '0s', // a burner has no JIT to speak of
  cpu: { scaleUp: { ...FAST, cooldown: '15s' }, scaleDown: { ...FAST, belowPercent: 10 } },
};

function renderService(name: string, spec: object) {
  const container = {
    name: 'worker',
    image: imageNames().storefront,
    command: ['node', '/app/burner.mjs'],
    env: [{ name: 'RENDER_MS', value: String(RENDER_MS) }],
    resources: { requests: { cpu: `${WORKER_MILLICORES}m`, memory: '64Mi' } },
    volumeMounts: [{ name: 'app', mountPath: '/app' }],
  };
  const pod = { containers: [container], volumes: [{ name: 'app', configMap: { name: 'burner' } }] };
  return {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      replicas: 1,
      workersPerPod: 1,
      drain: { delay: '3s', timeout: '40s' },
      sidecar: { nginx: { cpu: '10m' }, haproxy: { cpu: '10m' } },
      template: { spec: pod },
      ...spec,
    },
  };
}

const hpa = {
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'by-hpa', namespace: NAMESPACE },
  spec: {
    scaleTargetRef: { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', name: 'by-hpa' },
    minReplicas: 1,
    maxReplicas: 3,
    metrics: [
      {
        type: 'ContainerResource',
        containerResource: {
          name: 'cpu',
          container: 'worker-0',
          target: { type: 'Utilization', averageUtilization: 40 },
        },
      },
    ],
  },
};

interface Scaled extends LiveRenderService {
  status?: LiveRenderService['status'] & {
    scaling?: { utilizationPercent?: number };
  };
}

interface Metrics {
  items: { containers: { name: string; usage: { cpu: string } }[] }[];
}

/** Per-core CPU by metrics-server, in percent. */
async function cpuPercent(): Promise<number> {
  const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${NAMESPACE}/pods?labelSelector=corelane.dev%2Frenderservice%3Dburner`;
  const { items } = JSON.parse(await kubectl(['get', '--raw', path])) as Metrics;
  const workers = items.flatMap(({ containers }) => containers.filter(({ name }) => name === 'worker-0'));
  const millicores = workers.map(
    ({ usage: { cpu } }) => Number.parseInt(cpu, 10) / (cpu.endsWith('n') ? 1e6 : cpu.endsWith('u') ? 1e3 : 1),
  );
  return (100 * millicores.reduce((sum, value) => sum + value, 0)) / Math.max(1, workers.length) / WORKER_MILLICORES;
}

/** What happened when, for the picture; and all that the operator has decided. */
const timeline: { atS: number; cpu: number; replicas: number; ready: number }[] = [];
const decisions: { from: number; to: number; time: string }[] = [];
const startedMs = Date.now();
let watching = true;

async function look(): Promise<void> {
  const [{ spec, status }, cpu] = await Promise.all([
    get<Scaled>('-n', NAMESPACE, 'renderservice', 'burner'),
    cpuPercent(),
  ]);
  timeline.push({
    atS: (Date.now() - startedMs) / 1000,
    cpu,
    replicas: spec.replicas,
    ready: status?.readyReplicas ?? 0,
  });
}

async function watch(): Promise<void> {
  while (watching) {
    await look().catch(() => {}); // a gap in the picture is no failure of the story
    await new Promise((resolve) => setTimeout(resolve, 3_000));
  }
}

let load: Load;
let hpaLoad: Load;
let watcher: Promise<void>;

const NOTHING_FAILED = { errors: {}, overlaps: 0, statuses: { 200: expect.any(Number) } };

async function untilReplicas(name: string, wanted: number, timeoutMs: number): Promise<void> {
  await eventually(`${wanted} pods of ${name} to be wanted`, timeoutMs, async () => {
    const { spec } = await get<Scaled>('-n', NAMESPACE, 'renderservice', name);
    return spec.replicas === wanted || undefined;
  });
}

async function stopped(running: Load) {
  const result = await running.stop();
  return { errors: lost(result), statuses: result.statuses, overlaps: result.overlaps };
}

beforeAll(async () => {
  await installOperator();
  await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found'], { timeoutMs: 240_000 });
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }));
  const data = { 'burner.mjs': readFileSync(join(ROOT, 'e2e/harness/cluster/burner.mjs'), 'utf8') };
  await apply(
    JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'burner', namespace: NAMESPACE }, data }),
  );
  await apply(JSON.stringify(renderService('burner', { scaling })));
  await apply(JSON.stringify(renderService('by-hpa', {})));
  await apply(JSON.stringify(hpa));
  await untilReady(NAMESPACE, 'burner');
  await untilReady(NAMESPACE, 'by-hpa');
  watcher = watch();
}, 400_000);

afterAll(async () => {
  watching = false;
  await watcher;
  await kubectl(['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
});

test('CPU above 20 % adds three pods, and three again', async () => {
  const bounds = [
    '--requests',
    String(RATE_PER_S * SECONDS_MAX),
    '--max-seconds',
    String(SECONDS_MAX),
    '--timeout',
    '30s',
  ];
  const url = (name: string) => ['--url', `http://${name}.${NAMESPACE}.svc/`];
  load = await startLoad(NAMESPACE, 'load', [...url('burner'), '--rate', String(RATE_PER_S), ...bounds]);
  hpaLoad = await startLoad(NAMESPACE, 'load-hpa', [...url('by-hpa'), '--rate', String(RATE_PER_S), ...bounds]);
  await untilReplicas('burner', 4, 120_000);
  await untilReplicas('burner', 7, 120_000);
});

test('an HPA drives the other one by the CPU of its workers', async () => {
  await eventually('the HPA to have scaled up', 150_000, async () => {
    const { spec } = await get<Scaled>('-n', NAMESPACE, 'renderservice', 'by-hpa');
    return spec.replicas > 1 || undefined;
  });
  const { status } = await get<{ status: { conditions: { type: string; status: string }[] } }>(
    '-n',
    NAMESPACE,
    'hpa',
    'by-hpa',
  );
  const able = status.conditions.filter(({ type }) => type !== 'ScalingLimited');
  expect(able.map((condition) => condition.status)).toEqual(able.map(() => 'True'));
  expect(await stopped(hpaLoad)).toEqual(NOTHING_FAILED);
});

test('when the load ends it removes one pod at a time, down to the minimum; no request has failed', async () => {
  await untilReady(NAMESPACE, 'burner', 180_000);
  expect(await stopped(load)).toEqual(NOTHING_FAILED);
  const patch = JSON.stringify({ spec: { scaling: { minReplicas: FEWEST } } });
  await kubectl(['-n', NAMESPACE, 'patch', 'renderservice', 'burner', '--type=merge', '-p', patch]);
  await untilReplicas('burner', FEWEST, 300_000);
}, 500_000);

test('every decision stands in an Event, with its numbers', async () => {
  const { items } = await get<{ items: { note: string; reason: string; eventTime: string }[] }>(
    ...['-n', NAMESPACE, 'events.events.k8s.io', '--field-selector', 'regarding.name=burner'],
  );
  const scaled = items
    .filter(({ reason }) => /^Scaled/.test(reason))
    .sort((one, other) => (one.eventTime < other.eventTime ? -1 : 1));
  const steps = scaled.map(({ note }) => /^scaled (\d+ -> \d+)/.exec(note)?.[1]);
  const down = Array.from({ length: 7 - FEWEST }, (_unused, index) => `${7 - index} -> ${6 - index}`);
  expect(steps).toEqual(['1 -> 4', '4 -> 7', ...down]);
  expect(scaled[0]?.note).toMatch(/^scaled 1 -> 4: per-core CPU [\d.]+ % > 20 % for 15 s$/);
  expect(scaled.at(-1)?.note).toMatch(/^scaled \d -> \d: per-core CPU [\d.]+ % < 10 % for 15 s$/);
  for (const { note, eventTime } of scaled) {
    const [from, to] = (/^scaled (\d+) -> (\d+)/.exec(note) ?? []).slice(1).map(Number) as [number, number];
    decisions.push({ from, to, time: eventTime });
  }
  if (process.env.UPDATE_BENCHMARKS) writeFileSync(join(ROOT, 'docs/benchmarks/autoscaling.svg'), picture());
});

/** CPU, pods and decisions over the time of the story. */
function picture(): string {
  const line = (name: string, value: (point: (typeof timeline)[number]) => number): TimeLine => ({
    name,
    points: timeline.map((point) => [point.atS, value(point)]),
  });
  const events = decisions.map(({ to, from, time }): [number, string] => [
    (Date.parse(time) - startedMs) / 1000,
    `${from} → ${to}`,
  ]);
  const endS = 5 + Math.max(...timeline.map(({ atS }) => atS), ...events.map(([atS]) => atS));
  const ticks = Array.from({ length: Math.floor(endS / 30) + 1 }, (_unused, index): [number, string] => [
    30 * index,
    `${30 * index} s`,
  ]);
  const lines = [line('pods wanted', ({ replicas }) => replicas), line('pods ready', ({ ready }) => ready)];
  const marks = [
    { value: 20, text: 'above 20 %: +3' },
    { value: 10, text: 'below 10 %: -1' },
  ];
  const title = 'Scaling on real CPU (kind, 3 nodes on 2 cores): pods';
  return plot([
    { title, endS, ticks, lines, isStepped: true, events },
    { title: 'per-core CPU (%), cut at 150', endS, ticks, lines: [line('CPU', ({ cpu }) => cpu)], max: 150, marks },
  ]);
}
