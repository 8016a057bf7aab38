/** The operator itself on a real cluster: installation, fail-over, restart, measurements. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PooledKubeConfig } from '../../operator/src/kube/config.ts';
import { kinds, objectPath } from '../../operator/src/kube/kinds.ts';
import { MERGE_PATCH, Rest } from '../../operator/src/kube/rest.ts';
import { apply, eventually, get, KUBECONFIG, kubectl } from '../harness/cluster/cluster.ts';
import { formatMeasurements, type Measurement } from '../harness/cluster/measurements.ts';
import { imageNames, installOperator, OPERATOR_NAMESPACE } from '../harness/cluster/operator.ts';
import {
  deploymentOf,
  example,
  type LivePod,
  podsOf,
  untilAllWorkersUp,
  untilReady,
} from '../harness/cluster/renderservice.ts';
import { ROOT, run } from '../harness/cluster/shell.ts';

const NAMESPACE = 'operator-story';
const NAME = 'storefront';
const MIB = 1024 * 1024;
const SPEC_CHANGES = 15;

interface Lease {
  spec: { holderIdentity: string };
}

const measurements: Measurement[] = [];
const manifest = example('storefront.yaml').replaceAll(/\bshop\b/g, NAMESPACE);
const replicasOf = async () => (await deploymentOf(NAMESPACE, NAME)).spec.replicas;
/** Name of the pod that leads; for a moment after a hand-over there is none. */
const leader = () =>
  eventually('a leader', 30_000, async () => {
    const { spec } = await get<Lease>('-n', OPERATOR_NAMESPACE, 'lease', 'corelane');
    return spec.holderIdentity || undefined;
  });
const scale = (replicas: number) =>
  kubectl(['-n', NAMESPACE, 'scale', 'renderservice', NAME, `--replicas=${replicas}`]);

/** Metrics page of an operator pod, through the API server. */
function metricsOf(pod: string): Promise<string> {
  return kubectl(['get', '--raw', `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods/${pod}:8080/proxy/metrics`]);
}

/** Writes of the leader so far: objects, status, all but the Lease. */
async function writesOf(pod: string): Promise<number> {
  const lines = (await metricsOf(pod)).matchAll(/^corelane_operator_writes_total\{[^}]*\} (\d+)$/gm);
  return [...lines].reduce((sum, [, count]) => sum + Number(count), 0);
}

function secondsSince(startedMs: number): number {
  return (performance.now() - startedMs) / 1000;
}

beforeAll(async () => {
  await installOperator();
  await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found'], { timeoutMs: 180_000 });
}, 400_000);

