/** What a RenderService owns, and that it stays as the spec asks whatever others do to it. */
import type { Json, KindName } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, TOLD } from '../support/told.ts';
import { podTemplate, renderService, sharedServer, World } from '../support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'owned-objects');
  await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

/** Name of the ConfigMap that the Deployment's pods mount now. */
async function currentConfigMap(name: string): Promise<string> {
  const { spec } = await world.deployment(name);
  return spec.template.metadata.annotations['corelane.dev/config'];
}

/** ConfigMaps of one RenderService, but for that of the live settings, which is one for all templates. */
async function configMaps(name: string): Promise<string[]> {
  const all = await world.list('ConfigMap');
  return all
    .filter(({ metadata }) => metadata.labels?.['corelane.dev/renderservice'] === name)
    .map(({ metadata }) => metadata.name)
    .filter((one) => one !== `${name}-live`);
}

/** Name of the object of this kind that a RenderService has. */
async function nameOf(kind: KindName, name: string): Promise<string> {
  if (kind === 'ConfigMap') return await currentConfigMap(name);
  return kind === 'Deployment' ? (await world.deployment(name)).metadata.name : name;
}

function envOf(deployment: Json, container: string): Json[] {
  return deployment.spec.template.spec.containers.find(({ name }: Json) => name === container).env;
}

