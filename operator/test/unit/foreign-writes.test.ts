/** Sentences about writes of others: who wrote, what, and where to write it instead. */
import { foreignWrite } from '../../src/controller/foreign-writes.ts';
import type { FieldSet, KubeObject, ManagedFieldsEntry } from '../../src/kube/types.ts';

const CONTAINERS = { 'k:{"name":"worker-0"}': { '.': {}, 'f:name': {} } };
const OURS: FieldSet = { 'f:spec': { 'f:template': { 'f:spec': { 'f:containers': CONTAINERS } }, 'f:type': {} } };

/** An object of RenderService "shop", with these owners of fields beside Corelane. */
function object(kind: string, name: string, content: object, ...others: ManagedFieldsEntry[]): KubeObject {
  return {
    ...{ apiVersion: 'v1', kind },
    metadata: {
      name,
      labels: { 'app.kubernetes.io/instance': 'shop' },
      ownerReferences: [{ apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', name: 'shop', uid: '1' }],
      managedFields: [{ manager: 'corelane', operation: 'Apply', fieldsV1: OURS }, ...others],
    },
    ...content,
  };
}

const by = (manager: string, fields: FieldSet, more: Partial<ManagedFieldsEntry> = {}): ManagedFieldsEntry => ({
  ...{ manager, operation: 'Update', time: '2026-01-01T00:00:00Z', ...more },
  fieldsV1: { 'f:spec': fields },
});

const template = (fields: FieldSet): FieldSet => ({ 'f:template': { 'f:spec': fields } });
const image = template({ 'f:containers': { 'k:{"name":"worker-0"}': { 'f:image': {} } } });
const desired = object('Deployment', 'shop-1', { spec: { replicas: 2 } });
const deployment = (replicas: number, ...others: ManagedFieldsEntry[]) =>
  object('Deployment', 'shop-1', { spec: { replicas } }, ...others);
const service = (name: string, ...others: ManagedFieldsEntry[]) => object('Service', name, { spec: {} }, ...others);

test.each<[what: string, desired: KubeObject, live: KubeObject | undefined, told: string]>([
  [
    'kubectl set image',
    desired,
    deployment(2, by('kubectl-set', image)),
    'Deployment "shop-1": "kubectl-set" sets spec.template.spec.containers[{"name":"worker-0"}].image; ' +
      'set spec.template of RenderService "shop" instead',
  ],
  [
    'kubectl scale',
    desired,
    deployment(0, by('kubectl', { 'f:replicas': {} }, { subresource: 'scale' })),
    'Deployment "shop-1": "kubectl" has scaled it from 2 to 0; ' +
      'use kubectl scale renderservice shop --replicas=0 instead',
  ],
  [
    'a program that scales as others set a field',
    desired,
    deployment(0, by('downscaler', { 'f:replicas': {} })),
    'Deployment "shop-1": "downscaler" has scaled it from 2 to 0; ' +
      'use kubectl scale renderservice shop --replicas=0 instead',
  ],
  [
    'two programs, several fields, some of them in the same place',
    desired,
    deployment(2, by('a', { ...image, 'f:paused': {} }), by('b', { 'f:strategy': {}, 'f:minReadySeconds': {} })),
    'Deployment "shop-1": "a", "b" sets spec.template.spec.containers[{"name":"worker-0"}].image, spec.paused, ' +
      'spec.strategy and 1 more; set spec.template and spec.rollout.paused and spec.rollout.rolling of RenderService "shop" instead',
  ],
  [
    'a field of the Service',
    service('shop'),
    service('shop', by('kube-vip', { 'f:loadBalancerIP': {} })),
    'Service "shop": "kube-vip" sets spec.loadBalancerIP; set spec.service of RenderService "shop" instead',
  ],
  [
    'one of the Service that is for pods alone',
    service('shop-peers'),
    service('shop-peers', by('x', { 'f:loadBalancerIP': {} })),
    'Service "shop-peers": "x" sets spec.loadBalancerIP; RenderService "shop" decides it',
  ],
  [
    'a label',
    desired,
    {
      ...deployment(2),
      metadata: {
        ...deployment(2).metadata,
        labels: { 'app.kubernetes.io/instance': 'mine' },
        managedFields: [
          ...(desired.metadata.managedFields ?? []),
          { manager: 'kubectl-label', operation: 'Update', fieldsV1: { 'f:metadata': { 'f:labels': {} } } },
        ],
      },
    },
    'Deployment "shop-1": "kubectl-label" changes metadata.labels.app.kubernetes.io/instance; RenderService "shop" decides it',
  ],
  [
    'a program without a name',
    service('shop'),
    service('shop', by('', { 'f:externalIPs': {} })),
    'Service "shop": "somebody" sets spec.externalIPs; set spec.service of RenderService "shop" instead',
  ],
  [
    'a deletion',
    object('PodDisruptionBudget', 'shop', {}),
    undefined,
    'PodDisruptionBudget "shop": somebody has deleted it; set spec.disruptionBudget of RenderService "shop" instead',
  ],
  [
    'a deletion of what no field decides',
    object('ConfigMap', 'shop-live', {}),
    undefined,
    'ConfigMap "shop-live": somebody has deleted it; RenderService "shop" decides it',
  ],
])('%s', (_what, planned, live, told) => {
  // A plan has no managedFields.
  const { managedFields: _unused, ...metadata } = planned.metadata;
  expect(foreignWrite({ ...planned, metadata }, live)).toBe(told);
});

test('ten thousand fields with long names are a short sentence', () => {
  const fields = Object.fromEntries(Array.from({ length: 10_000 }, (_unused, n) => [`f:${'x'.repeat(500)}${n}`, {}]));
  expect(foreignWrite(service('shop'), service('shop', by('x', fields))).length).toBeLessThan(1_000);
});
