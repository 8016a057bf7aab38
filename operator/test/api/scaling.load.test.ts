/**
 * The scaling loop against a real API server; the metrics are what the tests say (support/metrics-api.ts).
 *
 * A load test: it waits for windows of 15 s, and counts decisions.
 */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { installMetricsApi, removeMetricsApi, reportCpu } from '../support/metrics-api.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, TOLD } from '../support/told.ts';
import { renderService, sharedServer, World } from '../support/world.ts';

let world: World;
let operator: OperatorProcess;

/** The shortest windows there are, and no cooldowns: a window of 15 s is full after 12. */
const FAST = { window: '15s', cooldown: '0s' };
const scaling = {
  minReplicas: 2,
  maxReplicas: 10,
  warmUp: '0s',
  cpu: { scaleUp: { ...FAST, cooldown: '15s' }, scaleDown: FAST },
};
const PATIENT = { timeoutMs: 60_000, everyMs: 300 };

beforeAll(async () => {
  world = await World.create(sharedServer(), 'scaling');
  await installMetricsApi(world.admin);
  operator = await OperatorProcess.start({ ...world.settings('operator-0'), scalingPeriodSeconds: 1 });
  await operator.untilLeading();
});

afterAll(async () => {
  await OperatorProcess.killAll();
  await removeMetricsApi(world.admin);
});

async function podsOf(name: string): Promise<Json[]> {
  return (await world.list('Pod')).filter(
    ({ metadata }) => metadata.labels['corelane.dev/renderservice'] === name && !metadata.deletionTimestamp,
  );
}

/** Does kubelet's and metrics-server's part until `attempt` holds. */
async function whileUsing(name: string, millicores: number, what: string, attempt: () => Promise<void>): Promise<void> {
  await eventually(
    what,
    async () => {
      await world.makePodsReady(name);
      await reportCpu(world.admin, await podsOf(name), millicores);
      await attempt();
    },
    PATIENT,
  );
}

async function replicas(name: string): Promise<number> {
  return (await world.get('RenderService', name)).spec.replicas;
}

async function scalingActive(name: string): Promise<string> {
  const { status, reason } = (await world.condition(name, 'ScalingActive')) ?? {};
  return `${status} ${reason}`;
}

function decisions(name: string): Promise<number> {
  return operator.sum('corelane_scaling_decisions_total', (labels) => labels.renderservice === name);
}

describe('per-core CPU', () => {
  test('above 20 % adds three pods, by way of spec.replicas', async () => {
    await world.createRenderService('shop', { replicas: 2, workersPerPod: 2 });
    // Scaling only now: a look at one pod that is measured beside one that is not yet would make the mean less than 30
    // %.
    await whileUsing('shop', 300, 'both pods are ready', async () => {
      expect((await world.get('RenderService', 'shop')).status).toMatchObject({ readyReplicas: 2 });
    });
    await world.patchSpec('shop', { scaling });
    await whileUsing('shop', 300, 'five pods are wanted', async () => expect(await replicas('shop')).toBe(5));
    await eventually('and there', async () => expect(await podsOf('shop')).toHaveLength(5));
    // Enough for now: after the cooldown of 15 s they would be eight.
    await reportCpu(world.admin, await podsOf('shop'), 170);
  });

  test('says what it did and why: status, Event, metrics, condition', async () => {
    const because = { from: 2, to: 5, reason: 'AboveThreshold', message: 'per-core CPU 30 % > 20 % for 15 s' };
    await eventually('the status says it', async () => {
      const { status } = await world.get('RenderService', 'shop');
      expect(status.scaling.lastDecision).toMatchObject(because);
      expect(await scalingActive('shop')).toBe('True Measuring');
    });
    await eventually('an Event says it', async () => {
      const events = await world.events('shop');
      expect(events.filter(({ reason }) => reason === 'ScaledUp')).toMatchObject([
        { type: 'Normal', note: `scaled 2 -> 5: ${because.message}`, action: 'Scale' },
      ]);
    });
    const up = (labels: Record<string, string>) => labels.direction === 'up' && labels.reason === 'AboveThreshold';
    expect(await operator.sum('corelane_scaling_decisions_total', up)).toBe(1);
    expect(
      await operator.sum('corelane_scaling_utilization_ratio', ({ renderservice }) => renderservice === 'shop'),
    ).toBeGreaterThan(0.1);
  });

  test('the spec stays applicable without replicas, and kubectl shows no conflict', async () => {
    // As GitOps does it: server-side, without the field, again and again.
    const manifest = renderService(world.namespace, 'shop', { scaling, workersPerPod: 2, service: { port: 81 } });
    await world.admin.request(
      'PATCH',
      `${world.path('RenderService', 'shop')}?fieldManager=gitops&force=true`,
      manifest,
      'application/apply-patch+yaml',
    );
    await eventually('the change has come through', async () => {
      expect((await world.get('Service', 'shop')).spec.ports[0].port).toBe(81);
    });
    expect(await replicas('shop')).toBe(5);
  });

  test('below 15 % it removes one at a time, and stops at the minimum', async () => {
    const before = await decisions('shop');
    await whileUsing('shop', 10, 'the minimum', async () => expect(await replicas('shop')).toBe(2));
    expect((await decisions('shop')) - before).toBe(3);
    const { status } = await world.get('RenderService', 'shop');
    expect(status.scaling.lastDecision).toMatchObject({ reason: 'BelowThreshold' });
  });
});