describe('a new RenderService', () => {
  let owner: Json;

  beforeAll(async () => {
    await world.kubectl.apply(renderService(world.namespace, 'new'));
    owner = await world.untilApplied('new');
  });

  test.each<[KindName, () => Promise<string>]>([
    ['ConfigMap', () => currentConfigMap('new')],
    ['Service', async () => 'new'],
    ['Service', async () => 'new-peers'],
    ['PodDisruptionBudget', async () => 'new'],
    ['NetworkPolicy', async () => 'new'],
    ['Deployment', () => nameOf('Deployment', 'new')],
  ])('has a %s with its labels, which goes when it goes', async (kind, nameOf) => {
    const { metadata } = await world.get(kind, await nameOf());
    const revision = kind === 'Deployment' && { 'corelane.dev/revision': metadata.name.replace('new-', '') };
    expect(metadata.labels).toEqual({
      ...revision,
      'app.kubernetes.io/managed-by': 'corelane',
      'app.kubernetes.io/instance': 'new',
      'corelane.dev/renderservice': 'new',
    });
    expect(metadata.ownerReferences).toEqual([
      {
        apiVersion: 'corelane.dev/v1alpha1',
        kind: 'RenderService',
        name: 'new',
        uid: owner.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
  });

  test('gets pods that mount its configuration', async () => {
    const pods = await eventually('two pods exist', async () => {
      const all = await world.list('Pod');
      const own = all.filter(({ metadata }) => metadata.labels['corelane.dev/renderservice'] === 'new');
      expect(own).toHaveLength(2);
      return own;
    });
    const names = pods.map(
      ({ spec }) => spec.volumes.find(({ name }: Json) => name === 'corelane-config').configMap.name,
    );
    expect(names).toEqual(Array(2).fill(await currentConfigMap('new')));
  });
});

describe('an owned object', () => {
  beforeAll(async () => {
    await world.createRenderService('kept');
    await world.untilApplied('kept');
  });

  test.each<KindName>(['ConfigMap', 'Service', 'PodDisruptionBudget', 'NetworkPolicy', 'Deployment'])(
    'comes back when somebody deletes it: %s',
    async (kind) => {
      const name = await nameOf(kind, 'kept');
      const before = await world.get(kind, name);
      await world.kubectl.run('delete', kind.toLowerCase(), name, '--wait=true');
      await eventually(`the ${kind} is back`, async () => {
        expect((await world.get(kind, name)).metadata.uid).not.toBe(before.metadata.uid);
      });
    },
  );

  test.each<{ what: string; kind: KindName; name: string; patch: object; repaired: object }>([
    {
      what: 'port of the Service',
      kind: 'Service',
      name: 'kept',
      patch: { spec: { ports: [{ name: 'http', port: 81, targetPort: 1234 }] } },
      repaired: { spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 9000 }] } },
    },
    {
      what: 'selector of the Service',
      kind: 'Service',
      name: 'kept',
      patch: { spec: { selector: { 'corelane.dev/renderservice': 'another' } } },
      repaired: { spec: { selector: { 'corelane.dev/renderservice': 'kept', 'corelane.dev/serving': 'true' } } },
    },
    {
      what: 'budget',
      kind: 'PodDisruptionBudget',
      name: 'kept',
      patch: { spec: { maxUnavailable: '50%' } },
      repaired: { spec: { maxUnavailable: 1 } },
    },
    {
      what: 'rules of the NetworkPolicy, opened for all',
      kind: 'NetworkPolicy',
      name: 'kept',
      patch: { spec: { ingress: [{}] } },
      repaired: {
        spec: {
          ingress: [
            { ports: [9000, 15_008, 4_143].map((port) => ({ protocol: 'TCP', port })) },
            {
              ports: [{ protocol: 'TCP', port: 9001 }],
              from: [{ podSelector: { matchLabels: { 'corelane.dev/renderservice': 'kept' } } }],
            },
            {
              ports: [8998, 8999, 15_020, 15_090, 4_191].map((port) => ({ protocol: 'TCP', port })),
              from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'owned-objects' } } }],
            },
            { from: [{ ipBlock: { cidr: '169.254.7.127/32' } }] },
          ],
        },
      },
    },
    {
      what: 'pods that the NetworkPolicy is about',
      kind: 'NetworkPolicy',
      name: 'kept',
      patch: { spec: { podSelector: { matchLabels: { 'corelane.dev/renderservice': 'another' } } } },
      repaired: { spec: { podSelector: { matchLabels: { 'corelane.dev/renderservice': 'kept' } } } },
    },
    {
      what: 'replicas of the Deployment',
      kind: 'Deployment',
      name: 'kept',
      patch: { spec: { replicas: 7 } },
      repaired: { spec: { replicas: 2 } },
    },
    {
      what: 'strategy of the Deployment',
      kind: 'Deployment',
      name: 'kept',
      patch: { spec: { strategy: { type: 'Recreate', rollingUpdate: null } } },
      repaired: {
        spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 0 } } },
      },
    },
    {
      what: 'label of ours',
      kind: 'PodDisruptionBudget',
      name: 'kept',
      patch: { metadata: { labels: { 'corelane.dev/renderservice': null, 'app.kubernetes.io/instance': 'mine' } } },
      repaired: {
        metadata: { labels: { 'corelane.dev/renderservice': 'kept', 'app.kubernetes.io/instance': 'kept' } },
      },
    },
  ])('is repaired when somebody changes it: $what', async ({ kind, name, patch, repaired }) => {
    const own = await nameOf(kind, name);
    await world.admin.patch(world.path(kind, own), patch);
    await eventually(`the ${kind} is as before`, async () => {
      expect(await world.get(kind, own)).toMatchObject(repaired);
    });
  });

  test.each<{ what: string; kind: KindName; patch: object; gone: (object: Json) => unknown; repaired?: object }>([
    {
      what: 'extra port of the Service',
      kind: 'Service',
      patch: {
        spec: {
          ports: [
            { name: 'http', port: 80, targetPort: 9000 },
            { name: 'extra', port: 81 },
          ],
        },
      },
      gone: ({ spec }) => spec.ports[1],
    },
    {
      what: 'extra key of the selector, which would empty the Service',
      kind: 'Service',
      patch: { spec: { selector: { tier: 'gold' } } },
      gone: ({ spec }) => spec.selector.tier,
    },
    {
      what: 'field that has a default',
      kind: 'Service',
      patch: { spec: { sessionAffinity: 'ClientIP' } },
      gone: ({ spec }) => spec.sessionAffinityConfig,
      repaired: { spec: { sessionAffinity: 'None' } },
    },
    {
      what: 'field that excludes one of ours',
      kind: 'PodDisruptionBudget',
      patch: { spec: { maxUnavailable: null, minAvailable: 2 } },
      gone: ({ spec }) => spec.minAvailable,
      repaired: { spec: { maxUnavailable: 1 } },
    },
    {
      what: 'egress rule, which would shut the pods in',
      kind: 'NetworkPolicy',
      patch: { spec: { policyTypes: ['Ingress', 'Egress'], egress: [{}] } },
      gone: ({ spec }) => spec.egress,
      repaired: { spec: { policyTypes: ['Ingress'] } },
    },
    {
      what: 'paused rollout',
      kind: 'Deployment',
      patch: { spec: { paused: true } },
      gone: ({ spec }) => spec.paused,
    },
    {
      what: 'extra pod label',
      kind: 'Deployment',
      patch: { spec: { template: { metadata: { labels: { team: 'blue' } } } } },
      gone: ({ spec }) => spec.template.metadata.labels.team,
    },
    {
      what: 'node selector',
      kind: 'Deployment',
      patch: { spec: { template: { spec: { nodeSelector: { disk: 'ssd' } } } } },
      gone: ({ spec }) => spec.template.spec.nodeSelector,
    },
  ])('loses what somebody adds: $what', async ({ kind, patch, gone, repaired = {} }) => {
    const own = await nameOf(kind, 'kept');
    const changed = await world.admin.patch(world.path(kind, own), patch);
    expect(gone(changed) ?? changed.spec.sessionAffinity).toBeDefined();
    await eventually(`the ${kind} is as before`, async () => {
      const object = await world.get(kind, own);
      expect(gone(object)).toBeUndefined();
      expect(object).toMatchObject(repaired);
    });
  });

  test('loses an environment variable of kubectl set env, and one that takes the place of ours', async () => {
    await world.kubectl.run(
      'set',
      'env',
      `deployment/${await nameOf('Deployment', 'kept')}`,
      'DEBUG=1',
      '--containers=worker-0',
    );
    await eventually('DEBUG is gone', async () => {
      expect(envOf(await world.deployment('kept'), 'worker-0').map(({ name }) => name)).not.toContain('DEBUG');
    });
    const { spec } = await world.deployment('kept');
    for (const variable of spec.template.spec.containers[1].env) {
      if (variable.name !== 'PORT') continue;
      delete variable.value;
      variable.valueFrom = { fieldRef: { fieldPath: 'metadata.name' } };
    }
    await world.admin.patch(await world.deploymentPath('kept'), { spec: { template: spec.template } });
    await eventually('PORT is ours again', async () => {
      expect(envOf(await world.deployment('kept'), 'worker-1')).toContainEqual({ name: 'PORT', value: '9003' });
    });
  });

  test('gets its image back after kubectl set image', async () => {
    await world.kubectl.run(
      'set',
      'image',
      `deployment/${await nameOf('Deployment', 'kept')}`,
      'worker-0=corelane.test/other:1',
      'worker-1=x:1',
    );
    await eventually('the images are as before', async () => {
      const { containers } = (await world.deployment('kept')).spec.template.spec;
      expect(containers.map(({ image }: Json) => image)).toEqual(['corelane.test/app:1', 'corelane.test/app:1']);
    });
  });

  test('loses a container that somebody adds', async () => {
    await world.kubectl.run(
      'patch',
      `deployment/${await nameOf('Deployment', 'kept')}`,
      '--patch',
      JSON.stringify({ spec: { template: { spec: { containers: [{ name: 'debug', image: 'busybox' }] } } } }),
    );
    await eventually('the container is gone', async () => {
      const { containers } = (await world.deployment('kept')).spec.template.spec;
      expect(containers.map(({ name }: Json) => name)).toEqual(['worker-0', 'worker-1']);
    });
  });

  test.each<KindName>(['Service', 'Deployment', 'PodDisruptionBudget', 'NetworkPolicy', 'ConfigMap'])(
    'keeps labels and annotations that are not ours: %s',
    async (kind) => {
      const name = await nameOf(kind, 'kept');
      // Together with a change of a label of ours, whose repair proves that the operator has seen both.
      await world.admin.patch(world.path(kind, name), {
        metadata: {
          labels: { team: 'blue', 'app.kubernetes.io/managed-by': 'me' },
          annotations: { 'example.com/note': 'hands off' },
        },
      });
      await eventually('our label is repaired', async () => {
        const { metadata } = await world.get(kind, name);
        expect(metadata.labels).toMatchObject({ team: 'blue', 'app.kubernetes.io/managed-by': 'corelane' });
        expect(metadata.annotations).toMatchObject({ 'example.com/note': 'hands off' });
      });
    },
  );

  test('keeps the annotation of kubectl rollout restart, also over a later change', async () => {
    const restartedAt = async () =>
      (await world.deployment('kept')).spec.template.metadata.annotations['kubectl.kubernetes.io/restartedAt'];
    await world.kubectl.run('rollout', 'restart', `deployment/${await nameOf('Deployment', 'kept')}`);
    const time = await restartedAt();
    expect(time).toEqual(expect.any(String));
    await world.patchSpec('kept', { rollout: { rolling: { minReadySeconds: 3 } } });
    await eventually('the change is applied', async () => {
      expect((await world.deployment('kept')).spec.minReadySeconds).toBe(3);
    });
    expect(await restartedAt()).toBe(time);
  });

  test('cannot have its configuration changed: the ConfigMap is immutable', async () => {
    const path = world.path('ConfigMap', await currentConfigMap('kept'));
    await expect(world.admin.patch(path, { data: { 'nginx.conf': 'events {}' } })).rejects.toThrow('immutable');
  });
});

