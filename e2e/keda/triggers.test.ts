/**
 * KEDA's own operator and metrics adapter, and the autoscaler of Kubernetes, at RenderServices on a real API server
 * under the real operator. There are no nodes; a cron trigger, which needs nobody, says how many pods there should be.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { Json } from '../../operator/test/support/api-client.ts';
import { repository } from '../../operator/test/support/api-server.ts';
import { bareEnvironment } from '../../operator/test/support/bare-environment.ts';
import { eventually } from '../../operator/test/support/eventually.ts';
import { installMetricsApi, reportCpu } from '../../operator/test/support/metrics-api.ts';
import { podTemplate, renderService, type World } from '../../operator/test/support/world.ts';
import { cron, PATIENT, type ScaledObjects } from './scaled-object.ts';
import { KedaWorld, SETUP_TIMEOUT_MS, tellProgress } from './world.ts';

const PAUSED = 'autoscaling.keda.sh/paused';
const PAUSED_REPLICAS = 'autoscaling.keda.sh/paused-replicas';

let keda: KedaWorld;
let world: World;
let scaledObjects: ScaledObjects;

tellProgress();

beforeAll(async () => {
  keda = await KedaWorld.start('keda', 'shop');
  ({ world, scaledObjects } = keda);
}, SETUP_TIMEOUT_MS);

afterAll(() => keda?.stop());

/** `corelane check` of a RenderService in the cluster: what it finds. */
async function findings(name: string): Promise<Json[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Json[]>();
  execFile(
    process.execPath,
    [
      join(repository, 'operator/bin/corelane.mjs'),
      'check',
      `renderservice/${name}`,
      '-n',
      world.namespace,
      '-o',
      'json',
    ],
    { env: bareEnvironment('/nonexistent', { PATH: process.env.PATH, KUBECONFIG: keda.server.adminKubeconfig }) },
    (_error, stdout, stderr) => {
      try {
        resolve(JSON.parse(stdout).flatMap((one: Json) => one.findings));
      } catch {
        reject(new Error(`corelane check says no JSON: ${stdout}${stderr}`));
      }
    },
  );
  return await promise;
}

async function aboutAutoscalers(name: string): Promise<string[]> {
  return (await findings(name)).filter(({ code }) => code === 'C009').map(({ object, what }) => `${object}: ${what}`);
}

test('KEDA takes the ScaledObject, makes an autoscaler of it, and the RenderService gets its pods', async () => {
  await world.createRenderService('page', { workersPerPod: 2 });
  await world.untilApplied('page');
  expect(await keda.replicas('page')).toBe(2);
  await scaledObjects.create('page', { minReplicaCount: 1, maxReplicaCount: 8, triggers: [cron(true, 4)] });
  await keda.untilReplicas('page', 4);
  const { status } = await scaledObjects.get('page');
  expect(status).toMatchObject({ scaleTargetKind: 'corelane.dev/v1alpha1.RenderService', originalReplicaCount: 2 });
  expect((await scaledObjects.autoscaler('page')).spec.scaleTargetRef).toEqual({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    name: 'page',
  });
  await eventually('KEDA says that all is well', async () =>
    expect(await scaledObjects.conditions('page')).toEqual(
      expect.arrayContaining(['Ready=True', 'Active=True', 'HPAActive=True']),
    ),
  );
  expect(await aboutAutoscalers('page')).toEqual([]);
});

test('a manifest without replicas, applied again, leaves the number to KEDA', async () => {
  const manifest = renderService(world.namespace, 'page', { workersPerPod: 2, service: { port: 81 } });
  await world.kubectl.apply(manifest, '--server-side', '--force-conflicts', '--field-manager=gitops');
  await eventually('the change has come through', async () =>
    expect((await world.get('Service', 'page')).spec.ports[0].port).toBe(81),
  );
  expect(await keda.replicas('page')).toBe(4);
});

test('paused: the autoscaler goes, and kubectl scale holds; unpaused, KEDA takes over again', async () => {
  await scaledObjects.annotate('page', { [PAUSED]: 'true' });
  await eventually('it is paused', async () => {
    expect(await scaledObjects.conditions('page')).toContain('Paused=True');
    expect(await scaledObjects.autoscaler('page')).toBeUndefined();
  });
  await world.kubectl.run('scale', 'renderservice', 'page', '--replicas=6');
  await keda.untilReplicas('page', 6);
  await scaledObjects.annotate('page', { [PAUSED]: null });
  await keda.untilReplicas('page', 4);
});

test('paused at a number, and at none', async () => {
  await scaledObjects.annotate('page', { [PAUSED_REPLICAS]: '3' });
  await keda.untilReplicas('page', 3);
  await scaledObjects.annotate('page', { [PAUSED_REPLICAS]: '0' });
  await keda.untilReplicas('page', 0);
  await scaledObjects.annotate('page', { [PAUSED_REPLICAS]: null });
  await keda.untilReplicas('page', 4);
});

