/** What keeps pods from being made, and evictions waiting; the worlds of it are in api/why-no-pods.load.test.ts. */

import { reducePod } from '../../src/controller/cached-parts.ts';
import { reduceOwned } from '../../src/controller/owned-parts.ts';
import { Packed } from '../../src/kube/packed.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { evictionProblem, isWithoutReplicaSet, objectRefusal, podProblem, refusalOf } from '../../src/pods/problems.ts';
import { proxyEndsAgain } from '../../src/pods/status.ts';

const budget = (status: object) => ({ status }) as unknown as KubeObject;

test('a budget that allows no eviction is told, with its reason', () => {
  const blocked = { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 2, expectedPods: 3 };
  expect(evictionProblem(budget(blocked))).toBe(
    'evictions (kubectl drain, a node upgrade) wait: 1 of 3 pods are healthy, and 2 must stay',
  );
  expect(evictionProblem(budget({ ...blocked, currentHealthy: 3, desiredHealthy: 3 }))).toBe(
    'evictions (kubectl drain, a node upgrade) wait: disruptionBudget.maxUnavailable allows none',
  );
  expect(evictionProblem(budget({ ...blocked, disruptionsAllowed: 1 }))).toBeUndefined();
  // Of no pods, not yet looked at, switched off.
  expect(evictionProblem(budget({ ...blocked, expectedPods: 0 }))).toBeUndefined();
  expect(evictionProblem(budget({}))).toBeUndefined();
  expect(evictionProblem(undefined)).toBeUndefined();
});

describe('a container that has ended', () => {
  const pod = (containers: object[], inits: object[] = []) =>
    ({
      metadata: { name: 'a' },
      status: { containerStatuses: containers, initContainerStatuses: inits },
    }) as unknown as KubeObject;
  const end = (exitCode: number, reason: string) => ({ terminated: { exitCode, reason } });
  const problem = (...parameters: Parameters<typeof pod>) => podProblem([pod(...parameters)], new Date());

  test('twice is a crash loop, also while kubelet does not say so, in the same words', () => {
    const ended = { name: 'worker-0', state: end(3, 'Error'), lastState: end(3, 'Error') };
    const backsOff = { ...ended, state: { waiting: { reason: 'CrashLoopBackOff' } } };
    expect(problem([ended])).toBe(
      'container worker-0 of pod a: CrashLoopBackOff (Error, exit code 3): kubectl logs a -c worker-0 --previous',
    );
    expect(problem([backsOff])).toBe(problem([ended]));
    expect(problem([{ ...ended, state: end(0, 'Completed') }])).toMatch(/CrashLoopBackOff \(Completed, exit code 0\)/);
  });

  test("says why itself if it is a proxy; a user's words stay in the log", () => {
    const message = 'this sidecar image speaks version 1 of the protocol, ...\n';
    const terminated = { exitCode: 1, reason: 'Error', message };
    const twice = (name: string) => ({ name, state: { terminated }, lastState: { terminated } });
    expect(problem([], [twice('haproxy')])).toBe(
      'container haproxy of pod a: CrashLoopBackOff (Error, exit code 1): "this sidecar image speaks version 1 of the protocol, ..."',
    );
    const told = (message: string, reason = 'Error') => {
      const terminated = { exitCode: 1, reason, message };
      return problem([], [{ name: 'nginx', state: { terminated }, lastState: { terminated } }]);
    };
    expect(told('\u001b[2Jone\u0000\nReady: all is well')).toMatch(/"\[2Jone"$/);
    expect(told('killed', 'OOMKilled')).toMatch(/give it a higher memory limit/);
    expect(told('no such file', 'StartError')).toMatch(/is the command in the image/);
    expect(problem([twice('worker-0')])).not.toContain('protocol');
  });

  test('once may not do so again', () => {
    expect(problem([{ name: 'worker-0', state: end(3, 'Error') }])).toBeUndefined();
  });

  test('is no problem where it is an init container that has come through', () => {
    const init = { name: 'migrate', state: end(0, 'Completed'), lastState: end(1, 'Error') };
    expect(problem([], [init])).toBeUndefined();
    expect(problem([], [{ ...init, state: end(1, 'Error') }])).toMatch(/^container migrate of pod a: CrashLoopBackOff/);
  });
});

test('a pod that a node has for less than a minute may just be starting', () => {
  const since = '2026-01-01T00:00:00Z';
  const pod = {
    metadata: { name: 'a' },
    status: {
      conditions: [
        { type: 'PodScheduled', status: 'True', lastTransitionTime: since },
        { type: 'PodReadyToStartContainers', status: 'False' },
      ],
    },
  } as unknown as KubeObject;
  const after = (seconds: number) => podProblem([pod], new Date(Date.parse(since) + seconds * 1_000));
  expect(after(59)).toBeUndefined();
  expect(after(60)).toMatch(/^pod a has a node, which does not get it ready: a volume/);
});