afterAll(async () => {
  await kubectl(['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
  const { json, markdown } = formatMeasurements(measurements);
  console.log(markdown);
  if (process.env.UPDATE_BENCHMARKS) {
    writeFileSync(join(ROOT, 'docs/benchmarks/e2e.json'), json);
    writeFileSync(join(ROOT, 'docs/benchmarks/e2e.md'), markdown);
  }
});

describe('the operator', () => {
  test('turns an applied RenderService into a Deployment and into ready pods', async () => {
    const started = performance.now();
    await apply(manifest);
    const applied = performance.now();
    await eventually('the Deployment', 10_000, replicasOf);
    const deployment = performance.now();
    await untilReady(NAMESPACE, NAME);
    measurements.push(
      {
        name: 'kubectl apply returned to Deployment seen',
        value: (deployment - applied) / 1000,
        unit: 's',
        goal: '< 1',
      },
      { name: 'kubectl apply begun to Ready', value: secondsSince(started), unit: 's', goal: '< 15' },
    );
  });

  test('brings every change of a spec to the Deployment', async () => {
    // Straight to the API server: starting kubectl twice would take longer than what is measured.
    const config = new PooledKubeConfig();
    config.loadFromFile(KUBECONFIG);
    const rest = new Rest(config);
    const path = objectPath(kinds.deployment, NAMESPACE, (await deploymentOf(NAMESPACE, NAME)).metadata.name);
    const latenciesMs: number[] = [];
    for (let change = 1; change <= SPEC_CHANGES; change += 1) {
      const progressDeadlineSeconds = 600 + change; // a change that starts no pods
      const body = { spec: { rollout: { rolling: { progressDeadlineSeconds } } } };
      const started = performance.now();
      await rest.request('PATCH', objectPath(kinds.renderService, NAMESPACE, NAME), { contentType: MERGE_PATCH, body });
      await eventually(
        'the change',
        10_000,
        async () => {
          const { spec } = await rest.request<{ spec: { progressDeadlineSeconds: number } }>('GET', path);
          return spec.progressDeadlineSeconds === progressDeadlineSeconds || undefined;
        },
        5,
      );
      latenciesMs.push(performance.now() - started);
    }
    await config.close();
    const median = latenciesMs.sort((one, other) => one - other)[Math.floor(SPEC_CHANGES / 2)] as number;
    measurements.push({ name: 'spec change to Deployment (median)', value: median, unit: 'ms', goal: '< 500' });
  });

  test('writes nothing in a steady state', async () => {
    await untilAllWorkersUp(NAMESPACE, NAME);
    const holder = await leader();
    const before = await writesOf(holder);
    // A label that nobody uses makes the operator look at the resource again.
    for (const value of ['one', 'two', 'three']) {
      await kubectl(['-n', NAMESPACE, 'label', 'renderservice', NAME, `example.com/look=${value}`, '--overwrite']);
    }
    const reconciles = async () =>
      Number(/reconcile_duration_seconds_count\{result="done"\} (\d+)/.exec(await metricsOf(holder))?.[1]);
    const seen = await reconciles();
    await kubectl(['-n', NAMESPACE, 'label', 'renderservice', NAME, 'example.com/look-']);
    await eventually('another reconcile', 10_000, async () => ((await reconciles()) > seen ? true : undefined));
    expect(await writesOf(holder)).toBe(before);
  });

  test('a second replica takes over within 20 s when the leader freezes, and the frozen one gives up', async () => {
    await kubectl(['-n', OPERATOR_NAMESPACE, 'rollout', 'status', 'deployment/corelane', '--timeout=90s']);
    const holder = await leader();
    const pod = await get<LivePod>('-n', OPERATOR_NAMESPACE, 'pod', holder);
    // The two replicas are on different nodes, so the pattern names one process.
    const signal = (name: string) =>
      run('docker', ['exec', pod.spec.nodeName, 'pkill', `-${name}`, '-f', '^node /app/main.mjs']);
    await signal('STOP');
    const started = performance.now();
    await scale(2);
    await eventually('the change made by the other one', 20_000, async () => (await replicasOf()) === 2 || undefined);
    measurements.push({
      name: 'fail-over after the leader froze',
      value: secondsSince(started),
      unit: 's',
      goal: '< 20',
    });
    expect(await leader()).not.toBe(holder);
    await signal('CONT');
    await eventually('the former leader to start afresh', 60_000, async () => {
      const { status } = await get<LivePod>('-n', OPERATOR_NAMESPACE, 'pod', holder);
      return status.containerStatuses?.some(({ restartCount }) => restartCount > 0) || undefined;
    });
  });

  test('hands over at once when the leader is stopped in order', async () => {
    await kubectl(['-n', OPERATOR_NAMESPACE, 'rollout', 'status', 'deployment/corelane', '--timeout=60s']);
    const holder = await leader();
    await kubectl(['-n', OPERATOR_NAMESPACE, 'delete', 'pod', holder, '--wait=false']);
    const started = performance.now();
    await eventually('a new leader', 20_000, async () => {
      const now = await leader();
      return now !== holder || undefined;
    });
    measurements.push({
      name: 'hand-over when the leader is stopped in order',
      value: secondsSince(started),
      unit: 's',
      goal: '',
    });
    await kubectl(['-n', OPERATOR_NAMESPACE, 'rollout', 'status', 'deployment/corelane', '--timeout=60s']);
    await untilReady(NAMESPACE, NAME);
  });

  test('keeps pods running and restarts none of them while it is away', async () => {
    const names = async () =>
      (await podsOf(NAMESPACE, NAME))
        .filter(({ metadata }) => !metadata.deletionTimestamp)
        .map(({ metadata }) => metadata.name)
        .sort();
    const before = await names();
    await kubectl(['-n', OPERATOR_NAMESPACE, 'rollout', 'restart', 'deployment/corelane']);
    await kubectl(['-n', OPERATOR_NAMESPACE, 'rollout', 'status', 'deployment/corelane', '--timeout=90s']);
    await untilReady(NAMESPACE, NAME);
    expect(await names()).toEqual(before);
  });

  test('fits in its memory request, and the images are small', async () => {
    const metrics = await metricsOf(await leader());
    const rss = Number(/^process_resident_memory_bytes (\d+)/m.exec(metrics)?.[1]);
    expect(rss).toBeGreaterThan(0);
    const size = async (image: string) =>
      Number((await run('docker', ['image', 'inspect', '-f', '{{.Size}}', image])).trim());
    const { operator, sidecar } = imageNames();
    const base = await size(process.env.DEBIAN_IMAGE as string);
    measurements.push(
      { name: 'resident memory of the leading operator', value: rss / MIB, unit: 'MiB', goal: '< 160' },
      {
        name: 'operator image, above its Debian base',
        value: ((await size(operator)) - base) / 1e6,
        unit: 'MB',
        goal: '< 160',
      },
      {
        name: 'sidecar image, above its Debian base',
        value: ((await size(sidecar)) - base) / 1e6,
        unit: 'MB',
        goal: '< 60',
      },
    );
  });
});
