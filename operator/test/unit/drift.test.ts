/** Finding and taking out what others have put into an object of ours, by its managed fields. */
import {
  fieldText,
  foreignFields as foreign,
  lastWriter,
  purged,
  reducedOwners,
  withoutFields,
} from '../../src/kube/drift.ts';
import type { FieldSet, KubeObject, ManagedFieldsEntry } from '../../src/kube/types.ts';

const OURS: FieldSet = {
  'f:spec': {
    'f:replicas': {},
    'f:template': {
      'f:metadata': { 'f:annotations': { 'f:corelane.dev/config': {} }, 'f:labels': { 'f:app': {} } },
      'f:spec': { 'f:containers': { 'k:{"name":"worker-0"}': { '.': {}, 'f:name': {}, 'f:image': {} } } },
    },
  },
};
const ours: ManagedFieldsEntry = { manager: 'corelane', operation: 'Apply', fieldsV1: OURS };

/** An object that we and others have written. */
function object(...others: ManagedFieldsEntry[]): KubeObject {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a', managedFields: [ours, ...others] } };
}

function by(manager: string, fieldsV1: FieldSet, more: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry {
  return { manager, operation: 'Update', fieldsV1, ...more };
}

const foreignFields = (live: KubeObject) => foreign(live).map(({ path }) => path);

const annotation = (name: string): FieldSet => ({
  'f:spec': { 'f:template': { 'f:metadata': { 'f:annotations': { '.': {}, [name]: {} } } } },
});

test('nobody else: nothing', () => {
  expect(foreignFields(object())).toEqual([]);
});

test('a field that only somebody else has is foreign', () => {
  expect(foreignFields(object(by('kubectl', { 'f:spec': { 'f:paused': {} } })))).toEqual([['f:spec', 'f:paused']]);
});

test('a field that both have is not: both say the same', () => {
  expect(foreignFields(object(by('kubectl', { 'f:spec': { 'f:replicas': {} } })))).toEqual([]);
});

test('a field in an item of ours is foreign, by the key of the item', () => {
  const containers = { 'k:{"name":"worker-0"}': { 'f:tty': {} }, 'k:{"name":"debug"}': { '.': {}, 'f:name': {} } };
  const fields = { 'f:spec': { 'f:template': { 'f:spec': { 'f:containers': containers } } } };
  const path = ['f:spec', 'f:template', 'f:spec', 'f:containers'];
  expect(foreignFields(object(by('kubectl', fields)))).toEqual([
    [...path, 'k:{"name":"worker-0"}', 'f:tty'],
    [...path, 'k:{"name":"debug"}'],
  ]);
});

test('annotations of ours that we have not applied are none of theirs', () => {
  const annotations = (...names: string[]): FieldSet => ({
    'f:metadata': { 'f:annotations': Object.fromEntries(names.map((name) => [`f:${name}`, {}])) },
  });
  const applied = { ...ours, fieldsV1: { ...OURS, ...annotations('corelane.dev/completed') } };
  const written = by(
    'kubectl-annotate',
    annotations('corelane.dev/retired', 'corelane.dev/completed', 'example.com/a'),
  );
  const live = { ...object(), metadata: { name: 'a', managedFields: [applied, written] } };
  const found = [['f:metadata', 'f:annotations', 'f:corelane.dev/retired']];
  expect(foreignFields(live)).toEqual(found);
  const kept = { ...live, metadata: { name: 'a', managedFields: reducedOwners(live) } };
  expect(foreignFields(kept)).toEqual(found);
  const all = { 'corelane.dev/retired': '1', 'corelane.dev/completed': '2', 'example.com/a': '3' };
  const whole = { ...live, metadata: { ...live.metadata, annotations: all } };
  const { 'corelane.dev/retired': _gone, ...left } = all;
  expect(purged(whole, found, object()).metadata.annotations).toEqual(left);
});

test('labels and annotations of the object and its status are for everybody', () => {
  const fields = { 'f:metadata': { 'f:labels': { 'f:team': {} } }, 'f:status': { 'f:replicas': {} } };
  expect(foreignFields(object(by('kubectl', fields)))).toEqual([]);
});

test('an annotation of the pod template stays for kubectl rollout restart, a label of it does not', () => {
  expect(foreignFields(object(by('kubectl', annotation('f:restartedAt'))))).toEqual([]);
  const label = { 'f:spec': { 'f:template': { 'f:metadata': { 'f:labels': { 'f:team': {} } } } } };
  expect(foreignFields(object(by('kubectl', label)))).toHaveLength(1);
});

test('what is written through a subresource belongs to its controller', () => {
  const scale = by('hpa', { 'f:spec': { 'f:x': {} } }, { subresource: 'scale' });
  expect(foreignFields(object(scale))).toEqual([]);
});

test('what we have put back to its default is not foreign', () => {
  expect(foreignFields(object(by('corelane', { 'f:spec': { 'f:sessionAffinity': {} } })))).toEqual([]);
});

test('an object without our entry tells nothing', () => {
  const other = object(by('kubectl', { 'f:spec': { 'f:paused': {} } }));
  other.metadata.managedFields = other.metadata.managedFields?.slice(1);
  expect(foreignFields(other)).toEqual([]);
});

describe('taking out', () => {
  const live = () => ({
    ...object(),
    spec: {
      paused: true,
      clusterIP: '10.0.0.1',
      ports: [
        { port: 80, protocol: 'TCP', nodePort: 30_000 },
        { port: 81, protocol: 'TCP' },
      ],
      finalizers: ['a', 'b'],
    },
  });

  test.each<[string, string[], unknown]>([
    ['a field', ['f:spec', 'f:paused'], expect.not.objectContaining({ paused: true })],
    [
      'an item by its key',
      ['f:spec', 'f:ports', 'k:{"port":81,"protocol":"TCP"}'],
      expect.objectContaining({ ports: [expect.objectContaining({ port: 80 })] }),
    ],
    [
      'a field of an item',
      ['f:spec', 'f:ports', 'k:{"port":80,"protocol":"TCP"}', 'f:nodePort'],
      expect.objectContaining({ ports: [{ port: 80, protocol: 'TCP' }, expect.anything()] }),
    ],
    ['an item by its value', ['f:spec', 'f:finalizers', 'v:"a"'], expect.objectContaining({ finalizers: ['b'] })],
    ['an item by its index', ['f:spec', 'f:finalizers', 'i:1'], expect.objectContaining({ finalizers: ['a'] })],
  ])('%s', (_what, path, expected) => {
    expect(withoutFields(live(), [path]).spec).toEqual(expected);
  });

  test.each<[string, string[]]>([
    ['a field', ['f:spec', 'f:gone']],
    ['an item', ['f:spec', 'f:ports', 'k:{"port":9,"protocol":"TCP"}']],
    ['something below nothing', ['f:spec', 'f:gone', 'k:{"name":"a"}', 'f:b']],
  ])('of %s that is not there changes nothing', (_what, path) => {
    expect(withoutFields(live(), [path])).toEqual(live());
  });

  test('leaves the original as it was', () => {
    const original = live();
    withoutFields(original, [['f:spec', 'f:paused']]);
    expect(original).toEqual(live());
  });

  test('and saying what we want gives an object that can be put', () => {
    const desired = { ...object(), spec: { ports: [{ port: 82 }], type: 'ClusterIP' } };
    const result = purged(
      live(),
      [
        ['f:spec', 'f:paused'],
        ['f:spec', 'f:ports'],
      ],
      desired,
    );
    expect(result.spec).toEqual({
      clusterIP: '10.0.0.1', // the API server's own
      ports: [{ port: 82 }],
      type: 'ClusterIP',
      finalizers: ['a', 'b'],
    });
    expect(result.metadata).toEqual(live().metadata);
  });
});

/** A number from 0 to `below`, in a sequence that is the same each time. */
let seed = 1;
function random(below: number): number {
  seed = (seed * 48_271) % 2_147_483_647;
  return seed % below;
}

function randomFields(depth: number): FieldSet {
  const keys = ['f:a', 'f:template', 'f:metadata', 'f:annotations', 'f:corelane.dev/a', 'k:{"name":"a"}', 'v:1', '.'];
  const some = keys.filter(() => random(2) === 0);
  return Object.fromEntries(some.map((key) => [key, depth > 0 && key !== '.' ? randomFields(depth - 1) : {}]));
}

function randomEntry(): ManagedFieldsEntry {
  const roots = ['f:spec', 'f:data', 'f:status', 'f:metadata'].filter(() => random(2) === 0);
  return {
    manager: ['corelane', 'kubectl', 'hpa'][random(3)] as string,
    operation: ['Apply', 'Update'][random(2)] as string,
    ...(random(3) === 0 && { subresource: ['status', 'scale'][random(2)] as string }),
    time: `2026-01-01T00:00:0${random(9)}Z`,
    ...(random(9) > 0 && { fieldsV1: Object.fromEntries(roots.map((root) => [root, randomFields(4)])) }),
  };
}

test('of who owns what is kept what anybody asks for', () => {
  let found = 0;
  for (let n = 0; n < 3_000; n += 1) {
    const managedFields = Array.from({ length: random(5) }, randomEntry);
    const whole = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a', managedFields } };
    const kept = { ...whole, metadata: { name: 'a', managedFields: reducedOwners(whole) } };
    const scaler = ({ metadata }: typeof whole) =>
      metadata.managedFields.findLast(({ subresource }) => subresource === 'scale')?.manager;
    const applied = ({ metadata }: typeof whole) =>
      metadata.managedFields.some(({ manager, operation }) => manager === 'corelane' && operation === 'Apply');
    const sorted = (of: KubeObject) =>
      foreign(of)
        .map((one) => JSON.stringify(one))
        .sort();
    expect(sorted(kept)).toEqual(sorted(whole));
    expect(lastWriter(kept)).toBe(lastWriter(whole));
    expect([scaler(kept), applied(kept)]).toEqual([scaler(whole), applied(whole)]);
    found += foreign(whole).length;
  }
  expect(found).toBeGreaterThan(1_000);
});

test('who it was, and the field as people write it', () => {
  const containers = { 'k:{"name":"worker-0"}': { 'f:tty': {} } };
  const fields = { 'f:loadBalancerIP': {}, 'f:template': { 'f:spec': { 'f:containers': containers } } };
  const ports = { 'f:spec': fields };
  const live = object(by('kube-vip', ports, { time: '2026-01-01T00:00:02Z' }), by('kubectl-edit', { 'f:data': {} }));
  expect(foreign(live).map(({ path, manager }) => `${manager} ${fieldText(path)}`)).toEqual([
    'kube-vip spec.loadBalancerIP',
    'kube-vip spec.template.spec.containers[{"name":"worker-0"}].tty',
  ]);
  expect(lastWriter(live)).toBe('kube-vip');
});

/**
 * Milliseconds of this process to take `count` variables out of an environment that has them in the other order, the
 * least of some tries.
 */
function cost(count: number): number {
  const names = Array.from({ length: count }, (_unused, index) => `A${index}`);
  const live = { ...object(), spec: { env: names.toReversed().map((name) => ({ name, value: 'x' })) } };
  const paths = names.map((name) => ['f:spec', 'f:env', `k:${JSON.stringify({ name })}`]);
  const tries = Array.from({ length: 3 }, () => {
    const before = process.cpuUsage();
    expect(withoutFields(live, paths).spec).toEqual({ env: [] });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...tries);
}

// Whoever may edit a Deployment can add as many as it holds. Quadratic it was 4 s for 20,000, in which no Lease is
// renewed.
test('eight times as many fields cost about eight times as much', () => {
  const few = cost(2_000);
  expect(cost(16_000)).toBeLessThan(24 * (few + 1));
});