describe('a proxy that ends again and again', () => {
  const nowMs = Date.parse('2026-01-05T12:00:00Z');
  const proxy = (restartCount: number, state: object, name = 'haproxy') => ({ name, ready: true, restartCount, state });
  const running = (agoMs: number) => ({ running: { startedAt: new Date(nowMs - agoMs).toISOString() } });
  const waiting = { waiting: { reason: 'CrashLoopBackOff' } };
  const endsAgain = (container: object, metadata: object = {}) =>
    proxyEndsAgain(
      [
        reducePod({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'a', ...metadata },
          status: { initContainerStatuses: [container], containerStatuses: [] },
        }),
      ],
      nowMs,
    );

  test('is one, whether it runs just now or not', () => {
    expect(endsAgain(proxy(2, waiting))).toBe(true);
    expect(endsAgain(proxy(2, running(5_000), 'nginx'))).toBe(true);
  });

  test("is none when it has ended once, or long ago, is the user's own, or goes with its pod", () => {
    expect(endsAgain(proxy(1, running(5_000)))).toBe(false);
    expect(endsAgain(proxy(9, running(600_000)))).toBe(false);
    expect(endsAgain(proxy(9, waiting, 'migrate'))).toBe(false);
    expect(endsAgain(proxy(9, waiting), { deletionTimestamp: '2026-01-05T11:59:00Z' })).toBe(false);
  });
});