describe('what somebody writes into an owned object', () => {
  const WORKER = String.raw`spec\.template\.spec\.containers\[{"name":"worker-0"}\]`;

  /** Events about such writes. */
  async function notes(): Promise<string[]> {
    const events = (await world.events('told')).filter(({ reason }) => reason === 'TakenBack');
    return events.map(({ note }) => note);
  }

  beforeAll(async () => {
    await world.createRenderService('told');
    await world.untilApplied('told');
  });

  test.each<[what: string, args: (deployment: string) => string[], told: RegExp]>([
    [
      'kubectl scale',
      (name) => ['scale', `deployment/${name}`, '--replicas=1'],
      /"kubectl" has scaled it from 2 to 1; use kubectl scale renderservice told --replicas=1 instead\. /,
    ],
    [
      'kubectl scale to none',
      (name) => ['scale', `deployment/${name}`, '--replicas=0'],
      /: somebody has scaled it from 2 to 0; use kubectl scale renderservice told --replicas=0 instead\. /,
    ],
    [
      'kubectl set env, as Reloader does it',
      (name) => ['set', 'env', `deployment/${name}`, 'RELOADED=1', '--containers=worker-0'],
      new RegExp(`"kubectl-set" sets ${WORKER}\\.env\\[{"name":"RELOADED"}\\]; set spec\\.template of `),
    ],
    [
      'kubectl rollout pause',
      (name) => ['rollout', 'pause', `deployment/${name}`],
      /"kubectl-rollout" sets spec\.paused; set spec\.rollout\.paused of RenderService "told" instead\. /,
    ],
    [
      'kubectl label, over a label of ours',
      (name) => ['label', `deployment/${name}`, 'app.kubernetes.io/instance=mine', '--overwrite'],
      /"kubectl-label" changes metadata\.labels\.app\.kubernetes\.io\/instance; RenderService "told" decides it\. /,
    ],
    [
      'kubectl patch of the Service',
      () => ['patch', 'service', 'told', '--patch', '{"spec":{"sessionAffinity":"ClientIP"}}'],
      /^Service "told": "kubectl-patch" sets spec\.sessionAffinity.*; set spec\.service of RenderService "told" instead\. /,
    ],
    [
      'kubectl delete',
      () => ['delete', 'poddisruptionbudget', 'told'],
      /^PodDisruptionBudget "told": somebody has deleted it; set spec\.disruptionBudget of RenderService "told" instead\. /,
    ],
    [
      'kubectl set image',
      (name) => ['set', 'image', `deployment/${name}`, 'worker-0=corelane.test/other:1'],
      new RegExp(`"kubectl-set" sets ${WORKER}\\.image; set spec\\.template of RenderService "told" instead\\. `),
    ],
  ])('is told in an Event, with who, what and where to write it instead: %s', async (_what, args, told) => {
    await world.kubectl.run(...args(await nameOf('Deployment', 'told')));
    await eventually('the Event is there', async () =>
      expect(await notes()).toContainEqual(expect.stringMatching(told)),
    );
    expect((await world.deployment('told')).spec.replicas).toBe(2);
  });

  test('is told by a condition as well', async () => {
    const { status, reason, message } = await world.condition('told', 'ObjectsInSync');
    expect([status, reason]).toEqual(['False', 'TakenBack']);
    const about = message.slice(message.indexOf('Deployment "'));
    expect(about).toMatch(asTold(TOLD.takenBack));
  });

  test('is told in one Event however often it is written', async () => {
    const name = await nameOf('Deployment', 'told');
    /** Fields that Corelane has applied. */
    const ours = async () => {
      const { managedFields } = (await world.deployment('told')).metadata;
      return managedFields.find(({ manager, operation }: Json) => manager === 'corelane' && operation === 'Apply')
        .fieldsV1;
    };
    const before = await ours();
    await world.kubectl.run('set', 'image', `deployment/${name}`, 'worker-0=corelane.test/other:1');
    // A repair is two writes. What somebody writes between them is taken back by the second one, and not told.
    await eventually('all of it is taken back', async () => expect(await ours()).toEqual(before));
    // The operator tells writes in their order: this Event comes after the one that must not come.
    await world.kubectl.run('scale', `deployment/${name}`, '--replicas=9');
    await eventually('the next is told', async () =>
      expect(await notes()).toContainEqual(expect.stringContaining('from 2 to 9')),
    );
    expect((await notes()).filter((note) => note.includes('.image; set '))).toHaveLength(1);
  });
});

