/** What the caches keep of objects of ours answers as the whole objects would: whether, and why, to write. */
import { parseRenderService } from '../../src/api/resource.ts';
import { reduceReplicaSet } from '../../src/controller/cached-parts.ts';
import { reduceOwned } from '../../src/controller/owned-parts.ts';
import { difference } from '../../src/kube/apply.ts';
import { isSubset } from '../../src/kube/subset.ts';
import type { FieldSet, KubeObject } from '../../src/kube/types.ts';
import { desiredObjects } from '../../src/plan/index.ts';

function plan(): KubeObject[] {
  const parsed = parseRenderService({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name: 'shop', namespace: 'web', uid: 'UID', generation: 1, resourceVersion: '1' },
    spec: {
      workersPerPod: 2,
      fallback: { html: '<p>later</p>' },
      template: {
        spec: {
          containers: [
            { name: 'worker', image: 'shop:1', env: [{ name: 'LONG', value: 'x'.repeat(5_000) }], resources: {} },
          ],
        },
      },
    },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const access = { namespace: 'corelane-system', monitoring: [] };
  return desiredObjects(parsed.renderService, { image: 'sidecar:1' }, access) as KubeObject[];
}

function fieldsOf(value: unknown): FieldSet {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([key, below]) => [`f:${key}`, fieldsOf(below)]));
}

/** As the API server has it: with defaults, numbers of versions, and who owns which field. */
function stored(desired: KubeObject): KubeObject {
  const { apiVersion, kind, metadata, ...content } = JSON.parse(JSON.stringify(desired)) as KubeObject;
  const fieldsV1 = fieldsOf({ metadata: { labels: metadata.labels, annotations: metadata.annotations }, ...content });
  const status = {
    observedGeneration: 1,
    ...{ replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2 },
    conditions: [{ type: 'Available', status: 'True', reason: 'Minimum', message: 'words', lastUpdateTime: 'now' }],
  };
  const managedFields = [
    { manager: 'corelane', operation: 'Apply', time: '2026-01-01T00:00:00Z', fieldsV1 },
    { manager: 'kcm', operation: 'Update', subresource: 'status', fieldsV1: fieldsOf({ status }) },
  ];
  return {
    ...{ apiVersion, kind },
    metadata: {
      ...metadata,
      uid: `uid-${kind}`,
      resourceVersion: '7',
      generation: 1,
      creationTimestamp: 'x',
      managedFields,
    },
    ...content,
    ...(kind === 'Deployment' && { status }),
  } as KubeObject;
}

/** Copies of a value, each with another leaf changed, or a list that is longer or shorter. */
function* changes(value: unknown): Generator<unknown> {
  if (Array.isArray(value)) yield* changesOfList(value);
  else if (typeof value === 'object' && value !== null) yield* changesOfMap(value as Record<string, unknown>);
  else if (typeof value === 'string') yield `${value} `;
  else yield typeof value === 'number' ? value + 1 : !value;
}

function* changesOfList(list: unknown[]): Generator<unknown> {
  yield [...list, 'more'];
  if (list.length > 0) yield list.slice(1);
  for (const [index, item] of list.entries()) for (const other of changes(item)) yield list.with(index, other);
}

function* changesOfMap(map: Record<string, unknown>): Generator<unknown> {
  for (const [key, below] of Object.entries(map)) {
    const { [key]: _gone, ...others } = map;
    yield others;
    for (const other of changes(below)) yield { ...map, [key]: other };
  }
}

const objects = plan();

test('there is one of each kind', () => {
  const kinds = objects.map(({ kind }) => kind);
  for (const kind of ['ConfigMap', 'Service', 'PodDisruptionBudget', 'NetworkPolicy', 'Deployment'])
    expect(kinds).toContain(kind);
});

