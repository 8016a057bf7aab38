/**
 * What a RenderService says about itself. There is no kubelet here, so the tests say in its place that pods are ready
 * (`makePodsReady`); from there on the real controllers make the Deployment's status.
 */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, TOLD } from '../support/told.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';
import { conditions, createReady, READY, untilReady } from './status.ts';

let world: World;
let operator: OperatorProcess;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'status');
  operator = await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

async function untilConditions(name: string, expected: Record<string, string>): Promise<void> {
  await eventually(`conditions of ${name}`, async () => expect(await conditions(world, name)).toEqual(expected));
}

const STARTING = { Ready: 'False PodsNotReady', Reconciling: 'True Progressing', Stalled: 'False Progressing' };
const ROLLING = { Ready: 'Unknown Progressing', Reconciling: 'True Progressing', Stalled: 'False Progressing' };

function stalled(reason: string) {
  return { Ready: `False ${reason}`, Reconciling: `False ${reason}`, Stalled: `True ${reason}` };
}

/** Waits for exactly these events; one is recorded a moment after the status that it speaks of. */
async function untilEvents(name: string, expected: string[]): Promise<void> {
  await eventually(`events of ${name}`, async () => {
    const events = await world.events(name);
    expect(events.map(({ type, reason }) => `${type} ${reason}`).sort()).toEqual(expected);
  });
}

describe('a RenderService that comes up', () => {
  test('is not ready before its pods are', async () => {
    await world.createRenderService('rising', { replicas: 3, workersPerPod: 4 });
    await untilConditions('rising', STARTING);
    await eventually('pods exist', async () => {
      const { status } = await world.get('RenderService', 'rising');
      expect(status).toMatchObject({ replicas: 3, readyReplicas: 0, updatedReplicas: 3 });
    });
    expect(await world.condition('rising', 'Ready')).toMatchObject({
      message: '0 of 3 pods are available, 3 run the current template, 3 exist',
    });
  });

  test('is ready when they are, counts its workers, and says so in one event', async () => {
    const waiting = world.kubectl.run('wait', 'rsvc/rising', '--for=condition=Ready', '--timeout=60s');
    await untilReady(world, 'rising');
    await waiting;
    await eventually('all is counted', async () => {
      const { metadata, status } = await world.get('RenderService', 'rising');
      expect(status).toMatchObject({
        observedGeneration: metadata.generation,
        replicas: 3,
        readyReplicas: 3,
        updatedReplicas: 3,
        selector: 'corelane.dev/renderservice=rising,corelane.dev/serving=true',
        workers: { total: 12, ready: 12 },
      });
    });
    await untilEvents('rising', ['Normal AllPodsReady']);
  });

  test('shows that in kubectl get', async () => {
    const [head, line] = (await world.kubectl.run('get', 'rsvc', 'rising')).trim().split('\n') as [string, string];
    expect(head.split(/\s+/)).toEqual(['NAME', 'READY', 'PODS', 'WANTED', 'WORKERS', 'AGE']);
    expect(line.split(/\s+/).slice(0, 5)).toEqual(['rising', 'True', '3', '3', '12']);
  });

  test('without pods is ready, too', async () => {
    await world.createRenderService('empty', { replicas: 0 });
    await untilConditions('empty', READY);
  });
});