test('to zero when no trigger is active, and back by way of one pod', async () => {
  await scaledObjects.patch('page', { spec: { minReplicaCount: 0, triggers: [cron(false, 4)] } });
  await keda.untilReplicas('page', 0);
  await eventually('it says so', async () =>
    expect(await world.condition('page', 'Ready')).toMatchObject({ status: 'True', message: '0 of 0 pods are ready' }),
  );
  await scaledObjects.patch('page', { spec: { triggers: [cron(true, 4)] } });
  await keda.untilReplicas('page', 4);
  const notes = (await world.list('Event')).map(({ note }) => note);
  const target = 'corelane.dev/v1alpha1.RenderService shop/page';
  expect(notes).toContainEqual(expect.stringContaining(`Deactivated ${target} from 4 to 0`));
  expect(notes).toContainEqual(expect.stringContaining(`Scaled ${target} from 0 to 1`));
});

describe('beside scaling of our own', () => {
  const downs = async () =>
    (await world.events('page')).filter(({ reason }) => reason === 'ScaledDown').map(({ note }) => note);

  test('the two fight for as long as both are there, and corelane check says it', async () => {
    await world.patchSpec('page', { scaling: { minReplicas: 2, maxReplicas: 3 } });
    await eventually(
      'the one takes back what the other writes, more than once',
      async () => expect((await downs()).length).toBeGreaterThan(1),
      PATIENT,
    );
    expect(new Set(await downs())).toEqual(new Set(['scaled 4 -> 3: 4 is outside of 2 to 3']));
    // Not of the autoscaler that KEDA has made, and would make again.
    expect(await aboutAutoscalers('page')).toEqual([
      'ScaledObject/page: it scales RenderService page, which has scaling of its own',
    ]);
  });

  test('paused, ours leaves the number to KEDA', async () => {
    await world.admin.patch(world.path('RenderService', 'page'), {
      metadata: { annotations: { 'corelane.dev/scaling-paused': 'true' } },
    });
    await eventually('ours is paused', async () =>
      expect(await world.condition('page', 'ScalingActive')).toMatchObject({ reason: 'Paused' }),
    );
    await keda.untilReplicas('page', 4);
  });

  test('taken away, KEDA has it alone', async () => {
    await world.patchSpec('page', { scaling: null });
    await eventually('nothing is said of scaling', async () => {
      const { status } = await world.get('RenderService', 'page');
      expect(status.scaling).toBeUndefined();
      expect(await world.condition('page', 'ScalingActive')).toBeUndefined();
    });
    expect(await keda.replicas('page')).toBe(4);
    expect(await aboutAutoscalers('page')).toEqual([]);
  });
});

test('a ScaledObject that goes leaves the number, or restores that of before', async () => {
  await scaledObjects.delete('page');
  expect(await keda.replicas('page')).toBe(4);
  await world.createRenderService('other', { replicas: 3 });
  await world.untilApplied('other');
  const spec = { minReplicaCount: 1, maxReplicaCount: 8, triggers: [cron(true, 5)] };
  await scaledObjects.create('other', { ...spec, advanced: { restoreToOriginalReplicaCount: true } });
  await keda.untilReplicas('other', 5);
  await scaledObjects.delete('other');
  await keda.untilReplicas('other', 3);
});

test("by the CPU of one worker, with KEDA's containerName: no Prometheus is wanted", async () => {
  await installMetricsApi(world.admin);
  const resources = { requests: { cpu: '100m' } };
  await world.createRenderService('cpu', { workersPerPod: 2, template: podTemplate({ resources }) });
  await world.untilApplied('cpu');
  const metadata = { value: '50', containerName: 'worker-0' };
  const triggers = [{ type: 'cpu', metricType: 'Utilization', metadata }];
  await scaledObjects.create('cpu', { minReplicaCount: 2, maxReplicaCount: 5, triggers });
  await eventually(
    'the maximum',
    async () => {
      // What kubelet and metrics-server would do, of pods that run for long.
      await world.makePodsReady('cpu');
      const pods = (await world.list('Pod')).filter(
        ({ metadata: { labels } }) => labels['corelane.dev/renderservice'] === 'cpu',
      );
      await Promise.all(
        pods.map(({ metadata: { name } }) =>
          world.admin.patch(`${world.path('Pod', name)}/status`, { status: { startTime: '2026-01-01T00:00:00Z' } }),
        ),
      );
      await reportCpu(world.admin, pods, 100);
      expect(await keda.replicas('cpu')).toBe(5);
    },
    PATIENT,
  );
  const [metric] = (await scaledObjects.autoscaler('cpu')).spec.metrics;
  expect(metric).toMatchObject({
    type: 'ContainerResource',
    containerResource: { name: 'cpu', container: 'worker-0' },
  });
  expect(await aboutAutoscalers('cpu')).toEqual([]);
});

test('at the Deployment KEDA gets nothing: the operator takes back what it writes', async () => {
  await world.createRenderService('wrong', { replicas: 2 });
  await world.untilApplied('wrong');
  const { name } = (await world.deployment('wrong')).metadata;
  const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name };
  await scaledObjects.create('wrong', { scaleTargetRef, minReplicaCount: 1, triggers: [cron(true, 4)] });
  const status = async () => (await scaledObjects.autoscaler('wrong'))?.status?.conditions ?? [];
  await eventually(
    'the autoscaler has written',
    async () => expect(await status()).toContainEqual(expect.objectContaining({ reason: 'SucceededRescale' })),
    PATIENT,
  );
  await keda.untilReplicas('wrong', 2);
  expect(await aboutAutoscalers('wrong')).toEqual([
    'ScaledObject/wrong: it scales a Deployment that the RenderService owns',
  ]);
  await scaledObjects.delete('wrong');
});
