/** What counts as "still there" between what was applied and what the API server stores. */
import { isSubset } from '../../src/kube/subset.ts';

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
  ['user 0 that must not be missing', { securityContext: { runAsUser: 0 } }, { securityContext: {} }],
  ['anything in nothing', { a: 1 }, undefined],
])('is no subset: %s', (_what, desired, live) => {
  expect(isSubset(desired, live)).toBe(false);
});
