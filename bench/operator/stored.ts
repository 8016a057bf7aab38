/**
 * Objects as an API server has them that has served a fleet for a while, made of what the operator asks for. Computes
 * only.
 */
import { createHash } from 'node:crypto';
import { parseStored, type RenderServiceResource } from '../../operator/src/api/resource.ts';
import type { FieldSet, KubeObject } from '../../operator/src/kube/types.ts';
import { desiredObjects } from '../../operator/src/plan/index.ts';
import { choosePods } from '../../operator/src/plan/pods.ts';
import { ACCESS, type Named, renderService, SIDECAR } from './objects.ts';

const TIME = '2026-01-01T00:00:00Z';

/** What there is of a service. */
export interface StoredService {
  renderService: KubeObject;
  /** All that the operator applies. */
  owned: KubeObject[];
  replicaSet: KubeObject;
  /** The pod with this number. */
  pod: (index: number, address: string) => KubeObject;
}

/** Of a service with all defaults and `replicas` pods, which are ready. */
export function storedService(named: Named, replicas: number): StoredService {
  const asked = renderService(named, replicas) as unknown as RenderServiceResource;
  const metadata = { ...asked.metadata, uid: uidOf('RenderService', named), generation: 1, resourceVersion: '1' };
  const parsed = parseStored({ ...asked, metadata });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const { config, ...pods } = choosePods(parsed.renderService, asked.spec, SIDECAR, [], () => undefined).pods;
  const annotations = {
    ...pods.annotations,
    'corelane.dev/revision-number': '1',
    'corelane.dev/completed': TIME,
  };
  const plan = { revisions: [{ ...pods, annotations, replicas }], config, canRest: true };
  const owned = desiredObjects(parsed.renderService, SIDECAR, ACCESS, undefined, plan).map((object) =>
    stored(object as KubeObject, replicas),
  );
  const deployment = owned.at(-1) as KubeObject;
  const replicaSet = ownedBy(deployment, 'ReplicaSet', `${deployment.metadata.name}-5d9c7f8b4f`);
  return {
    renderService: { ...asked, metadata: { ...metadata, creationTimestamp: TIME } } as unknown as KubeObject,
    owned,
    replicaSet: { ...replicaSet, spec: deployment.spec, status: { replicas } },
    pod: (index, address) => podOf(replicaSet, deployment, index, address),
  };
}

function stored({ apiVersion, kind, metadata, ...content }: KubeObject, replicas: number): KubeObject {
  const { labels, annotations, ownerReferences } = metadata;
  const status = kind === 'Deployment' ? { status: deploymentStatus(replicas) } : {};
  const of = fieldsOf({ metadata: { labels, annotations, ownerReferences }, ...content });
  return {
    ...{ apiVersion, kind },
    metadata: {
      ...metadata,
      ...{ uid: uidOf(kind, metadata), resourceVersion: '1', generation: 1, creationTimestamp: TIME },
      managedFields: [
        { manager: 'corelane', operation: 'Apply', time: TIME, fieldsV1: of },
        ...(kind === 'Deployment'
          ? [
              {
                manager: 'kube-controller-manager',
                operation: 'Update',
                subresource: 'status',
                fieldsV1: fieldsOf(status),
              },
            ]
          : []),
      ],
    },
    ...content,
    ...status,
  } as KubeObject;
}

function deploymentStatus(replicas: number) {
  const condition = (type: string, reason: string) => ({
    ...{ type, status: 'True', reason, message: 'Deployment has minimum availability.' },
    ...{ lastUpdateTime: TIME, lastTransitionTime: TIME },
  });
  return {
    ...{
      observedGeneration: 1,
      replicas,
      readyReplicas: replicas,
      updatedReplicas: replicas,
      availableReplicas: replicas,
    },
    conditions: [
      condition('Available', 'MinimumReplicasAvailable'),
      condition('Progressing', 'NewReplicaSetAvailable'),
    ],
  };
}

interface Template {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: { containers: { name: string }[]; initContainers?: { name: string }[] };
}

function podOf(replicaSet: KubeObject, deployment: KubeObject, index: number, podIP: string): KubeObject {
  const { metadata, spec } = (deployment.spec as { template: Template }).template;
  const pod = ownedBy(replicaSet, 'Pod', `${replicaSet.metadata.name}-${index.toString(36).padStart(5, 'x')}`);
  const running = ({ name }: { name: string }) => ({
    ...{ name, ready: true, started: true, restartCount: 0, lastState: {}, state: { running: { startedAt: TIME } } },
    ...{
      image: 'corelane.test/sidecar:1',
      imageID: `sha256:${'0'.repeat(64)}`,
      containerID: `containerd://${'0'.repeat(64)}`,
    },
  });
  const condition = (type: string) => ({ type, status: 'True', lastProbeTime: null, lastTransitionTime: TIME });
  const status = {
    ...{ phase: 'Running', podIP, podIPs: [{ ip: podIP }], hostIP: '10.0.0.1', startTime: TIME, qosClass: 'Burstable' },
    conditions: ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(condition),
    initContainerStatuses: (spec.initContainers ?? []).map(running),
    containerStatuses: spec.containers.map(running),
  };
  const managedFields = [
    { manager: 'kube-controller-manager', operation: 'Update', time: TIME, fieldsV1: fieldsOf({ metadata, spec }) },
    { manager: 'kubelet', operation: 'Update', subresource: 'status', time: TIME, fieldsV1: fieldsOf({ status }) },
  ];
  return { ...pod, metadata: { ...pod.metadata, ...metadata, managedFields }, spec, status } as KubeObject;
}

function ownedBy(
  { kind: of, metadata: { namespace = '', name: owner, uid, labels } }: KubeObject,
  kind: string,
  name: string,
) {
  const reference = { apiVersion: 'apps/v1', kind: of, name: owner, uid, controller: true, blockOwnerDeletion: true };
  const own = { name, namespace, uid: uidOf(kind, { namespace, name }), resourceVersion: '1', generation: 1 };
  return {
    ...{ apiVersion: kind === 'Pod' ? 'v1' : 'apps/v1', kind },
    metadata: { ...own, labels, creationTimestamp: TIME, ownerReferences: [reference] },
  } as KubeObject;
}

function uidOf(kind: string, { namespace = '', name }: { namespace?: string; name: string }): string {
  const hex = createHash('sha256').update(`${kind}/${namespace}/${name}`).digest('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
}

/** Who owns which field, as the API server writes it down. */
function fieldsOf(value: unknown): FieldSet {
  if (typeof value !== 'object' || value === null) return {};
  if (!Array.isArray(value))
    return Object.fromEntries(Object.entries(value).map(([key, below]) => [`f:${key}`, fieldsOf(below)]));
  const named = value.filter((item) => typeof item?.name === 'string');
  return Object.fromEntries(
    named.map((item) => [`k:${JSON.stringify({ name: item.name })}`, { '.': {}, ...fieldsOf(item) }]),
  );
}
