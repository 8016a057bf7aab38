/** Two that write one object: the operator slows down, says who it is, and forgets it when there is peace. */
import { LIVE_FILE } from '../../src/api/names.ts';
import type { RenderServiceResource } from '../../src/api/resource.ts';
import { Contention } from '../../src/controller/contention.ts';
import type { Difference } from '../../src/kube/apply.ts';
import type { KubeObject } from '../../src/kube/types.ts';

const owner = { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', name: 'shop', uid: 'UID' };

/** An object as planned: it changes with its hash. */
function planned(kind: string, name: string, hash = '1', content: object = { spec: {} }): KubeObject {
  const annotations = { 'corelane.dev/applied-hash': hash };
  return { apiVersion: 'v1', kind, metadata: { name, annotations, ownerReferences: [owner] }, ...content };
}

const desired = planned('Service', 'shop');
const live = {
  ...desired,
  metadata: {
    ...desired.metadata,
    managedFields: [
      { manager: 'corelane', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:type': {} } } },
      { manager: 'kube-vip', operation: 'Update', fieldsV1: { 'f:spec': { 'f:loadBalancerIP': {} } } },
    ],
  },
} as KubeObject;
const WRITE = 'Service "shop": "kube-vip" sets spec.loadBalancerIP; set spec.service of RenderService "shop" instead';

test('thirty repairs at once, then one a minute; the message has the program and the field; half an hour of peace ends it', () => {
  let now = 0;
  const contention = new Contention(() => now);
  const repairs = (count: number) => Array.from({ length: count }, () => contention.mayRepair('a/shop', desired, live));
  expect(repairs(30)).toEqual(Array(30).fill(true));
  expect(contention.of('a/shop')).toEqual([]);
  expect(repairs(5)).toEqual(Array(5).fill(false));
  expect(contention.of('a/shop')).toEqual([WRITE]);
  expect(contention.of('b/shop')).toEqual([]);
  now += 60_000;
  expect(repairs(2)).toEqual([true, false]);
  now += 1_799_000;
  expect(contention.of('a/shop')).toEqual([WRITE]);
  now += 1_000;
  expect(contention.of('a/shop')).toEqual([]);
});

test('labels of pods are bounded alike, whatever their value', () => {
  let now = 0;
  const contention = new Contention(() => now);
  const pods = ['a', 'b'].map((uid) => ({ kind: 'Pod', metadata: { name: `shop-${uid}`, uid } }) as KubeObject);
  const [pod, other] = pods as [KubeObject, KubeObject];
  const labels = (count: number) => Array.from({ length: count }, () => contention.mayLabel('a/shop', pod));
  expect(labels(30)).toEqual(Array(30).fill(true));
  expect(labels(3)).toEqual(Array(3).fill(false));
  expect(contention.of('a/shop')).toEqual(['Pod "shop-a": somebody changes its label corelane.dev/serving']);
  expect(contention.mayLabel('a/shop', other)).toBe(true);
  now += 60_000;
  expect(labels(2)).toEqual([true, false]);
  // A name that comes again keeps what it has left.
  contention.keepOnly('a/shop', [other]);
  expect(labels(1)).toEqual([false]);
});

test('what the plan asks for anew is no repair; that somebody has taken our mark away is one', () => {
  const contention = new Contention();
  const isRepair = (key: string, hash: string, todo: Difference) =>
    contention.isRepair(key, planned('Service', 'shop', hash), live, todo);
  expect(isRepair('a/shop', '1', 'changed')).toBe(false);
  contention.applied('a/shop', desired, live);
  expect(isRepair('a/shop', '1', 'changed')).toBe(true);
  expect(isRepair('a/shop', '2', 'changed')).toBe(false);
  expect(isRepair('b/shop', '1', 'changed')).toBe(false);
  contention.forget('a/shop');
  expect(isRepair('a/shop', '1', 'changed')).toBe(false);
});

test('to make again what somebody has deleted is a repair; what is new, or of another owner, is none', () => {
  const contention = new Contention();
  const isRepair = (object: KubeObject) => contention.isRepair('a/shop', object, undefined, 'missing');
  expect(isRepair(desired)).toBe(false);
  contention.applied('a/shop', desired, live);
  expect(isRepair(desired)).toBe(true);
  expect(isRepair(planned('Service', 'shop', '2'))).toBe(true);
  const { metadata } = desired;
  expect(isRepair({ ...desired, metadata: { ...metadata, ownerReferences: [{ ...owner, uid: 'OTHER' }] } })).toBe(
    false,
  );
  // One that was not planned in between has been deleted by us.
  contention.keepOnly('a/shop', []);
  expect(isRepair(desired)).toBe(false);
});

/** Settings and configurations of a RenderService are all of one kind: each has a record of its own. */
test.each(['shop-live', 'shop-0123456789'])('whoever takes our mark from %s again and again is slowed down', (name) => {
  const contention = new Contention(() => 0);
  const all = ['shop-live', 'shop-0123456789', 'shop-9876543210'].map((one) => planned('ConfigMap', one, one));
  const unmarked = planned('ConfigMap', name, '');
  let repairs = 0;
  for (let round = 0; round < 100; round += 1) {
    for (const object of all) {
      const todo = object.metadata.name === name ? 'changed' : 'none';
      if (todo === 'changed' && contention.isRepair('a/shop', object, unmarked, todo)) {
        if (contention.mayRepair('a/shop', object, unmarked)) repairs += 1;
      } else contention.applied('a/shop', object, object);
    }
    contention.keepOnly('a/shop', all);
  }
  expect(repairs).toBe(30);
  expect(contention.of('a/shop')).toEqual([
    `ConfigMap "${name}": "somebody" changes metadata.annotations.corelane.dev/applied-hash; RenderService "shop" decides it`,
  ]);
});

test('an object that somebody makes again and again, and that nothing asks for, is deleted thirty times, then once a minute', () => {
  let now = 0;
  const contention = new Contention(() => now);
  const removals = (count: number) => Array.from({ length: count }, () => contention.mayRemove('a/shop', desired));
  expect(removals(31)).toEqual([...Array(30).fill(true), false]);
  expect(contention.of('a/shop')).toEqual([
    'Service "shop": somebody makes it, and the RenderService does not ask for it',
  ]);
  now += 60_000;
  expect(removals(2)).toEqual([true, false]);
});

test('an object that comes and goes keeps the repairs that it has left, and no more than that', () => {
  let now = 0;
  const contention = new Contention(() => now);
  contention.applied('a/shop', desired, live);
  const repairs = (count: number) =>
    Array.from({ length: count }, () => {
      contention.keepOnly('a/shop', []);
      return contention.mayRepair('a/shop', desired, live);
    });
  expect(repairs(31)).toEqual([...Array(30).fill(true), false]);
  now += 1_800_000;
  contention.keepOnly('a/shop', []);
  expect(repairs(31)).toEqual([...Array(30).fill(true), false]);
});

test('live settings that somebody writes change the plan, which is read from them: that is a repair, too', () => {
  const contention = new Contention();
  const configMap = (name: string, file: string, hash: string, resourceVersion?: string): KubeObject => {
    const { metadata, ...rest } = planned('ConfigMap', name, hash, { data: { [file]: '' } });
    return { ...rest, metadata: { ...metadata, resourceVersion } } as KubeObject;
  };
  const settings = (hash: string, version?: string) => configMap('shop-live', LIVE_FILE, hash, version);
  const config = (hash: string, version?: string) => configMap(`shop-${hash}`, 'haproxy.cfg', hash, version);
  contention.applied('a/shop', settings('1'), settings('1', '10'));
  // It is another object than the configuration.
  contention.applied('a/shop', config('2'), config('2', '20'));
  expect(contention.isRepair('a/shop', settings('3'), settings('1', '10'), 'changed')).toBe(false);
  expect(contention.isRepair('a/shop', settings('3'), settings('1', '11'), 'changed')).toBe(true);
  expect(contention.isRepair('a/shop', settings('1'), settings('1', '11'), 'changed')).toBe(true);
  expect(contention.isRepair('a/shop', config('4'), config('2', '21'), 'changed')).toBe(false);
  // Another version alone tells of nobody.
  contention.takenBack('a/shop', settings('3'), settings('1', '11'));
  expect(contention.takenBackOf('a/shop')).toEqual([]);
});

test('what another process has told of that is told on, for ten minutes, and what this one has told is not', () => {
  let now = 5_000_000;
  const contention = new Contention(() => now);
  const told = (reason: string) =>
    ({
      type: 'ObjectsInSync',
      status: 'False',
      reason,
      message: '',
      observedGeneration: 1,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }) as const;
  expect(contention.toldBefore('a/shop', [told('TakenBack')])).toEqual(told('TakenBack'));
  now += 599_999;
  expect(contention.toldBefore('a/shop', [told('TakenBack')])).toEqual(told('TakenBack'));
  now += 1;
  expect(contention.toldBefore('a/shop', [told('TakenBack')])).toBeUndefined();
  // A fight, too: this process has made too few repairs yet to see one.
  expect(contention.toldBefore('a/blog', [told('Contended')])).toEqual(told('Contended'));
  expect(contention.toldBefore('a/news', [told('MutationHurts')])).toBeUndefined();
  expect(contention.toldBefore('a/docs', undefined)).toBeUndefined();
  expect(contention.toldBefore('a/docs', [told('TakenBack')])).toBeUndefined();
  contention.takenBack('a/wiki', desired, live);
  expect(contention.toldBefore('a/wiki', [told('TakenBack')])).toBeUndefined();
});

test('what somebody has done by hand is told for ten minutes, be it planned any more or not', () => {
  let now = 0;
  const contention = new Contention(() => now);
  contention.takenBack('a/shop', desired, live);
  contention.takenBack('a/shop', planned('Service', 'shop-peers'), undefined);
  const writes = [WRITE, 'Service "shop-peers": somebody has deleted it; RenderService "shop" decides it'];
  expect(contention.takenBackOf('a/shop')).toEqual(writes);
  expect(contention.takenBackOf('b/shop')).toEqual([]);
  contention.keepOnly('a/shop', []);
  now += 599_999;
  expect(contention.takenBackOf('a/shop')).toEqual(writes);
  now += 1;
  expect(contention.takenBackOf('a/shop')).toEqual([]);
});

test('nothing is known of a service until all of its objects have been looked at', () => {
  const contention = new Contention();
  const steps = [
    () => contention.applied('a/shop', desired, live),
    () => contention.keepOnly('a/shop', [desired]),
    () => contention.forget('a/shop'),
  ];
  const known = steps.map((step) => {
    step();
    return [contention.isKnown('a/shop'), contention.isKnown('b/shop')];
  });
  expect(known).toEqual([
    [false, false],
    [true, false],
    [false, false],
  ]);
});

test('what admission has made of an object is looked for in each version of it, and for each plan', () => {
  const contention = new Contention();
  const hurts = (hash: string, resourceVersion: string, seconds: number) => {
    const pods = (terminationGracePeriodSeconds: number) => ({
      spec: { template: { spec: { terminationGracePeriodSeconds } } },
    });
    const asked = planned('Deployment', 'shop-1', hash, pods(60));
    contention.applied('a/shop', asked, {
      ...asked,
      metadata: { ...asked.metadata, resourceVersion },
      ...pods(seconds),
    });
    return contention.admissionsOf('a/shop').hurts;
  };
  const told = (seconds: number) => [
    `Deployment "shop-1": terminationGracePeriodSeconds is ${seconds} instead of 60, which ends a drain too early`,
  ];
  expect(hurts('1', '10', 20)).toEqual(told(20));
  // The same version is not looked at again.
  expect(hurts('1', '10', 30)).toEqual(told(20));
  expect(hurts('1', '11', 30)).toEqual(told(30));
  expect(hurts('2', '11', 60)).toEqual([]);
});

describe('a Deployment from which the plan is made', () => {
  const deployment = (name: string, completed: string, hash = completed, more: object = {}): KubeObject => {
    const { metadata, ...rest } = planned('Deployment', name, hash, { spec: { replicas: 2 } });
    const annotations = { ...metadata.annotations, 'corelane.dev/completed': completed, ...more };
    return { ...rest, metadata: { ...metadata, annotations } } as KubeObject;
  };
  const asked = (generation: number, annotations: Record<string, string> = {}) => ({
    metadata: { name: 'shop', namespace: 'a', uid: 'UID', resourceVersion: '1', generation, annotations },
  });
  const current = deployment('shop-1', 'noon');
  const past = deployment('shop-0', 'dawn');
  /** A contention that has seen both, the current one applied. */
  const settled = () => {
    const contention = new Contention(() => 0);
    contention.begin('a/shop', asked(1), [current, past]);
    contention.applied('a/shop', current, current);
    contention.keepOnly('a/shop', [current]);
    return contention;
  };
  const replan = deployment('shop-1', 'noon', 'another');

  test('another plan is no repair while nobody else writes', () => {
    const contention = settled();
    contention.begin('a/shop', asked(1), [current, past]);
    expect(contention.isRepair('a/shop', replan, current, 'changed')).toBe(false);
  });

  test.each<[what: string, found: KubeObject[]]>([
    ['an annotation of it', [deployment('shop-1', 'later', 'noon'), past]],
    ['an annotation of another revision', [current, deployment('shop-0', 'later', 'dawn')]],
    ['how many pods another one asks for', [current, { ...past, spec: { replicas: 7 } } as KubeObject]],
  ])('another plan is a repair where somebody has written %s', (_what, found) => {
    const contention = settled();
    contention.begin('a/shop', asked(1), found);
    expect(contention.isRepair('a/shop', replan, found[0], 'changed')).toBe(true);
  });

  test.each<[what: string, generation: number, annotations: Record<string, string>]>([
    ['the spec', 2, {}],
    ['an annotation of the RenderService', 1, { 'corelane.dev/rollout-retry': '1' }],
  ])('unless the user has changed %s, too', (_what, generation, annotations) => {
    const contention = settled();
    contention.begin('a/shop', asked(generation, annotations), [current, deployment('shop-0', 'later', 'dawn')]);
    expect(contention.isRepair('a/shop', replan, current, 'changed')).toBe(false);
  });

  test('annotations that the plan does not read are for everybody', () => {
    const contention = settled();
    contention.begin('a/shop', asked(1), [deployment('shop-1', 'noon', 'noon', { 'example.com/a': '1' }), past]);
    expect(contention.isRepair('a/shop', replan, current, 'changed')).toBe(false);
  });

  test('a program that writes one of a past revision again and again gets thirty writes, and is told', () => {
    const contention = settled();
    let repairs = 0;
    for (let round = 0; round < 100; round += 1) {
      const written = deployment('shop-0', `${round}`, 'dawn');
      const desired = deployment('shop-1', 'noon', `${round}`);
      contention.begin('a/shop', asked(1), [current, written]);
      expect(contention.isRepair('a/shop', desired, current, 'changed')).toBe(true);
      if (contention.mayRepair('a/shop', desired, current)) {
        repairs += 1;
        contention.applied('a/shop', desired, current);
      }
      contention.keepOnly('a/shop', [current]);
    }
    expect(repairs).toBe(30);
    expect(contention.of('a/shop')).toEqual([
      'Deployment "shop-0": "somebody" changes its annotations corelane.dev/* or spec.replicas; RenderService "shop" decides it',
    ]);
    // The last write of it is not forgotten while a repair waits.
    contention.begin('a/shop', asked(1), [current, deployment('shop-0', '99', 'dawn')]);
    expect(contention.isRepair('a/shop', replan, current, 'changed')).toBe(true);
  });

  test('a write whose answer is lost is not taken for that of somebody else', () => {
    const contention = settled();
    const written = deployment('shop-1', 'later', 'noon');
    contention.begin('a/shop', asked(1), [current, past]);
    contention.lost('a/shop', current);
    contention.begin('a/shop', asked(1), [written, past]);
    expect(contention.isRepair('a/shop', replan, written, 'changed')).toBe(false);
  });
});

test('a status that somebody writes over ours again and again is repaired thirty times, and after a change of the spec', () => {
  let now = 0;
  const contention = new Contention(() => now);
  const resource = (generation: number, replicas: number) =>
    ({
      metadata: { name: 'shop', namespace: 'a', uid: 'UID', resourceVersion: '1', generation },
      status: { replicas },
    }) as unknown as RenderServiceResource;
  const may = (count: number, ...of: [generation: number, replicas: number]) =>
    Array.from({ length: count }, () => contention.mayWriteStatus('a/shop', resource(...of)));
  // Of the process before nothing is known.
  expect(may(50, 1, 9)).toEqual(Array(50).fill(true));
  contention.statusWritten('a/shop', resource(1, 2));
  expect(may(50, 1, 2)).toEqual(Array(50).fill(true));
  expect(may(31, 1, 9)).toEqual([...Array(30).fill(true), false]);
  expect(contention.of('a/shop')).toEqual([
    'RenderService "shop": somebody changes its status, which the operator decides',
  ]);
  contention.keepOnly('a/shop', []);
  expect(may(1, 1, 9)).toEqual([false]);
  expect(may(1, 2, 9)).toEqual([true]);
  now += 60_000;
  expect(may(2, 1, 9)).toEqual([true, false]);
  contention.lost('a/shop');
  expect(may(1, 1, 9)).toEqual([true]);
});
