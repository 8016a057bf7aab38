/**
 * What the caches keep of objects of ours. They are asked whether they still have what was applied, which packed parts
 * answer as whole ones do (kube/packed.ts), and a few things more, which stay as they are: of a thousand services whole
 * ones would be 100 MB. Who needs one whole asks the API server for it.
 */
import { reducedOwners } from '../kube/drift.ts';
import { kinds } from '../kube/kinds.ts';
import { Packed, TextDigest } from '../kube/packed.ts';
import { shared } from '../kube/shared.ts';
import type { KubeObject } from '../kube/types.ts';
import { tellsRefusal } from '../pods/problems.ts';
import { withoutForeignContent } from './cached-parts.ts';
import type { DeploymentStatus } from './deployment-status.ts';
import { isPast, reducePast } from './past-revision.ts';

/** Of an object of ours what is asked of it; of another one only whose it is. */
export function reduceOwned(object: KubeObject): KubeObject {
  const own = withoutForeignContent(object);
  if (own !== object) return own;
  return isPast(object) ? reducePast(object) : withPackedParts(object);
}

function withPackedParts({ apiVersion, kind, metadata, status, ...content }: KubeObject): KubeObject {
  const told = STATUS[kind]?.(status);
  return {
    apiVersion,
    kind,
    metadata: ownMetadata({ apiVersion, kind, metadata }),
    ...(CONTENT[kind] ?? packed)(content),
    ...(told !== undefined && { status: told }),
  };
}

/** All that a plan may ask for, and what tells one object from another. */
function ownMetadata(object: KubeObject): KubeObject['metadata'] {
  const { name, namespace, uid, resourceVersion, generation, deletionTimestamp } = object.metadata;
  const { labels, annotations, ownerReferences } = object.metadata;
  return {
    name,
    ...(namespace !== undefined && { namespace: shared(namespace) }),
    ...{ uid, resourceVersion },
    ...(generation !== undefined && { generation }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(labels && { labels: shared(labels) }),
    ...(annotations && { annotations }),
    ...(ownerReferences && { ownerReferences: shared(ownerReferences) }),
    managedFields: shared(reducedOwners(object)),
  } as KubeObject['metadata'];
}

type Content = Record<string, unknown>;

function packed(content: Content): Content {
  return Object.fromEntries(Object.entries(content).map(([field, value]) => [field, new Packed(value)]));
}

/** Longer texts of a configuration are not kept: it never changes, and only its pods read it. */
const TEXT_LENGTH_MAX = 256;

/** Where not everything is packed. */
const CONTENT: Record<string, (content: Content) => Content> = {
  [kinds.deployment.kind]: ({ spec }) => {
    const { template, ...rest } = spec as Content;
    return { spec: { ...rest, ...(template !== undefined && { template: new Packed(template) }) } };
  },
  // Live settings are not immutable, and are read.
  [kinds.configMap.kind]: (content) => {
    if (!content.immutable) return content;
    const texts = Object.entries((content.data ?? {}) as Record<string, string>);
    const data = texts.map(([name, text]) => [name, text.length > TEXT_LENGTH_MAX ? new TextDigest(text) : text]);
    return { ...content, data: Object.fromEntries(data) };
  },
};

/** Of which kinds somebody asks how they are. */
const STATUS: Record<string, (status: unknown) => unknown> = {
  [kinds.deployment.kind]: (status) => {
    if (!status) return undefined;
    const { observedGeneration, replicas, readyReplicas, updatedReplicas, availableReplicas, conditions } =
      status as DeploymentStatus;
    return {
      ...{ observedGeneration, replicas, readyReplicas, updatedReplicas, availableReplicas },
      ...(conditions && { conditions: shared(conditions.map(reduceCondition)) }),
    };
  },
  [kinds.podDisruptionBudget.kind]: (status) => {
    if (!status) return undefined;
    const { disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods } = status as Content;
    return { disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods };
  },
};

type Condition = NonNullable<DeploymentStatus['conditions']>[number];

/** The message is for people, except where the API server refuses pods: the status of the RenderService has it. */
function reduceCondition(condition: Condition): Condition {
  const { type, status, reason, message } = condition;
  const words = tellsRefusal(condition) && message !== undefined && { message };
  return { type, status, ...(reason !== undefined && { reason }), ...words };
}
