/**
 * No request is lost when pods come and go: rolling updates, deleted pods, scaling, drained nodes, under an open-loop load
 * through the Service, with one keep-alive client that sticks to a pod and one that finds pods as an ingress does.
 *
 * A CI run does a few of each; `make bench-drain` does 10 rollouts, 30 deletions, 2 node drains and 8 -> 2 -> 8 pods.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apply, eventually, get, kubectl } from '../support/cluster.ts';
import { allowEndpoints, type LoadResult, startLoad } from '../support/load.ts';
import { imageNames, installOperator } from '../support/operator.ts';
import { type LivePod, podsOf, untilReady } from '../support/renderservice.ts';
import { ROOT } from '../support/shell.ts';

const NAMESPACE = 'drain-story';
const NAME = 'blocker';
const isFull = process.env.DRAIN_STORY === 'full';
const counts = isFull
  ? { rollouts: 10, deletions: 30, drains: 2, pods: 8, fewPods: 2 }
  : { rollouts: 1, deletions: 3, drains: 1, pods: 4, fewPods: 2 };
/** Two workers a pod, 50 ms a render: the fewest pods alone serve 80 a second. */
const RATE_PER_S = 40;
/** Long enough for everything; the load is told to stop when it is done. */
const SECONDS_MAX = isFull ? 1_700 : 600;

const manifest = {
  apiVersion: 'corelane.dev/v1alpha1',
  kind: 'RenderService',
  metadata: { name: NAME, namespace: NAMESPACE },
  spec: {
    replicas: counts.pods,
    workersPerPod: 2,
    rollout: { rolling: { maxSurge: 2 } },
    drain: { timeout: '30s' },
    template: {
      spec: {
        containers: [
          {
            name: 'worker',
            image: imageNames().storefront,
            command: ['node', '/app/blocker.mjs'],
            resources: { requests: { cpu: '20m', memory: '64Mi' } },
            volumeMounts: [{ name: 'app', mountPath: '/app' }],
          },
        ],
        volumes: [{ name: 'app', configMap: { name: 'blocker' } }],
      },
    },
  },
};

interface Load {
  name: string;
  result: (timeoutMs: number) => Promise<LoadResult>;
}
const loads: Load[] = [];

async function start(name: string, ratePerS: number, ...args: string[]): Promise<void> {
  const requests = String(Math.min(ratePerS * SECONDS_MAX, 200_000));
  const bounds = ['--requests', requests, '--rate', String(ratePerS), '--max-seconds', String(2 * SECONDS_MAX)];
  loads.push({ name, ...(await startLoad(NAMESPACE, name, [...bounds, '--timeout', '30s', ...args])) });
  await eventually(`load pod ${name} to run`, 60_000, async () => {
    const { status } = await get<LivePod>('-n', NAMESPACE, 'pod', name);
    return status.phase === 'Running' || undefined;
  });
}

/** Pods that are not on their way out. */
async function livePods(): Promise<LivePod[]> {
  return (await podsOf(NAMESPACE, NAME)).filter(({ metadata }) => !metadata.deletionTimestamp);
}

async function untilSettled(): Promise<void> {
  await untilReady(NAMESPACE, NAME, 180_000);
  await eventually('stopping pods to be gone', 120_000, async () => {
    const stopping = (await podsOf(NAMESPACE, NAME)).some(({ metadata }) => metadata.deletionTimestamp);
    return stopping ? undefined : true;
  });
}

async function times(count: number, work: (index: number) => Promise<void>): Promise<void> {
  for (let index = 0; index < count; index += 1) await work(index);
}

beforeAll(async () => {
  await installOperator();
  await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found'], { timeoutMs: 240_000 });
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }));
  await allowEndpoints(NAMESPACE);
  const data = { 'blocker.mjs': readFileSync(join(ROOT, 'e2e/support/blocker.mjs'), 'utf8') };
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'blocker', namespace: NAMESPACE }, data };
  await apply(JSON.stringify(configMap));
  await apply(JSON.stringify(manifest));
  await untilReady(NAMESPACE, NAME);
  const service = ['--url', `http://${NAME}.${NAMESPACE}.svc/`];
  await start('open-loop', RATE_PER_S, ...service);
  await start('pinned', 5, ...service, '--concurrency', '1', '--keep-alive');
  await start('ingress', 10, '--endpoints', `${NAMESPACE}/${NAME}`, '--keep-alive');
}, 400_000);

afterAll(async () => {
  for (const node of await workerNodes()) await kubectl(['uncordon', node]);
  await kubectl(['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
});

async function workerNodes(): Promise<string[]> {
  const selector = '!node-role.kubernetes.io/control-plane';
  const { items } = await get<{ items: { metadata: { name: string } }[] }>('nodes', '-l', selector);
  return items.map(({ metadata }) => metadata.name);
}

describe('under load from three clients', () => {
  test('pods are replaced by rolling updates', async () => {
    await times(counts.rollouts, async (index) => {
      const annotations = { 'example.com/rollout': String(index) };
      const patch = JSON.stringify({ spec: { template: { metadata: { annotations } } } });
      await kubectl(['-n', NAMESPACE, 'patch', 'renderservice', NAME, '--type=merge', '-p', patch]);
      await untilSettled();
    });
  }, 1_500_000);

  test('pods are deleted', async () => {
    await times(counts.deletions, async () => {
      const [pod] = await livePods();
      await kubectl(['-n', NAMESPACE, 'delete', 'pod', pod?.metadata.name as string, '--wait=false']);
      await untilSettled();
    });
  }, 1_500_000);

  test('the fleet shrinks and grows', async () => {
    for (const replicas of [counts.fewPods, counts.pods]) {
      await kubectl(['-n', NAMESPACE, 'scale', 'renderservice', NAME, `--replicas=${replicas}`]);
      await untilSettled();
    }
  }, 600_000);

  test('a node is drained', async () => {
    const nodes = await workerNodes();
    await times(counts.drains, async (index) => {
      const node = nodes[index % nodes.length] as string;
      // Only these pods: whatever else runs on the node is not part of the story.
      const selector = `--pod-selector=corelane.dev/renderservice=${NAME}`;
      await kubectl(['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', selector, '--timeout=240s'], {
        timeoutMs: 300_000,
      });
      await untilSettled();
      await kubectl(['uncordon', node]);
    });
  }, 900_000);

  test('and no request is lost, and no worker ever had two', async () => {
    const results: Record<string, LoadResult> = {};
    for (const { name, result } of loads) {
      // SIGTERM: the client prints its result; what was in flight counts as STOPPED there.
      await kubectl(['-n', NAMESPACE, 'exec', name, '--', 'node', '-e', 'process.kill(1, "SIGTERM")']);
      results[name] = await result(120_000);
    }
    const outcome = Object.entries(results).map(([name, { ok, overlaps, statuses, errors, latencyMs }]) => {
      const { STOPPED: _stopped, ...lost } = errors as Record<string, number>;
      return { name, ok, overlaps, statuses, errors: lost, latencyMs };
    });
    console.log(JSON.stringify({ counts, outcome }, null, 2));
    if (process.env.UPDATE_BENCHMARKS) {
      writeFileSync(join(ROOT, 'docs/benchmarks/drain.json'), `${JSON.stringify({ counts, outcome }, null, 2)}\n`);
    }
    for (const { ok, ...rest } of outcome) {
      expect(ok).toBeGreaterThan(0);
      expect(rest).toMatchObject({ overlaps: 0, statuses: { 200: ok }, errors: {} });
    }
  }, 400_000);
});
