/**
 * What mutating admission makes of an object that was applied counts as applied, whole or as a cache keeps it, until
 * another field changes; and what hurts is told.
 */

import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import { parseRenderService } from '../../src/api/resource.ts';
import { admissionOf, podHurts } from '../../src/controller/admission.ts';
import { reducePod } from '../../src/controller/cached-parts.ts';
import { reduceOwned } from '../../src/controller/owned-parts.ts';
import { apply, deviateAlike, difference } from '../../src/kube/apply.ts';
import type { Cache } from '../../src/kube/cache.ts';
import { kinds } from '../../src/kube/kinds.ts';
import type { Rest } from '../../src/kube/rest.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { desiredObjects } from '../../src/plan/index.ts';

const NOTE = 'corelane.dev/admitted-hash';

function plan(spec: object = {}): KubeObject[] {
  const parsed = parseRenderService({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name: 'shop', namespace: 'web', uid: 'UID', generation: 1, resourceVersion: '1' },
    spec: { workersPerPod: 2, template: { spec: { containers: [{ name: 'worker', image: 'shop:1' }] } }, ...spec },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const access = { namespace: 'corelane-system', monitoring: [] };
  return desiredObjects(parsed.renderService, { image: 'sidecar:1' }, access) as KubeObject[];
}

const planned = (kind: string, name?: string) =>
  plan().find((one) => one.kind === kind && (name === undefined || one.metadata.name === name)) as KubeObject;
const deployment = planned('Deployment');

// biome-ignore lint/suspicious/noExplicitAny: a mutation looks into objects of every kind
type Mutation = (object: any) => void;

/** An API server with mutating admission in front of it: what is written last is there. */
class Server {
  readonly written: KubeObject[] = [];
  readonly #mutate: Mutation;

  constructor(mutate: Mutation) {
    this.#mutate = mutate;
  }

  /** Applies as the operator does, and returns what is there then. */
  async apply(desired: KubeObject, live?: KubeObject): Promise<KubeObject> {
    const rest = { request: async (_method: string, _path: string, { body }: { body: unknown }) => this.#write(body) };
    const cache = { kind: kinds.deployment, remember: () => {} };
    return await apply(rest as unknown as Rest, cache as unknown as Cache, desired, live);
  }

  #write(body: unknown): KubeObject {
    const object = JSON.parse(JSON.stringify(body)) as KubeObject;
    this.#mutate(object);
    const managedFields = [{ manager: 'corelane', operation: 'Apply', fieldsV1: {} }];
    Object.assign(object.metadata, { uid: '1', managedFields });
    this.written.push(object);
    return object;
  }
}

const mirror: Mutation = ({ spec }) => {
  for (const container of spec?.template.spec.containers ?? []) container.image = `mirror/${container.image}`;
};

test('without admission an object is written once, and has no note', async () => {
  const server = new Server(() => {});
  const live = await server.apply(deployment);
  expect([server.written.length, live.metadata.annotations?.[NOTE]]).toEqual([1, undefined]);
  expect(difference(live, deployment)).toBe('none');
  expect(admissionOf(deployment, live)).toEqual({});
});

test.each<[what: string, desired: KubeObject, mutate: Mutation]>([
  ['images from elsewhere', deployment, mirror],
  [
    'a container more',
    deployment,
    ({ spec }) => spec.template.spec.containers.push({ name: 'agent', image: 'agent:1' }),
  ],
  [
    'a label of ours',
    deployment,
    ({ metadata }) => Object.assign(metadata.labels, { 'app.kubernetes.io/instance': 'x' }),
  ],
  ['no mark of ours', deployment, ({ metadata }) => delete metadata.annotations['corelane.dev/applied-hash']],
  ['another port', planned('Service', 'shop'), ({ spec }) => Object.assign(spec.ports[0], { port: 8080 })],
  [
    'a line more in a long text',
    plan().find(({ immutable }) => immutable) as KubeObject,
    ({ data }) => {
      for (const name of Object.keys(data)) data[name] += '\n# reviewed';
    },
  ],
])('with %s an object is as applied, whole and in a cache', async (_what, desired, mutate) => {
  const server = new Server(mutate);
  const live = await server.apply(desired);
  // Once to see what becomes of it, and once to note that.
  expect(server.written).toHaveLength(2);
  expect([live, reduceOwned(live)].map((one) => difference(one, desired))).toEqual(['none', 'none']);
  expect(admissionOf(desired, reduceOwned(live)).changed).toContain(`${desired.kind} "${desired.metadata.name}": `);
  // One that has the note, and is written again for another reason, gets it anew.
  const again = await server.apply(desired, live);
  expect(again).toEqual(live);
  expect(deviateAlike(desired, reduceOwned(live), again)).toBe(true);
});

test('what somebody changes in such an object is an edit, and another plan is one', async () => {
  const live = await new Server(mirror).apply(deployment);
  const edited = structuredClone(live) as KubeObject & { spec: { replicas: number } };
  edited.spec.replicas = 9;
  expect(difference(reduceOwned(edited), deployment)).toBe('edited');
  expect(deviateAlike(deployment, edited, live)).toBe(false);
  const next = plan({ rollout: { rolling: { minReadySeconds: 3 } } }).find(({ kind }) => kind === 'Deployment');
  expect(difference(reduceOwned(live), next as KubeObject)).toBe('changed');
  // Without the note it is written again: so it can be had back when the policy is gone.
  const { [NOTE]: _gone, ...annotations } = live.metadata.annotations ?? {};
  const without = { ...live, metadata: { ...live.metadata, annotations } };
  expect(difference(reduceOwned(without), deployment)).toBe('edited');
});

/** So the bound on repairs holds for it, too (contention.test.ts). */
test('an object that admission makes another one each time is an edit, after two writes', async () => {
  let count = 0;
  const server = new Server(({ spec }) => {
    count += 1;
    spec.template.spec.containers[0].image = `mirror:${count}`;
  });
  const live = await server.apply(deployment);
  expect([server.written.length, difference(reduceOwned(live), deployment)]).toEqual([2, 'edited']);
});

test('a field that somebody has added to such an object is foreign all the same', async () => {
  const live = await new Server(mirror).apply(deployment);
  const entry = { manager: 'kubectl-edit', operation: 'Update', fieldsV1: { 'f:spec': { 'f:paused': {} } } };
  live.metadata.managedFields?.push(entry);
  expect(difference(reduceOwned(live), deployment)).toBe('foreign-fields');
});

describe('is told', () => {
  const proxy = (object: { spec: { template: { spec: { initContainers: { name: string }[] } } } }, name: string) =>
    // biome-ignore lint/suspicious/noExplicitAny: as above
    object.spec.template.spec.initContainers.find((one) => one.name === name) as any;

  test.each<[what: string, mutate: Mutation, changed: string | undefined, hurts: string | undefined]>([
    [
      'images, which do no harm',
      mirror,
      'spec.template.spec.containers[{"name":"worker-0"}].image is mirror/shop:1 instead of shop:1, ' +
        'spec.template.spec.containers[{"name":"worker-1"}].image is mirror/shop:1 instead of shop:1',
      undefined,
    ],
    [
      'a toleration more, which is no change of ours',
      ({ spec }) => Object.assign(spec.template.spec, { tolerations: [{ key: 'spot', operator: 'Exists' }] }),
      undefined,
      undefined,
    ],
    [
      'a CPU limit of a proxy, which is none either',
      (object) => Object.assign(proxy(object, 'nginx').resources.limits, { cpu: '50m' }),
      undefined,
      'the cpu limit of nginx is 50m, which throttles it and delays every request',
    ],
    [
      'a CPU limit that is a whole CPU',
      (object) => Object.assign(proxy(object, 'haproxy').resources.limits, { cpu: '1' }),
      undefined,
      undefined,
    ],
    [
      'limits that are the requests, as GKE Autopilot makes them',
      (object) => {
        const { resources } = proxy(object, 'haproxy');
        resources.limits = { ...resources.requests };
      },
      'spec.template.spec.initContainers[{"name":"haproxy"}].resources.limits.memory is 48Mi instead of 256Mi',
      'the cpu limit of haproxy is 50m, which throttles it and delays every request, ' +
        'the memory limit of haproxy is 48Mi instead of 256Mi, beyond which it is killed under load',
    ],
    [
      'less disk of nginx',
      (object) => Object.assign(proxy(object, 'nginx').resources.limits, { 'ephemeral-storage': '1Gi' }),
      'spec.template.spec.initContainers[{"name":"nginx"}].resources.limits.ephemeral-storage is 1Gi instead of 16Gi',
      'the ephemeral-storage limit of nginx is 1Gi instead of 16Gi, beyond which the pod is evicted under load',
    ],
    [
      'more memory',
      (object) => Object.assign(proxy(object, 'nginx').resources.limits, { memory: '1Gi' }),
      'spec.template.spec.initContainers[{"name":"nginx"}].resources.limits.memory is 1Gi instead of 512Mi',
      undefined,
    ],
    [
      'an environment variable, whose value may be a secret',
      ({ spec }) => Object.assign(spec.template.spec.containers[0].env[0], { value: 'geheim' }),
      'spec.template.spec.containers[{"name":"worker-0"}].env[{"name":"HOST"}].value',
      undefined,
    ],
  ])('%s', async (_what, mutate, changed, hurts) => {
    const live = await new Server(mutate).apply(deployment);
    const about = (text: string | undefined) => text && `Deployment "${deployment.metadata.name}": ${text}`;
    expect(admissionOf(deployment, reduceOwned(live))).toEqual({
      ...(changed && { changed: about(changed) }),
      ...(hurts && { hurts: about(hurts) }),
    });
  });

  test('a grace period that is too short for the drain', async () => {
    const live = await new Server(({ spec }) => {
      spec.template.spec.terminationGracePeriodSeconds = 25;
    }).apply(deployment);
    expect(admissionOf(deployment, live).hurts).toMatch(
      /: terminationGracePeriodSeconds is 25 instead of \d+, which ends a drain too early$/,
    );
  });
});

describe('limits that only pods have', () => {
  const { template } = deployment.spec as { template: V1PodTemplateSpec };

  /** A pod as the cache keeps it, with what admission has made of it. */
  function podOf(mutate: Mutation, labels: object = {}): KubeObject {
    const pod = structuredClone({ apiVersion: 'v1', kind: 'Pod', ...template }) as unknown as KubeObject;
    Object.assign(pod.metadata, { name: 'a', labels: { ...template.metadata?.labels, ...labels } });
    mutate(pod);
    return reducePod(pod);
  }

  /** As LimitRanger does with containers that have no such limit. */
  const byDefault =
    (limits: Record<string, string>): Mutation =>
    ({ spec }) => {
      for (const container of [...spec.initContainers, ...spec.containers]) {
        container.resources ??= {};
        container.resources.limits = { ...limits, ...container.resources.limits };
      }
    };

  test.each<[what: string, mutate: Mutation, expected: string | undefined]>([
    ['none', () => {}, undefined],
    [
      'a CPU limit by default',
      byDefault({ cpu: '500m' }),
      'pods: the cpu limit of haproxy is 500m, which throttles it and delays every request, ' +
        'the cpu limit of nginx is 500m, which throttles it and delays every request, ' +
        'the cpu limit of the workers is 500m, which stops each render for part of every 100 ms. ' +
        'If a LimitRange sets it by default, set spec.sidecar.haproxy.cpuLimit to 1, ' +
        'spec.sidecar.nginx.cpuLimit to 1, resources.limits.cpu of the worker in spec.template to 1',
    ],
    ['a whole CPU by default', byDefault({ cpu: '1' }), undefined],
    [
      'too little memory by default, which proxies have their own of',
      byDefault({ memory: '128Mi' }),
      'pods: the memory limit of the workers is 128Mi, beyond which it is killed under load. ' +
        'If a LimitRange sets it by default, set resources.limits.memory of the worker in spec.template to 256Mi',
    ],
    [
      'one worker of several',
      ({ spec }) => Object.assign(spec.containers[1], { resources: { limits: { cpu: '200m' } } }),
      expect.stringContaining('the cpu limit of the workers is 200m'),
    ],
    [
      'a container of somebody else',
      ({ spec }) => spec.containers.push({ name: 'agent', resources: { limits: { cpu: '10m' } } }),
      undefined,
    ],
  ])('%s', (_what, mutate, expected) => {
    expect(podHurts(template, [podOf(mutate), podOf(mutate)])).toEqual(expected);
  });

  test('of pods that differ the least counts', () => {
    const pods = ['700m', '300m', '500m'].map((cpu) => podOf(byDefault({ cpu })));
    expect(podHurts(template, pods)).toBe(podHurts(template, pods.slice(1, 2)));
  });

  test('pods of another revision are not looked at', () => {
    const pod = podOf(byDefault({ cpu: '50m' }), { 'corelane.dev/revision': 'another' });
    expect(podHurts(template, [pod])).toBeUndefined();
  });

  test('a sentence stays until there is a pod of the next revision', () => {
    const old = podOf(byDefault({ cpu: '50m' }), { 'corelane.dev/revision': 'another' });
    expect(podHurts(template, [old], 'as before')).toBe('as before');
    expect(podHurts(template, [old, podOf(() => {})], 'as before')).toBeUndefined();
  });

  test('a limit below the one that was set is told without a field to set', () => {
    const asked = structuredClone(template);
    byDefault({ cpu: '2' })(asked);
    const hurts = podHurts(asked, [podOf(byDefault({ cpu: '1500m' }))]);
    expect(hurts).toMatch(/^pods: the cpu limit of haproxy is 1500m instead of 2, [^.]+$/);
  });

  test('a limit that the user has set is not told', () => {
    const asked = structuredClone(template);
    byDefault({ cpu: '500m' })(asked);
    expect(podHurts(asked, [podOf(byDefault({ cpu: '500m' }))])).toBeUndefined();
  });
});