describe('a rollout', () => {
  test('leaves Ready open while the old pods serve, and then is ready again', async () => {
    await createReady(world, 'rolled');
    await world.patchSpec('rolled', { template: podTemplate({ image: 'corelane.test/app:2' }) });
    await untilConditions('rolled', ROLLING);
    const { metadata, status } = await world.get('RenderService', 'rolled');
    const generations = status.conditions.map(({ observedGeneration }: Json) => observedGeneration);
    expect(new Set(generations)).toEqual(new Set([metadata.generation]));
    await untilReady(world, 'rolled');
  });

  test('that comes to nothing is stalled with the reason, and recovers with the next spec', async () => {
    await createReady(world, 'stuck');
    await world.patchSpec('stuck', {
      // Only now: the first pods may take longer.
      rollout: { rolling: { progressDeadlineSeconds: 10 } },
      template: podTemplate({ image: 'corelane.test/missing:1' }),
    });
    const pod = await eventually('a pod of the new template', async () => {
      const pods = await world.list('Pod');
      const found = pods.find(({ spec }) => spec.containers[0].image === 'corelane.test/missing:1');
      expect(found).toBeDefined();
      return found;
    });
    // What kubelet reports when it cannot pull.
    const waiting = { reason: 'ImagePullBackOff', message: 'no such image' };
    const status = { name: 'worker-0', image: 'x', imageID: '', ready: false, restartCount: 0, state: { waiting } };
    await world.admin.patch(`${world.path('Pod', pod.metadata.name)}/status`, {
      status: { containerStatuses: [status] },
    });
    await untilConditions('stuck', stalled('ProgressDeadlineExceeded'));
    await eventually('it says what the pod lacks', async () => {
      const { message } = await world.condition('stuck', 'Stalled');
      expect(message).toMatch(asTold(TOLD.deadline));
      expect(message).toContain(`container worker-0 of pod ${pod.metadata.name}: ImagePullBackOff (no such image)`);
    });
    await untilEvents('stuck', ['Normal AllPodsReady', 'Warning ProgressDeadlineExceeded']);

    await world.patchSpec('stuck', { template: podTemplate({ image: 'corelane.test/app:3' }) });
    await untilReady(world, 'stuck');
  });
});