describe('others at the same number', () => {
  test('kubectl scale is where it goes on from; beyond the maximum it comes back', async () => {
    await world.kubectl.run('scale', 'renderservice', 'shop', '--replicas=20');
    await eventually('the maximum', async () => expect(await replicas('shop')).toBe(10), PATIENT);
    const { status } = await world.get('RenderService', 'shop');
    expect(status.selector).toBe('corelane.dev/renderservice=shop,corelane.dev/serving=true');
    await eventually('the reason', async () => {
      const { scaling: shown } = (await world.get('RenderService', 'shop')).status;
      expect(shown.lastDecision).toMatchObject({ from: 20, to: 10, reason: 'OutsideBounds' });
    });
  });

  test('replicas 0 switches scaling off, another number on again', async () => {
    await world.kubectl.run('scale', 'renderservice', 'shop', '--replicas=0');
    await eventually('it says so', async () => expect(await scalingActive('shop')).toBe('False ScaledToZero'));
    expect(await replicas('shop')).toBe(0);
    await world.kubectl.run('scale', 'renderservice', 'shop', '--replicas=1');
    await eventually('the minimum', async () => expect(await replicas('shop')).toBe(2));
  });
});

test('an annotation pauses it, and the reason says so', async () => {
  await world.admin.patch(world.path('RenderService', 'shop'), {
    metadata: { annotations: { 'corelane.dev/scaling-paused': 'true' } },
  });
  await eventually('paused', async () => expect(await scalingActive('shop')).toBe('False Paused'));
  const before = await decisions('shop');
  await whileUsing('shop', 900, 'three pods would be wanted', async () => {
    const utilization = await operator.sum(
      'corelane_scaling_utilization_ratio',
      ({ renderservice }) => renderservice === 'shop',
    );
    expect(utilization).toBeGreaterThan(0.85);
  });
  expect([await replicas('shop'), await decisions('shop')]).toEqual([2, before]);
  await world.admin.patch(world.path('RenderService', 'shop'), {
    metadata: { annotations: { 'corelane.dev/scaling-paused': null } },
  });
  await whileUsing('shop', 900, 'they come when it ends', async () => expect(await replicas('shop')).toBe(5));
});

test('without a Metrics API it holds and says so; it recovers by itself', async () => {
  await removeMetricsApi(world.admin);
  // For a moment there is a Metrics API that knows no pod: the API server removes the objects of a definition first.
  await eventually('it says so', async () => {
    expect(await scalingActive('shop')).toBe('False NoMetrics');
    expect((await world.condition('shop', 'ScalingActive')).message).toMatch(asTold(TOLD.noMetricsApi));
  });
  expect(await replicas('shop')).toBe(5);
  await installMetricsApi(world.admin);
  await whileUsing('shop', 170, 'it measures again', async () => {
    expect(await scalingActive('shop')).toBe('True Measuring');
  });
  expect(await replicas('shop')).toBe(5);
});

test('without scaling nothing of it stays in the status', async () => {
  await world.patchSpec('shop', { scaling: null });
  await eventually('it is gone', async () => {
    const { status } = await world.get('RenderService', 'shop');
    expect(status.scaling).toBeUndefined();
    expect(status.conditions.map(({ type }: Json) => type)).not.toContain('ScalingActive');
  });
  expect(await replicas('shop')).toBe(5);
});