describe.each(objects.map((desired) => [`${desired.kind} ${desired.metadata.name}`, desired] as const))(
  '%s',
  (_what, desired) => {
    const live = stored(desired);

    test('is as it was applied', () => {
      expect(difference(live, desired)).toBe('none');
      expect(difference(reduceOwned(live), desired)).toBe('none');
    });

    test('is not when any of it is another', () => {
      const { metadata, ...content } = live;
      let count = 0;
      for (const other of changes(content)) {
        const changed = { ...(other as object), metadata } as KubeObject;
        // An object of another kind is none of this cache.
        if (changed.kind !== live.kind || changed.apiVersion !== live.apiVersion) continue;
        // One that is not like ours is left alone with its name and its owner, and then nothing of it is as applied.
        const expected = difference(changed, desired);
        const kept = difference(reduceOwned(changed), desired);
        if (kept !== expected) expect([kept, JSON.stringify(other)]).toEqual(['changed', expect.anything()]);
        count += 1;
      }
      expect(count).toBeGreaterThan(3);
    });

    test('is not when its metadata are others', () => {
      const { labels, annotations } = live.metadata;
      for (const other of changes({ labels, annotations })) {
        const changed = { ...live, metadata: { ...live.metadata, ...(other as object) } } as KubeObject;
        expect(difference(reduceOwned(changed), desired)).toBe(difference(changed, desired));
      }
    });

    test('tells of a field that somebody has added, and of one that is not applied', () => {
      const root = 'data' in desired ? 'f:data' : 'f:spec';
      const entry = { manager: 'kubectl-edit', operation: 'Update', fieldsV1: { [root]: { 'f:added': {} } } };
      const { managedFields = [] } = live.metadata;
      const added = { ...live, metadata: { ...live.metadata, managedFields: [...managedFields, entry] } };
      expect(difference(reduceOwned(added), desired)).toBe('foreign-fields');
      const created = { ...live, metadata: { ...live.metadata, managedFields: [entry] } };
      expect(difference(reduceOwned(created), desired)).toBe('changed');
    });

    test('takes a part of the room', () => {
      const kept = reduceOwned(live);
      expect(kept.metadata).not.toHaveProperty('creationTimestamp');
      expect(JSON.stringify(kept.metadata.managedFields)).toBe(
        '[{"manager":"corelane","operation":"Apply","fieldsV1":{}}]',
      );
    });
  },
);

test('of a Deployment that are read which somebody reads', () => {
  const desired = objects.find(({ kind }) => kind === 'Deployment') as KubeObject;
  const live = stored(desired);
  const kept = reduceOwned(live);
  const { spec, status } = kept;
  expect(spec).toMatchObject({ replicas: 2, selector: (desired.spec as { selector: object }).selector });
  expect(status).toMatchObject({ observedGeneration: 1, availableReplicas: 2 });
  expect(reduceReplicaSet(kept)).toEqual(reduceReplicaSet(live));
  const configs = [expect.stringMatching(/^shop-[0-9a-f]+$/), 'shop-live'];
  expect(reduceReplicaSet(kept).configs).toEqual(expect.arrayContaining(configs));
});

test('live settings are read, a configuration is not', () => {
  const [config, settings] = objects.filter(({ kind }) => kind === 'ConfigMap') as [KubeObject, KubeObject];
  expect(reduceOwned(stored(settings)).data).toEqual(settings.data);
  const kept = reduceOwned(stored(config));
  expect(() => JSON.stringify(kept)).toThrow('only a digest is kept');
  expect(isSubset(config.data, kept.data)).toBe(true);
});

test('of an object that is somebody else’s only whose it is', () => {
  const [desired] = objects.filter(({ kind }) => kind === 'Service') as [KubeObject];
  const other = stored({ ...desired, metadata: { ...desired.metadata, name: 'other' } });
  expect(reduceOwned(other)).toEqual({
    ...{ apiVersion: 'v1', kind: 'Service' },
    metadata: expect.objectContaining({ name: 'other', ownerReferences: [expect.objectContaining({ uid: 'UID' })] }),
  });
});
