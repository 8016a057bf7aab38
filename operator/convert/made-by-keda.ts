/** The autoscalers that KEDA makes of ScaledObjects. */
import { isRecord, type Manifest } from './manifests.ts';

/** Names of the ScaledObjects that own an object. */
function owners({ value }: Manifest): unknown[] {
  const references = isRecord(value.metadata) ? value.metadata.ownerReferences : undefined;
  const all = Array.isArray(references) ? references.filter(isRecord) : [];
  return all.filter(({ kind }) => kind === 'ScaledObject').map(({ name }) => name);
}

/**
 * All but the autoscalers whose ScaledObject is there, too: it says all that they do, and KEDA makes anew what is
 * deleted.
 */
export function withoutMadeByKeda(manifests: Manifest[]): Manifest[] {
  const scaledObjects = new Set<unknown>(
    manifests.filter(({ kind }) => kind === 'ScaledObject').map(({ name }) => name),
  );
  const isMade = (manifest: Manifest) =>
    manifest.kind === 'HorizontalPodAutoscaler' && owners(manifest).some((name) => scaledObjects.has(name));
  return manifests.filter((manifest) => !isMade(manifest));
}