describe('a change of the spec', () => {
  test('by kubectl scale reaches the Deployment', async () => {
    await world.createRenderService('scaled');
    await world.untilApplied('scaled');
    await world.kubectl.run('scale', 'renderservice/scaled', '--replicas=5');
    await eventually('5 pods are asked for', async () => {
      expect((await world.deployment('scaled')).spec.replicas).toBe(5);
    });
    await eventually('the status tells the pods to a HorizontalPodAutoscaler', async () => {
      const scale = await world.admin.get(`${world.path('RenderService', 'scaled')}/scale`);
      expect(scale).toMatchObject({
        spec: { replicas: 5 },
        status: { replicas: 5, selector: 'corelane.dev/renderservice=scaled,corelane.dev/serving=true' },
      });
    });
  });

  test('to the pod template changes every worker, and to their number adds workers', async () => {
    await world.createRenderService('grown', { workersPerPod: 2 });
    await world.untilApplied('grown');
    await world.patchSpec('grown', { workersPerPod: 4, template: podTemplate({ image: 'corelane.test/app:2' }) });
    await eventually('4 workers run the new image', async () => {
      const { containers } = (await world.deployment('grown')).spec.template.spec;
      expect(containers.map(({ name, image }: Json) => [name, image])).toEqual(
        [0, 1, 2, 3].map((index) => [`worker-${index}`, 'corelane.test/app:2']),
      );
    });
  });

  test('that removes a field removes it from the Deployment', async () => {
    await world.createRenderService('shrunk', { template: podTemplate({}, { nodeSelector: { disk: 'ssd' } }) });
    await world.untilApplied('shrunk');
    await world.admin.patch(world.path('RenderService', 'shrunk'), {
      spec: { template: { spec: { nodeSelector: null } } },
    });
    await eventually('the node selector is gone', async () => {
      expect((await world.deployment('shrunk')).spec.template.spec.nodeSelector).toBeUndefined();
    });
  });

  test('makes a new ConfigMap; an old one goes when no ReplicaSet can mount it any more', async () => {
    // Without pods the Deployment is complete at once, and its controller drops old ReplicaSets.
    await world.createRenderService('pruned', { replicas: 0 });
    const replicaSetExists = async () => {
      const { status, metadata } = await world.deployment('pruned');
      expect(status?.observedGeneration).toBe(metadata.generation);
    };
    // A template that the Deployment controller has never seen has no ReplicaSet, and its ConfigMap may go at once.
    await eventually('the first ReplicaSet exists', replicaSetExists);
    const seen: string[] = [];
    for (const seconds of [11, 12, 13]) {
      const before = await currentConfigMap('pruned');
      seen.push(before);
      await world.patchSpec('pruned', { queue: { timeout: `${seconds}s` } });
      await eventually('the Deployment mounts another ConfigMap, and a ReplicaSet for it exists', async () => {
        const now = await currentConfigMap('pruned');
        expect(now).not.toBe(before);
        await replicaSetExists();
      });
      if (seconds < 13) expect(await configMaps('pruned')).toEqual(expect.arrayContaining(seen));
    }
    seen.push(await currentConfigMap('pruned'));
    // The Deployment keeps two old ReplicaSets; the first is gone, and with it what only it mounted.
    await eventually('the first ConfigMap is gone and the others are there', async () => {
      expect((await configMaps('pruned')).sort()).toEqual(seen.slice(1).sort());
    });
    const replicaSets = (await world.list('ReplicaSet')).filter(({ metadata }) => metadata.name.startsWith('pruned-'));
    expect(replicaSets).toHaveLength(3);
  });

  test('back to an earlier one finds its ConfigMap, or makes it again', async () => {
    await world.createRenderService('back', { replicas: 0 });
    await world.untilApplied('back');
    const first = await currentConfigMap('back');
    await world.patchSpec('back', { queue: { timeout: '11s' } });
    await eventually('another ConfigMap', async () => expect(await currentConfigMap('back')).not.toBe(first));
    await world.patchSpec('back', { queue: { timeout: '10s' } });
    await eventually('the first ConfigMap', async () => expect(await currentConfigMap('back')).toBe(first));
    expect(await configMaps('back')).toContain(first);
  });

  test('that turns the disruption budget off deletes it, and on brings it back', async () => {
    await world.createRenderService('budget');
    await world.untilApplied('budget');
    expect(await world.find('PodDisruptionBudget', 'budget')).toBeDefined();
    await world.patchSpec('budget', { disruptionBudget: { enabled: false } });
    await eventually('the budget is gone', async () => {
      expect(await world.find('PodDisruptionBudget', 'budget')).toBeUndefined();
    });
    await world.patchSpec('budget', { disruptionBudget: { enabled: true } });
    await eventually('the budget is back', () => world.get('PodDisruptionBudget', 'budget'));
  });

  test('that turns the NetworkPolicy off deletes it, and on brings it back with what it says', async () => {
    await world.createRenderService('policy');
    await world.untilApplied('policy');
    expect(await world.find('NetworkPolicy', 'policy')).toBeDefined();
    await world.patchSpec('policy', { networkPolicy: { enabled: false } });
    await eventually('the policy is gone', async () => {
      expect(await world.find('NetworkPolicy', 'policy')).toBeUndefined();
    });
    const peer = { namespaceSelector: { matchLabels: { team: 'observability' } } };
    await world.patchSpec('policy', { networkPolicy: { enabled: true, monitoring: [peer] } });
    await eventually('the policy is back', () => world.get('NetworkPolicy', 'policy'));
    const { ingress } = (await world.get('NetworkPolicy', 'policy')).spec;
    const watched = ingress.find(({ ports }: Json) => ports.some(({ port }: Json) => port === 8999));
    const operator = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'owned-objects' } } };
    expect(watched.from).toEqual([operator, peer]);
  });

  test('reaches annotations of the Service, and takes removed ones away', async () => {
    const annotations = { 'example.com/internal': 'true', 'example.com/other': 'a' };
    await world.createRenderService('annotated', { service: { annotations } });
    await world.untilApplied('annotated');
    expect((await world.get('Service', 'annotated')).metadata.annotations).toMatchObject(annotations);
    await world.patchSpec('annotated', { service: { annotations: { 'example.com/other': null } } });
    await eventually('one annotation is gone', async () => {
      const { metadata } = await world.get('Service', 'annotated');
      expect(metadata.annotations).toMatchObject({ 'example.com/internal': 'true' });
      expect(metadata.annotations).not.toHaveProperty(['example.com/other']);
    });
  });

  test('reaches all other fields of the Service, and takes removed ones away', async () => {
    const policies = {
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Local',
      trafficDistribution: 'PreferClose',
      loadBalancerClass: 'example.com/nlb',
      loadBalancerSourceRanges: ['10.0.0.0/8'],
    };
    const service = { type: 'LoadBalancer', appProtocol: 'http', labels: { team: 'blue' }, ...policies };
    await world.createRenderService('balanced', { service });
    await world.untilApplied('balanced');
    const made = await world.get('Service', 'balanced');
    expect(made.spec).toMatchObject({ type: 'LoadBalancer', ...policies, ports: [{ appProtocol: 'http' }] });
    expect(made.metadata.labels).toMatchObject({ team: 'blue', 'corelane.dev/renderservice': 'balanced' });

    const nothing = Object.fromEntries(Object.keys(policies).map((field) => [field, null]));
    const bare = { type: 'NodePort', appProtocol: null, labels: null, ...nothing };
    await world.patchSpec('balanced', { service: bare });
    await eventually('the Service has the defaults of Kubernetes', async () => {
      const { metadata, spec } = await world.get('Service', 'balanced');
      expect(spec).toMatchObject({ externalTrafficPolicy: 'Cluster', internalTrafficPolicy: 'Cluster' });
      for (const field of ['trafficDistribution', 'loadBalancerClass', 'loadBalancerSourceRanges'])
        expect(spec).not.toHaveProperty(field);
      expect(spec.ports[0]).not.toHaveProperty('appProtocol');
      expect(metadata.labels).not.toHaveProperty('team');
    });
  });

  test('reaches the families of its addresses, and what the cluster cannot give is told', async () => {
    const service = { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4'] };
    await world.createRenderService('families', { service });
    await world.untilApplied('families');
    expect((await world.get('Service', 'families')).spec).toMatchObject(service);
    await world.createRenderService('more-families', { service: { ipFamilyPolicy: 'RequireDualStack' } });
    await eventually('the API server refuses a Service with both', async () => {
      const stalled = await world.condition('more-families', 'Stalled');
      expect(stalled).toMatchObject({ reason: 'Rejected', message: expect.stringContaining('spec.ipFamilyPolicy') });
    });
  });

  test.each([
    ['ClusterIP', 'NodePort'],
    ['NodePort', 'ClusterIP'],
    ['LoadBalancer', 'ClusterIP'],
    ['ClusterIP', 'LoadBalancer'],
  ])('of the Service from %s to %s works', async (before, after) => {
    const name = `from-${before}-to-${after}`.toLowerCase();
    await world.createRenderService(name, { service: { type: before } });
    await world.untilApplied(name);
    await world.patchSpec(name, { service: { type: after } });
    await eventually('the Service has the other type', async () => {
      expect((await world.get('Service', name)).spec.type).toBe(after);
    });
    await world.untilApplied(name);
  });
});