describe('a template that only the Deployment refuses', () => {
  const cases: { what: string; template: object; path: string }[] = [
    {
      what: 'invalid label value',
      template: { ...podTemplate(), metadata: { labels: { version: 'not valid!' } } },
      path: 'spec.template.labels: Invalid value', // the API server's own words
    },
    {
      what: 'mount of a volume that does not exist',
      template: podTemplate({ volumeMounts: [{ name: 'gone', mountPath: '/data' }] }),
      path: 'spec.template.spec.containers[0].volumeMounts[0].name',
    },
    {
      what: 'request above the limit',
      template: podTemplate({ resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }),
      path: 'spec.template.spec.containers[0].resources.requests',
    },
  ];

  test.each(cases.map((one, index) => ({ ...one, name: `refused-${index}` })))(
    'is Rejected with the field, while the pods of before go on: $what',
    async ({ name, template, path }) => {
      await createReady(world, name);
      const before = await world.deployment(name);
      await world.patchSpec(name, { template });
      await untilConditions(name, stalled('Rejected'));
      const { message } = await world.condition(name, 'Stalled');
      expect(message).toMatch(asTold(TOLD.rejected));
      expect(message).toContain(`Deployment "${name}-`);
      expect(message).toContain(path);
      expect(message).toContain('(2 pods keep serving)');
      expect((await world.deployment(name)).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
      expect((await world.get('RenderService', name)).status).toMatchObject({ replicas: 2, readyReplicas: 2 });

      // A list item that only the bad template has must go, too: merge patches replace lists, and maps by null.
      const { metadata } = await world.get('RenderService', name);
      await world.admin.put(world.path('RenderService', name), {
        apiVersion: 'corelane.dev/v1alpha1',
        kind: 'RenderService',
        metadata: { name, resourceVersion: metadata.resourceVersion },
        spec: { template: podTemplate() },
      });
      await untilConditions(name, READY);
      await untilEvents(name, ['Normal AllPodsReady', 'Normal AllPodsReady', 'Warning Rejected']);
    },
  );

  test('as a Service does that is to have another class of load balancer, in its own words', async () => {
    await world.createRenderService('class', { service: { type: 'LoadBalancer', loadBalancerClass: 'example.com/a' } });
    await world.untilApplied('class');
    await world.patchSpec('class', { service: { loadBalancerClass: 'example.com/b' } });
    await eventually('it is stalled', async () => {
      expect(await world.condition('class', 'Stalled')).toMatchObject({ status: 'True', reason: 'Rejected' });
    });
    expect((await world.condition('class', 'Stalled')).message).toContain('spec.loadBalancerClass');
    // By way of another type the class can be changed.
    await world.patchSpec('class', { service: { type: 'ClusterIP', loadBalancerClass: null } });
    await world.untilApplied('class');
    await world.patchSpec('class', { service: { type: 'LoadBalancer', loadBalancerClass: 'example.com/b' } });
    await eventually('the Service has the other class', async () => {
      expect((await world.get('Service', 'class')).spec.loadBalancerClass).toBe('example.com/b');
    });
  });

  test('is looked at again and again without another event', async () => {
    await world.createRenderService('again', {
      template: podTemplate({ volumeMounts: [{ name: 'a', mountPath: '/a' }] }),
    });
    await untilConditions('again', stalled('Rejected'));
    const { status } = await world.get('RenderService', 'again');
    const refused = () =>
      operator.sum('corelane_operator_api_request_duration_seconds_count', ({ code }) => code === '422');
    const before = await refused();
    for (const round of [1, 2, 3]) {
      await world.admin.patch(world.path('RenderService', 'again'), {
        metadata: { annotations: { round: `${round}` } },
      });
      await eventually('the operator has tried again', async () => {
        expect(await refused()).toBeGreaterThanOrEqual(before + round);
      });
    }
    await untilEvents('again', ['Warning Rejected']);
    expect((await world.get('RenderService', 'again')).status).toEqual(status);
  });
});

test('a page that is not there is told, and keeps nobody from being ready', async () => {
  const missing = 'fallback: there is no ConfigMap "shell", so browsers get JSON';
  await world.createRenderService('fallback', { fallback: { configMap: { name: 'shell' } } });
  await untilReady(world, 'fallback');
  const message = async () => (await world.condition('fallback', 'Ready')).message;
  expect(await message()).toBe(`2 of 2 pods are ready; ${missing}`);
  const path = `/api/v1/namespaces/${world.namespace}/configmaps`;
  await world.admin.post(path, { metadata: { name: 'shell' }, data: { 'other.html': '<p>' } });
  await eventually('it says what is missing now', async () =>
    expect(await message()).toContain('ConfigMap "shell" has no key "index.html"'),
  );
  await world.admin.patch(`${path}/shell`, { data: { 'index.html': '<p>' } });
  await eventually('nothing is missing', async () => expect(await message()).toBe('2 of 2 pods are ready'));
});

test('of pods that nobody can ask nothing is claimed', async () => {
  await createReady(world, 'unasked');
  expect(await world.condition('unasked', 'WorkersHealthy')).toMatchObject({ status: 'Unknown', reason: 'NotSampled' });
  const { status } = await world.get('RenderService', 'unasked');
  expect(status.workers).toEqual({ total: 4, ready: 4 });
  expect(status).not.toHaveProperty('queue');
});

test('a write that fails for long is told, and passes', async () => {
  await createReady(world, 'failing');
  const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
  const rule = { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['deployments'] };
  await world.admin.post(path, {
    metadata: { name: 'status-nobody' },
    webhooks: [
      {
        name: 'nobody.corelane.test',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } },
        objectSelector: { matchLabels: { 'corelane.dev/renderservice': 'failing' } },
        rules: [rule],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
  try {
    const probe = `${await world.deploymentPath('failing')}?dryRun=All`;
    await eventually('the webhook is in force', () =>
      expect(world.admin.patch(probe, { metadata: { annotations: { a: 'b' } } })).rejects.toThrow(
        'nobody.corelane.test',
      ),
    );
    await world.patchSpec('failing', { template: podTemplate({ image: 'corelane.test/app:2' }) });
    const retrying = 'Retrying';
    await untilConditions('failing', {
      Ready: `Unknown ${retrying}`,
      Reconciling: `True ${retrying}`,
      Stalled: `False ${retrying}`,
    });
    const { message } = await world.condition('failing', 'Reconciling');
    expect(message).toMatch(asTold(TOLD.retrying));
    expect(message).toContain('nobody.corelane.test');
  } finally {
    await world.admin.delete(`${path}/status-nobody`);
  }
  await untilReady(world, 'failing');
});

test('a condition keeps its time while its status stays', async () => {
  await createReady(world, 'timed');
  const before = await world.condition('timed', 'Ready');
  await world.patchSpec('timed', { service: { port: 8080 } });
  await eventually('the new spec is observed', async () => {
    const { observedGeneration, lastTransitionTime } = await world.condition('timed', 'Ready');
    expect(observedGeneration).toBe(2);
    expect(lastTransitionTime).toBe(before.lastTransitionTime);
  });
});
