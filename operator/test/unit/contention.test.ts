/** Two that write one object: the operator slows down, says who it is, and forgets it when there is peace. */
import { LIVE_FILE } from '../../src/api/names.ts';
import { Contention, toldBefore } from '../../src/controller/contention.ts';
import type { Difference } from '../../src/kube/apply.ts';
import type { KubeObject } from '../../src/kube/types.ts';

const live = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    name: 'shop',
    managedFields: [
      { manager: 'corelane', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:type': {} } } },
      { manager: 'kube-vip', operation: 'Update', fieldsV1: { 'f:spec': { 'f:loadBalancerIP': {} } } },
    ],
  },
} as KubeObject;

test('thirty repairs at once, then one a minute; the message has the program and the field; half an hour of peace ends it', () => {
  let now = 0;
  const contention = new Contention(() => now);
  const repairs = (count: number) => Array.from({ length: count }, () => contention.mayRepair('a/shop', live));
  expect(repairs(30)).toEqual(Array(30).fill(true));
  expect(contention.of('a/shop')).toEqual([]);
  expect(repairs(5)).toEqual(Array(5).fill(false));
  const sentence = 'Service "shop": "kube-vip" sets spec.loadBalancerIP';
  expect(contention.of('a/shop')).toEqual([sentence]);
  expect(contention.of('b/shop')).toEqual([]);
  now += 60_000;
  expect(repairs(2)).toEqual([true, false]);
  now += 1_799_000;
  expect(contention.of('a/shop')).toEqual([sentence]);
  now += 1_000;
  expect(contention.of('a/shop')).toEqual([]);
});

test('labels of pods are bounded alike; another label than before is none of somebody else', () => {
  let now = 0;
  const contention = new Contention(() => now);
  const pods = ['a', 'b'].map((uid) => ({ kind: 'Pod', metadata: { name: `shop-${uid}`, uid } }) as KubeObject);
  const [pod, other] = pods as [KubeObject, KubeObject];
  const labels = (count: number) => Array.from({ length: count }, () => contention.mayLabel('a/shop', pod, false));
  // The first is ours to make, then thirty times somebody has set another one.
  expect(labels(31)).toEqual(Array(31).fill(true));
  expect(labels(3)).toEqual(Array(3).fill(false));
  expect(contention.of('a/shop')).toEqual(['Pod "shop-a": "somebody" changes what Corelane has set']);
  expect(contention.mayLabel('a/shop', other, false)).toBe(true);
  expect(contention.mayLabel('a/shop', pod, true)).toBe(true);
  expect(contention.mayLabel('a/shop', pod, false)).toBe(true);
  expect(contention.mayLabel('a/shop', pod, false)).toBe(false);
  now += 60_000;
  expect(labels(2)).toEqual([true, false]);
  // One that is gone is forgotten.
  contention.keepPods('a/shop', [other]);
  expect(contention.mayLabel('a/shop', pod, false)).toBe(true);
});

test('what the plan asks for anew is no repair; that somebody has taken our mark away is one', () => {
  const contention = new Contention();
  const planned = (hash: string) =>
    ({ ...live, metadata: { name: 'shop', annotations: { 'corelane.dev/applied-hash': hash } } }) as KubeObject;
  const isRepair = (key: string, hash: string, todo: Difference) => contention.isRepair(key, planned(hash), live, todo);
  expect(isRepair('a/shop', '1', 'changed')).toBe(false);
  contention.applied('a/shop', planned('1'), live);
  expect(isRepair('a/shop', '1', 'changed')).toBe(true);
  expect(isRepair('a/shop', '2', 'changed')).toBe(false);
  expect(isRepair('b/shop', '1', 'changed')).toBe(false);
  expect(isRepair('a/shop', '1', 'missing')).toBe(false);
  contention.forget('a/shop');
  expect(isRepair('a/shop', '1', 'changed')).toBe(false);
});

test('live settings that somebody writes change the plan, which is read from them: that is a repair, too', () => {
  const contention = new Contention();
  const configMap = (name: string, file: string, hash: string, resourceVersion?: string) =>
    ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', data: { [file]: '' } },
      metadata: { name, resourceVersion, annotations: { 'corelane.dev/applied-hash': hash } },
    }) as KubeObject;
  const settings = (hash: string, version?: string) => configMap('shop-live', LIVE_FILE, hash, version);
  const config = (hash: string, version?: string) => configMap(`shop-${hash}`, 'haproxy.cfg', hash, version);
  contention.applied('a/shop', settings('1'), settings('1', '10'));
  // It is another object than the configuration.
  contention.applied('a/shop', config('2'), config('2', '20'));
  expect(contention.isRepair('a/shop', settings('3'), settings('1', '10'), 'changed')).toBe(false);
  expect(contention.isRepair('a/shop', settings('3'), settings('1', '11'), 'changed')).toBe(true);
  expect(contention.isRepair('a/shop', settings('1'), settings('1', '11'), 'changed')).toBe(true);
  expect(contention.isRepair('a/shop', config('4'), config('2', '21'), 'changed')).toBe(false);
});

test('what another process has told of that is told on, for ten minutes', () => {
  const atMs = Date.parse('2026-01-01T00:00:00Z');
  const told = (reason: string) =>
    ({
      type: 'ObjectsInSync',
      status: 'False',
      reason,
      message: '',
      observedGeneration: 1,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }) as const;
  expect(toldBefore([told('TakenBack')], atMs + 599_999)).toEqual(told('TakenBack'));
  expect(toldBefore([told('TakenBack')], atMs + 600_000)).toBeUndefined();
  expect(toldBefore([told('Contended')], atMs)).toBeUndefined();
  expect(toldBefore(undefined, atMs)).toBeUndefined();
});

test('what somebody has done by hand is told for ten minutes', () => {
  let now = 0;
  const contention = new Contention(() => now);
  const scaled = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', spec: { replicas: 9 } },
    metadata: { name: 'shop-1', managedFields: [{ manager: 'kubectl', operation: 'Update', subresource: 'scale' }] },
  } as KubeObject;
  contention.takenBack('a/shop', scaled, { ...scaled, spec: { replicas: 2 } } as KubeObject);
  expect(contention.takenBackOf('a/shop')).toEqual(['Deployment "shop-1": "kubectl" has scaled it from 2 to 9']);
  expect(contention.takenBackOf('b/shop')).toEqual([]);
  contention.takenBack('a/shop', live, live);
  expect(contention.takenBackOf('a/shop')[1]).toBe('Service "shop": "kube-vip" sets spec.loadBalancerIP');
  now += 600_000;
  expect(contention.takenBackOf('a/shop')).toEqual([]);
});
