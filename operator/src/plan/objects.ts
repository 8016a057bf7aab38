/** What all objects of a plan have in common: names, labels, owner, hash. */
import { createHash } from 'node:crypto';
import { isInherited } from '../api/labels.ts';
import {
  ANNOTATION_APPLIED_HASH,
  API_VERSION,
  KIND,
  LABEL_INSTANCE,
  LABEL_MANAGED_BY,
  LABEL_RENDER_SERVICE,
  LABEL_SERVING,
  MANAGER,
} from '../api/names.ts';
import type { RenderService } from '../api/resource.ts';

/** An object as it is to be applied. */
export interface PlannedObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace: string;
    labels: Record<string, string>;
    annotations: Record<string, string>;
    ownerReferences: object[];
  };
  [field: string]: unknown;
}

/** Name of the headless Service by which pods find each other. */
export function peersName({ metadata }: RenderService): string {
  return `${metadata.name}-peers`;
}

/** DNS name of that Service but for the cluster's domain, which only a pod knows. */
export function peersHost(renderService: RenderService): string {
  return `${peersName(renderService)}.${renderService.metadata.namespace}.svc`;
}

/** The labels that select all pods of a RenderService. A selector is immutable, so this never grows. */
export function selectorLabels({ metadata }: { metadata: { name: string } }): Record<string, string> {
  return { [LABEL_RENDER_SERVICE]: metadata.name };
}

/**
 * The labels that select the pods that get requests: all but those of a revision that rests.
 * @param canRest whether all pods have been made by a version that tells these apart
 */
export function servingLabels(renderService: RenderService, canRest: boolean): Record<string, string> {
  return { ...selectorLabels(renderService), ...(canRest && { [LABEL_SERVING]: 'true' }) };
}

/** Labels as text, for `status.selector` and for lists. */
export function selectorText(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

/** The first `length` hex digits of the SHA-256 of a value's JSON with sorted keys. */
export function contentHash(value: unknown, length = 10): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, length);
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, node: unknown) => {
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return node;
    return Object.fromEntries(Object.entries(node).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}

/** Metadata given by the builder of an object; the rest is the same for all. */
interface Draft {
  apiVersion: string;
  kind: string;
  name: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  /** Everything beside apiVersion, kind and metadata. */
  content: Record<string, unknown>;
}

/**
 * Labels that the user has given to the RenderService: policies and bills ask for them on each object. Pods have those
 * of the template, as those of a Deployment do: a change of these here replaces no pod.
 */
function userLabels({ metadata: { labels = {} } }: RenderService): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => isInherited(key)));
}

/** Completes a draft: namespace, labels, owner reference and the hash by which a later plan sees that it changed. */
export function plannedObject(renderService: RenderService, draft: Draft): PlannedObject {
  const { metadata } = renderService;
  const object: PlannedObject = {
    apiVersion: draft.apiVersion,
    kind: draft.kind,
    metadata: {
      name: draft.name,
      namespace: metadata.namespace,
      labels: {
        ...userLabels(renderService),
        ...draft.labels,
        [LABEL_MANAGED_BY]: MANAGER,
        [LABEL_INSTANCE]: metadata.name,
        ...selectorLabels(renderService),
      },
      annotations: { ...draft.annotations },
      ownerReferences: [
        {
          apiVersion: API_VERSION,
          kind: KIND,
          name: metadata.name,
          uid: metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    ...draft.content,
  };
  object.metadata.annotations[ANNOTATION_APPLIED_HASH] = contentHash(object);
  return object;
}
