/** What counts as "still there" between what was applied and what the API server stores. */
import { fieldText } from '../../src/kube/drift.ts';
import { Packed, TextDigest } from '../../src/kube/packed.ts';
import { deviations, isSubset } from '../../src/kube/subset.ts';

test.each<[string, unknown, unknown]>([
  ['the same', { a: 1, b: ['x'] }, { a: 1, b: ['x'] }],
  ['defaults beside it', { a: 1 }, { a: 1, b: 'default' }],
  ['defaults in a list item', [{ port: 80 }], [{ port: 80, protocol: 'TCP' }]],
  ['an empty list that was dropped', { tolerations: [] }, {}],
  ['an empty map that was dropped', { nodeSelector: {} }, {}],
  ['a map of empty maps that was kept', { emptyDir: {} }, { emptyDir: {} }],
  ['null', { affinity: null }, {}],
  ['an empty text that was dropped', { env: [{ name: 'A', value: '' }] }, { env: [{ name: 'A' }] }],
  ['false that was dropped', { hostIPC: false }, {}],
  ['0 that was dropped', { minReadySeconds: 0 }, {}],
  ['a CPU in milli', { requests: { cpu: '1000m' } }, { requests: { cpu: '1' } }],
  ['a fraction of a CPU', { requests: { cpu: '0.5' } }, { requests: { cpu: '500m' } }],
  ['a CPU as number', { requests: { cpu: 2 } }, { requests: { cpu: '2' } }],
  ['memory in smaller units', { limits: { memory: '1024Mi' } }, { limits: { memory: '1Gi' } }],
  ['memory with an exponent', { limits: { memory: '1000e6' } }, { limits: { memory: '1e9' } }],
  ['a size limit', { emptyDir: { sizeLimit: '1024Mi' } }, { emptyDir: { sizeLimit: '1Gi' } }],
])('is a subset: %s', (_what, desired, live) => {
  expect(isSubset(desired, live)).toBe(true);
});

test.each<[string, unknown, unknown]>([
  ['another value', { a: 1 }, { a: 2 }],
  ['a missing value', { a: 1 }, {}],
  ['another type', { a: '1' }, { a: 1 }],
  ['an item more', ['x'], ['x', 'y']],
  ['an item less', ['x', 'y'], ['x']],
  ['another order', ['x', 'y'], ['y', 'x']],
  ['empty where there is something', { a: '' }, { a: 'x' }],
  ['false where there is true', { hostIPC: false }, { hostIPC: true }],
  ['0 where there is a number', { replicas: 0 }, { replicas: 1 }],
  ['an empty list where there are items', { tolerations: [] }, { tolerations: [{ key: 'a' }] }],
  ['another quantity', { requests: { cpu: '1000m' } }, { requests: { cpu: '2' } }],
  // In an environment variable "1000m" and "1" are different texts.
  ['texts that would be the same quantity', { env: [{ value: '1000m' }] }, { env: [{ value: '1' }] }],
  // A token is mounted where the field is missing.
  ['false that must not be missing', { automountServiceAccountToken: false }, {}],
  // Variables of other Services are set where it is missing.
  ['false of service links that must not be missing', { enableServiceLinks: false }, {}],
  ['user 0 that must not be missing', { securityContext: { runAsUser: 0 } }, { securityContext: {} }],
  ['anything in nothing', { a: 1 }, undefined],
])('is no subset: %s', (_what, desired, live) => {
  expect(isSubset(desired, live)).toBe(false);
});

const named = (...items: [name: string, image?: string][]) =>
  items.map(([name, image]) => ({ name, ...(image && { image }) }));

test.each<[what: string, desired: unknown, live: unknown, fields: string[]]>([
  ['nothing', { a: 1 }, { a: 1, b: 2 }, []],
  ['the value itself', 1, 2, ['']],
  ['a field', { spec: { a: 1, b: 2 } }, { spec: { a: 1, b: 3 } }, ['spec.b']],
  ['a field that is gone', { spec: { a: { b: 1 } } }, { spec: {} }, ['spec.a']],
  [
    'a field of an item, by its name',
    { c: named(['x', '1'], ['y', '2']) },
    { c: named(['x', '1'], ['y', '3']) },
    ['c[{"name":"y"}].image'],
  ],
  ['an item more', { c: named(['x']) }, { c: named(['x'], ['y']) }, ['c[{"name":"y"}]']],
  [
    'an item less, and another value',
    { c: named(['x', '1'], ['y']) },
    { c: named(['x', '2']) },
    ['c[{"name":"x"}].image', 'c[{"name":"y"}]'],
  ],
  ['named items in another order', { c: named(['x'], ['y']) }, { c: named(['y'], ['x']) }, ['c']],
  ['two items of one name', { c: named(['x', '1'], ['x', '2']) }, { c: named(['x', '1'], ['x', '3']) }, ['c']],
  ['items without names', { args: ['a', 'b'] }, { args: ['a', 'c'] }, ['args']],
  ['a map instead of a list', { c: named(['x']) }, { c: {} }, ['c']],
  ['a field in a packed part', { spec: { a: 1 } }, { spec: new Packed({ a: 2 }) }, ['spec.a']],
  ['a text of which a digest is kept', { data: { a: 'x' } }, { data: { a: new TextDigest('y') } }, ['data.a']],
])('deviates in: %s', (_what, desired, live, fields) => {
  expect(deviations(desired, live).map(({ path }) => fieldText(path))).toEqual(fields);
  expect(isSubset(desired, live)).toBe(fields.length === 0);
});

test('a deviation has both values', () => {
  const [own, added] = deviations({ c: named(['x', '1']) }, { c: named(['x', '2'], ['y']) });
  expect(own).toMatchObject({ desired: '1', live: '2' });
  expect(added).toMatchObject({ desired: undefined, live: { name: 'y' } });
});
