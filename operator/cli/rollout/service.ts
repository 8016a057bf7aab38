/** A RenderService with its revisions, as the commands below `corelane rollout` want it. */
import {
  ANNOTATION_COMPLETED,
  ANNOTATION_MADE_OF,
  ANNOTATION_NUMBER,
  ANNOTATION_RETIRED,
  API_VERSION,
  KIND,
  LABEL_RENDER_SERVICE,
  PLURAL,
} from '../../src/api/names.ts';
import type { RenderServiceResource } from '../../src/api/resource.ts';
import { controllerOf } from '../../src/kube/owner.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { type Made, readMade } from '../../src/plan/made.ts';
import { BEFORE_REVISIONS, isRevisionOf, revisionOfName } from '../../src/plan/own-deployments.ts';
import { isMemoryOf } from '../../src/plan/pods.ts';
import type { Cluster } from '../cluster.ts';

export type Resource = RenderServiceResource & KubeObject;

/** A revision, by its Deployment. */
export interface Listed {
  /** Name of the Deployment. */
  deployment: string;
  revision: string;
  number: number;
  wasComplete: boolean;
  isRetired: boolean;
  /** Pods that it is to have, and that are available. */
  replicas: number;
  available: number;
  created: string;
  /** Images of the workers. */
  image: string;
  made: Made | undefined;
}

export function readService(cluster: Cluster, name: string): Promise<Resource> {
  return cluster.get(API_VERSION, KIND, PLURAL, name).then(({ value }) => value as unknown as Resource);
}

/** Revisions that there are, the one that is asked for first. */
export async function listRevisions(cluster: Cluster, { metadata }: Resource): Promise<Listed[]> {
  const labelSelector = `${LABEL_RENDER_SERVICE}=${metadata.name}`;
  const found = await cluster.list('apps/v1', 'Deployment', 'deployments', { labelSelector });
  const owned = found
    .map(({ value }) => value as unknown as KubeObject)
    .filter((one) => controllerOf(one)?.uid === metadata.uid);
  const revisions = owned.filter((one) => isRevisionOf(one, metadata.name));
  return revisions.map((one) => listed(one, metadata.name)).toSorted((one, other) => other.number - one.number);
}

function listed({ metadata, spec, status }: KubeObject, service: string): Listed {
  const { name, annotations = {}, creationTimestamp = '' } = metadata;
  const revision = revisionOfName(name, service) || undefined;
  const made = readMade(annotations[ANNOTATION_MADE_OF]);
  const { replicas = 0, template } = spec as Template & { replicas?: number };
  const containers = template?.spec?.containers ?? [];
  return {
    deployment: name,
    // Of a version that had one Deployment for all of them.
    revision: revision ?? BEFORE_REVISIONS,
    number: Number(annotations[ANNOTATION_NUMBER] ?? 0),
    wasComplete: annotations[ANNOTATION_COMPLETED] !== undefined,
    isRetired: annotations[ANNOTATION_RETIRED] !== undefined,
    replicas,
    available: (status as { availableReplicas?: number } | undefined)?.availableReplicas ?? 0,
    created: creationTimestamp,
    image: containers.find((container) => container.name === 'worker-0')?.image ?? '',
    made: made && isMemoryOf(made, revision) ? made : undefined,
  };
}

interface Template {
  template?: { spec?: { containers?: { name: string; image?: string }[] } };
}

/** Field managers of what keeps a cluster as a repository says. */
const FROM_GIT = /^(argocd|kustomize-controller|helm-controller|flux)/;

/** Who of these has written the spec, so that it would take back what somebody else writes. */
export function managerFromGit({ metadata }: Resource): string | undefined {
  const writers = (metadata.managedFields ?? []).filter(
    ({ fieldsV1, subresource }) => !subresource && fieldsV1?.['f:spec'],
  );
  return writers.map(({ manager = '' }) => manager).find((manager) => FROM_GIT.test(manager));
}