describe('labels of a RenderService, where a policy asks for some', () => {
  const NAME = 'labelled';
  const OWN = { 'app.kubernetes.io/instance': NAME, 'app.kubernetes.io/managed-by': 'corelane' };
  const WRITTEN: KindName[] = ['Deployment', 'ConfigMap', 'Service', 'PodDisruptionBudget', 'NetworkPolicy'];

  async function owned(kinds: KindName[]): Promise<Json[]> {
    const lists = await Promise.all(kinds.map((kind) => world.list(kind)));
    return lists.flat().filter(({ metadata }) => metadata.labels?.['corelane.dev/renderservice'] === NAME);
  }

  const setLabels = (labels: Record<string, string | null>) =>
    world.admin.patch(world.path('RenderService', NAME), { metadata: { labels } });

  beforeAll(async () => {
    const root = '/apis/admissionregistration.k8s.io/v1';
    const name = `team-${world.namespace}`;
    await world.admin.post(`${root}/validatingadmissionpolicies`, {
      metadata: { name },
      spec: {
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ['', 'apps', 'policy', 'networking.k8s.io'],
              apiVersions: ['*'],
              operations: ['CREATE', 'UPDATE'],
              resources: [
                'configmaps',
                'services',
                'secrets',
                'deployments',
                'poddisruptionbudgets',
                'networkpolicies',
              ],
            },
          ],
        },
        matchConditions: [{ name: 'of-this-test', expression: `object.metadata.name.startsWith('${NAME}')` }],
        validations: [{ expression: "'team' in object.metadata.?labels.orValue({})", message: 'the label "team"' }],
      },
    });
    await world.admin.post(`${root}/validatingadmissionpolicybindings`, {
      metadata: { name },
      spec: {
        policyName: name,
        validationActions: ['Deny'],
        matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } } },
      },
    });
    const probe = { metadata: { name: `${NAME}-probe` } };
    await eventually('the policy is in force', async () => {
      await expect(world.admin.post(`${world.path('ConfigMap')}?dryRun=All`, probe)).rejects.toThrow(
        'the label "team"',
      );
    });
    const { metadata, ...resource } = renderService(world.namespace, NAME);
    // Argo CD and Helm write the others.
    const labels = { team: 'web', 'app.kubernetes.io/instance': 'app', 'app.kubernetes.io/managed-by': 'Helm' };
    await world.admin.post(world.path('RenderService'), { ...resource, metadata: { ...metadata, labels } });
    await world.untilApplied(NAME);
  });

  test('are on all of its objects from the beginning', async () => {
    const objects = await owned([...WRITTEN, 'Secret']);
    expect(objects).toHaveLength(8);
    for (const { metadata } of objects) expect(metadata.labels).toMatchObject({ team: 'web', ...OWN });
  });

  test('change with it, go with it, and replace no pod', async () => {
    const before = await world.deployment(NAME);
    await setLabels({ team: 'shop', cost: '42' });
    await eventually('all that is written has them', async () => {
      const labels = (await owned(WRITTEN)).map(({ metadata }) => [metadata.labels.team, metadata.labels.cost]);
      expect(labels).toEqual(Array(7).fill(['shop', '42']));
    });
    await setLabels({ cost: null });
    await eventually('one of them is gone', async () => {
      const labels = (await owned(WRITTEN)).map(({ metadata }) => [metadata.labels.team, metadata.labels.cost]);
      expect(labels).toEqual(Array(7).fill(['shop', undefined]));
    });
    const [after, ...others] = await world.deployments(NAME);
    expect([after?.metadata.uid, after?.spec, others]).toEqual([before.metadata.uid, before.spec, []]);
  });
});