describe('a rule of the cluster', () => {
  const denied =
    "is forbidden: ValidatingAdmissionPolicy 'team' with binding 'team' denied request: the label \"team\"";
  const deployment = (...conditions: object[]) => ({ status: { conditions } }) as unknown as KubeObject;
  const failed = { type: 'Progressing', status: 'False', reason: 'ReplicaSetCreateError' };

  test('that refuses a ReplicaSet is told, also where the caches keep a part of the Deployment', () => {
    const message = `Failed to create new replica set "shop-1": replicasets.apps "shop-1" ${denied}`;
    const told = `pods cannot be made: ${message}. Way out: that rule is not Corelane's: change the template as it asks, or speak with whoever made it`;
    const live = deployment({ type: 'Available', status: 'False', message: 'no' }, { ...failed, message });
    expect([refusalOf(live), isWithoutReplicaSet(live)]).toEqual([told, true]);
    const owner = { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', name: 'shop', uid: 'a' };
    const matchLabels = { 'corelane.dev/renderservice': 'shop', 'corelane.dev/revision': '0123456789' };
    const kept = reduceOwned({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
      metadata: { name: 'shop-0123456789', ownerReferences: [{ ...owner, controller: true }] },
      spec: { replicas: 1, selector: { matchLabels }, template: {} },
      status: live.status,
    } as unknown as KubeObject);
    expect(kept.status).toMatchObject({
      conditions: [
        { type: 'Available', status: 'False' },
        { ...failed, message },
      ],
    });
    expect([refusalOf(kept), isWithoutReplicaSet(kept)]).toEqual([told, true]);
  });

  test.each([
    ['a ReplicaSet that is there', { type: 'Progressing', status: 'True', reason: 'NewReplicaSetCreated' }],
    ['no progress', { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }],
    ['a refusal that is over', { type: 'ReplicaFailure', status: 'False', reason: 'FailedCreate' }],
  ])('refuses nothing: %s', (_what, condition) => {
    const live = deployment({ ...condition, message: 'words' });
    expect([refusalOf(live), isWithoutReplicaSet(live)]).toEqual([undefined, false]);
  });

  test.each([`services "shop" ${denied}`, 'admission webhook "team.example.com" denied the request: the label "team"'])(
    'that refuses another object is told with where its labels come from: %s',
    (refusal) => {
      expect(objectRefusal(refusal)).toBe(
        `${refusal}. Way out: change the RenderService as that rule asks (all of its objects have its metadata.labels), or speak with whoever made it`,
      );
    },
  );

  test('is not made responsible for what the API server itself refuses', () => {
    const invalid = 'Deployment.apps "shop" is invalid: spec.template.labels: Invalid value';
    expect(objectRefusal(invalid)).toBe(invalid);
  });
});

describe('pods that a namespace does not take for their resources', () => {
  const template = {
    spec: {
      initContainers: [
        { name: 'corelane-runtime', resources: { requests: { cpu: '10m' }, limits: { memory: '64Mi' } } },
        { name: 'haproxy', resources: { requests: { cpu: '50m', memory: '48Mi' }, limits: { memory: '256Mi' } } },
        { name: 'nginx', resources: { requests: { cpu: '50m', memory: '32Mi' }, limits: { memory: '512Mi' } } },
      ],
      containers: [
        { name: 'worker-0', resources: { requests: { cpu: '1' } } },
        { name: 'worker-1', resources: { requests: { cpu: '1' } } },
        { name: 'mesh', resources: { requests: { cpu: '20m' } } },
      ],
    },
  };
  const wayOut = (message: string, of: unknown = new Packed(template)) => {
    const condition = { type: 'ReplicaFailure', status: 'True', message };
    const deployment = { spec: { template: of }, status: { conditions: [condition] } } as unknown as KubeObject;
    const [said, way] = (refusalOf(deployment) ?? '').split('. Way out: ');
    expect(said).toBe(`pods cannot be made: ${message.slice(0, 600).replace(/[.\s]+$/, '')}`);
    return way;
  };
  const forbidden = (why: string) => `pods "shop-1" is forbidden: ${why}`;

  test.each<[why: string, way: string]>([
    [
      '[minimum cpu usage per Container is 100m, but request is 10m, minimum cpu usage per Container is 100m, but request is 50m]',
      'a LimitRange of the namespace says so: set resources.requests.cpu of the worker, spec.sidecar.haproxy.cpu, spec.sidecar.nginx.cpu and resources.requests.cpu of container mesh to at least 100m',
    ],
    [
      'maximum memory usage per Container is 300Mi, but limit is 512Mi',
      'a LimitRange of the namespace says so: set spec.sidecar.nginx.memoryLimit to at most 300Mi',
    ],
    [
      '[memory max limit to request ratio per Container is 8, but provided ratio is 16.000000]',
      'a LimitRange of the namespace says so: set spec.sidecar.nginx.memory to at least 64Mi',
    ],
    [
      'minimum memory usage per Container is 10Mi.  No request is specified',
      'a LimitRange of the namespace says so: set resources of the template or spec.sidecar within it',
    ],
    [
      'maximum cpu usage per Pod is 1, but limit is 4',
      'a LimitRange of the namespace bounds whole pods: change spec.workersPerPod, resources of the worker, or spec.sidecar',
    ],
    [
      'failed quota: team: must specify limits.cpu for: corelane-runtime,haproxy,mesh,nginx,worker-0,worker-1; limits.memory for: mesh,worker-0,worker-1',
      'that ResourceQuota wants it of every container: set resources.limits.cpu of the worker, resources.limits.cpu of container mesh, resources.limits.memory of container mesh and resources.limits.memory of the worker (the containers that Corelane adds follow the worker), or give the namespace a LimitRange with defaults',
    ],
    [
      'failed quota: team: must specify limits.cpu for: haproxy,nginx',
      'that ResourceQuota wants it of every container: set spec.sidecar.haproxy.cpuLimit and spec.sidecar.nginx.cpuLimit (the containers that Corelane adds follow the worker), or give the namespace a LimitRange with defaults',
    ],
    [
      'exceeded quota: team, requested: pods=1, used: pods=9, limited: pods=9',
      'raise that ResourceQuota, or lower spec.replicas',
    ],
    [
      'exceeded quota: team, requested: limits.cpu=4,pods=1, used: limits.cpu=8,pods=9, limited: limits.cpu=8,pods=9',
      'raise that ResourceQuota, or lower one of spec.replicas, spec.workersPerPod, resources.limits.cpu of the worker, spec.sidecar.nginx.cpuLimit and spec.sidecar.haproxy.cpuLimit',
    ],
    [
      'exceeded quota: team, requested: memory=1Gi, used: memory=8Gi, limited: memory=8Gi',
      'raise that ResourceQuota, or lower one of spec.replicas, spec.workersPerPod, resources.requests.memory of the worker, spec.sidecar.nginx.memory and spec.sidecar.haproxy.memory',
    ],
  ])('%s', (why, way) => expect(wayOut(forbidden(why))).toBe(way));

  test('a limit that a LimitRange has filled in, and that is less than the request', () => {
    const invalid = (list: string) =>
      `Pod "shop-1" is invalid: ${list}.resources.requests: Invalid value: "1": must be less than or equal to cpu limit of 500m`;
    expect(wayOut(invalid('spec.containers[1]'))).toBe(
      'a LimitRange of the namespace gives it a limit of 500m: set resources.limits.cpu of the worker, or resources.requests.cpu of the worker to at most 500m',
    );
    expect(wayOut(invalid('spec.initContainers[2]'))).toMatch(/: set spec\.sidecar\.nginx\.cpuLimit, or spec\.side/);
    expect(wayOut(invalid('spec.containers[99]'))).toMatch(/of the worker/);
  });

  test('whatever a stranger says, the answer comes at once and is a sentence', () => {
    const long = 'a'.repeat(100_000);
    for (const text of [
      `minimum ${long} usage per Container is ${long}`,
      `${long} max limit to request ratio per Container is ${long},`,
      `failed quota: must specify ${`${long}; `.repeat(3)}`,
      `exceeded quota: , requested: ${long}, used: `,
      `spec.containers[0].resources.requests: Invalid value: "${long}`,
    ])
      expect(wayOut(forbidden(text), undefined) ?? '').toMatch(/^[^\n]{0,400}$/);
  });
});
