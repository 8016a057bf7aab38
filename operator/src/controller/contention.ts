/**
 * Objects that another controller writes again and again: what it sets we take away, which makes it set it again. Two
 * programs that do so at full speed load the API server, and neither ever wins; so the second one to notice, which is
 * us, slows down and says so.
 */
import { ANNOTATION_APPLIED_HASH } from '../api/names.ts';
import type { Difference } from '../kube/apply.ts';
import { fieldText, foreignFields, lastWriter } from '../kube/drift.ts';
import { kinds } from '../kube/kinds.ts';
import { TokenBucket } from '../kube/token-bucket.ts';
import type { KubeObject } from '../kube/types.ts';

/**
 * Repairs of one object at once: more than a person does who tries something out, and a second or two of a program.
 * Then one in so long.
 */
const REPAIRS = { burst: 30, everyMs: 60_000 };

/** Fields that are named in a message. */
const NAMED_MAX = 3;

interface Contended {
  bucket: TokenBucket;
  /** A sentence, once there were too many repairs. */
  about?: string;
}

export class Contention {
  /** By RenderService, then by object. */
  readonly #objects = new Map<string, Map<string, Contended>>();
  /** Hash of what was last applied, likewise. */
  readonly #applied = new Map<string, Map<string, string>>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Notes what has been applied, or found to be. */
  applied(key: string, object: KubeObject): void {
    const hashes = this.#applied.get(key) ?? new Map<string, string>();
    this.#applied.set(key, hashes);
    hashes.set(place(object), hashOf(object));
  }

  /**
   * Whether it is somebody else who has made the difference: the plan has not changed since `desired` was last applied.
   */
  isRepair(key: string, desired: KubeObject, todo: Difference): boolean {
    if (todo === 'edited' || todo === 'foreign-fields') return true;
    return todo === 'changed' && this.#applied.get(key)?.get(place(desired)) === hashOf(desired);
  }

  /** Whether `live`, an object of the RenderService `key`, may be repaired now. */
  mayRepair(key: string, live: KubeObject): boolean {
    const objects = this.#objects.get(key) ?? new Map<string, Contended>();
    this.#objects.set(key, objects);
    const name = `${live.kind} "${live.metadata.name}"`;
    const entry = objects.get(name) ?? { bucket: new TokenBucket(REPAIRS.burst, REPAIRS.everyMs, this.#now) };
    objects.set(name, entry);
    if (entry.bucket.take()) return true;
    entry.about = `${name}: ${whoDoesWhat(live)}`;
    return false;
  }

  /** A sentence about each object of a RenderService that others fight for. Half an hour of peace ends it. */
  of(key: string): string[] {
    const objects = this.#objects.get(key);
    if (!objects) return [];
    for (const [name, { bucket }] of objects) if (bucket.isFull) objects.delete(name);
    if (objects.size === 0) this.#objects.delete(key);
    return [...objects.values()].flatMap(({ about }) => about ?? []);
  }

  forget(key: string): void {
    this.#objects.delete(key);
    this.#applied.delete(key);
  }
}

/** Which of the objects of a RenderService. It has one ConfigMap at a time, whose name changes with what is in it. */
function place({ kind, metadata }: KubeObject): string {
  return kind === kinds.configMap.kind ? kind : `${kind} "${metadata.name}"`;
}

function hashOf({ metadata }: KubeObject): string {
  return metadata.annotations?.[ANNOTATION_APPLIED_HASH] ?? '';
}

function whoDoesWhat(live: KubeObject): string {
  const foreign = foreignFields(live);
  if (foreign.length === 0) return `"${lastWriter(live) ?? 'somebody'}" changes what Corelane has set`;
  const fields = [...new Set(foreign.map(({ path }) => fieldText(path)))];
  const managers = [...new Set(foreign.map(({ manager }) => `"${manager}"`))];
  const rest = fields.length > NAMED_MAX ? ` and ${fields.length - NAMED_MAX} more` : '';
  return `${managers.join(', ')} sets ${fields.slice(0, NAMED_MAX).join(', ')}${rest}`;
}