describe('a deleted RenderService', () => {
  async function ownedBy(name: string): Promise<string[]> {
    const kinds: KindName[] = [
      'Deployment',
      'ReplicaSet',
      'Pod',
      'ConfigMap',
      'Service',
      'PodDisruptionBudget',
      'NetworkPolicy',
    ];
    const lists = await Promise.all(kinds.map((kind) => world.list(kind)));
    return lists
      .flat()
      .filter(({ metadata }) => metadata.labels?.['corelane.dev/renderservice'] === name)
      .map(({ metadata }) => metadata.name);
  }

  test('leaves nothing behind', async () => {
    await world.createRenderService('deleted');
    await world.untilApplied('deleted');
    expect(await ownedBy('deleted')).not.toEqual([]);
    await world.kubectl.run('delete', 'rsvc', 'deleted');
    // Only the garbage collector works here, at its own speed.
    await eventually('nothing is left', async () => expect(await ownedBy('deleted')).toEqual([]));
  });

  test('can be made again at once, and gets objects of its own', async () => {
    await world.createRenderService('again');
    await world.untilApplied('again');
    const before = await world.get('Service', 'again');
    await world.admin.delete(world.path('RenderService', 'again'));
    const { metadata } = await world.createRenderService('again');
    await eventually('all objects belong to the new one', async () => {
      const service = await world.get('Service', 'again');
      expect(service.metadata.uid).not.toBe(before.metadata.uid);
      expect(service.metadata.ownerReferences[0].uid).toBe(metadata.uid);
      const deployment = await world.deployment('again');
      expect(deployment.metadata.ownerReferences[0].uid).toBe(metadata.uid);
    });
    await world.untilApplied('again');
  });
});
