/**
 * Measures how many bytes of heap the operator's caches need for each object of a service, compared with the object as
 * JSON.parse returns it:
 *   node --expose-gc bench/kept-bytes.ts
 * It makes 300 services with all defaults, and measures each kind of object by itself, after a garbage collection.
 */
import { reducePod, reduceReplicaSet, withoutManagedFields } from '../operator/src/controller/cached-parts.ts';
import { reduceOwned } from '../operator/src/controller/owned-parts.ts';
import type { KubeObject } from '../operator/src/kube/types.ts';
import { storedService } from './operator/stored.ts';

const SERVICES = 300;
const PODS = 10;

const reduceOf: Record<string, (object: KubeObject) => KubeObject> = {
  RenderService: withoutManagedFields,
  ReplicaSet: reduceReplicaSet,
  Pod: reducePod,
};

/** As text, by kind. */
const texts = new Map<string, string[]>();

for (let index = 0; index < SERVICES; index += 1) {
  const { renderService, owned, replicaSet, pod } = storedService({ name: `s${index}`, namespace: 'b0' }, PODS);
  const pods = Array.from({ length: PODS }, (_unused, n) => pod(n, `127.2.${index}.${n}`));
  for (const object of [renderService, ...owned, replicaSet, ...pods]) {
    const { name } = object.metadata;
    const what = object.kind === 'ConfigMap' && name.endsWith('-live') ? 'ConfigMap with live settings' : object.kind;
    texts.set(what, [...(texts.get(what) ?? []), JSON.stringify(object)]);
  }
}

function heapBytes(): number {
  if (!globalThis.gc) throw new Error('node --expose-gc bench/kept-bytes.ts');
  for (let n = 0; n < 3; n += 1) globalThis.gc();
  return process.memoryUsage().heapUsed;
}

/** Bytes of what comes of these texts, of each. */
function bytesOf(all: string[], make: (text: string) => unknown): number {
  const before = heapBytes();
  const kept = all.map(make);
  return Math.round((heapBytes() - before) / kept.length);
}

console.log('kind, bytes of JSON, parsed, kept');
for (const [what, all] of texts) {
  const reduce = reduceOf[all.length > 0 ? (JSON.parse(all[0] as string) as KubeObject).kind : ''] ?? reduceOwned;
  const parsed = bytesOf(all, (text) => JSON.parse(text));
  const kept = bytesOf(all, (text) => reduce(JSON.parse(text)));
  console.log([what, Math.round(all.join('').length / all.length), parsed, kept].join(', '));
}
