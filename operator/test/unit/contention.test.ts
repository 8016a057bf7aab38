/** Two that write one object: the operator slows down, says who it is, and forgets it when there is peace. */
import { Contention } from '../../src/controller/contention.ts';
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

test('what the plan asks for anew is no repair; that somebody has taken our mark away is one', () => {
  const contention = new Contention();
  const planned = (hash: string) =>
    ({ ...live, metadata: { name: 'shop', annotations: { 'corelane.dev/applied-hash': hash } } }) as KubeObject;
  expect(contention.isRepair('a/shop', planned('1'), 'changed')).toBe(false);
  contention.applied('a/shop', planned('1'));
  expect(contention.isRepair('a/shop', planned('1'), 'changed')).toBe(true);
  expect(contention.isRepair('a/shop', planned('2'), 'changed')).toBe(false);
  expect(contention.isRepair('b/shop', planned('1'), 'changed')).toBe(false);
  expect(contention.isRepair('a/shop', planned('1'), 'missing')).toBe(false);
  contention.forget('a/shop');
  expect(contention.isRepair('a/shop', planned('1'), 'changed')).toBe(false);
});
