/**
 * The operator on a real cluster: how long it takes, and what it does when its leader goes (fail-over, hand-over, a
 * restart); its memory and its images.
 *
 * A load test: a takeover must not take longer than 20 s, of which the Lease alone is 15 s.
 */
import { apply, eventually, get, kubectl } from '../harness/cluster/cluster.ts';
import type { Measurement } from '../harness/cluster/measurements.ts';
import { imageNames, OPERATOR_NAMESPACE } from '../harness/cluster/operator.ts';
import { type LivePod, podsOf, untilReady } from '../harness/cluster/renderservice.ts';
import { run } from '../harness/cluster/shell.ts';
import {
  changeDeadline,
  leader,
  MANIFEST,
  metricsOf,
  NAME,
  NAMESPACE,
  prepareNamespace,
  removeNamespace,
  replicasOf,
  secondsSince,
  writeMeasurements,
} from './operator.ts';

const MIB = 1024 * 1024;
const SPEC_CHANGES = 15;

const measurements: Measurement[] = [];
const scale = (replicas: number) =>
  kubectl(['-n', NAMESPACE, 'scale', 'renderservice', NAME, `--replicas=${replicas}`]);

beforeAll(prepareNamespace, 400_000);

afterAll(async () => {
  await removeNamespace();
  writeMeasurements(measurements);
});

describe('the operator', () => {
  test('how long a new RenderService takes to its Deployment and to ready pods', async () => {
    const started = performance.now();
    await apply(MANIFEST);
    const applied = performance.now();
    await eventually('the Deployment', 60_000, replicasOf);
    const seen = secondsSince(applied);
    await untilReady(NAMESPACE, NAME);
    measurements.push(
      { name: 'kubectl apply returned to Deployment seen', value: seen, unit: 's', goal: '< 1' },
      { name: 'kubectl apply begun to Ready', value: secondsSince(started), unit: 's', goal: '< 15' },
    );
  });

  test('how long a change of a spec takes to its Deployment', async () => {
    const latenciesMs: number[] = [];
    for (let change = 1; change <= SPEC_CHANGES; change += 1) latenciesMs.push(await changeDeadline(600 + change));
    const median = latenciesMs.sort((one, other) => one - other)[Math.floor(SPEC_CHANGES / 2)] as number;
    measurements.push({ name: 'spec change to Deployment (median)', value: median, unit: 'ms', goal: '< 500' });
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
