/**
 * Whether there is the ConfigMap that `fallback.configMap` names. Pods run without it, so nobody else would say that
 * browsers do not get what they should.
 */
import type { RenderService } from '../api/resource.ts';
import { kinds, objectPath } from '../kube/kinds.ts';
import { isNotFound, type Rest } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';

/** A ConfigMap may have 1 MiB, and a RenderService is looked at with every pod that comes or goes. */
const KNOWN_MS = 60_000;
/** It is not ours, so nothing tells when it comes. */
const MISSING_MS = 15_000;

interface Looked {
  atMs: number;
  /** What was looked for. */
  what: string;
  problem?: string | undefined;
}

export class Shells {
  readonly #rest: Rest;
  readonly #nowMs: () => number;
  /** By uid of the RenderService. */
  readonly #looked = new Map<string, Looked>();

  constructor(rest: Rest, nowMs: () => number = () => performance.now()) {
    this.#rest = rest;
    this.#nowMs = nowMs;
  }

  /**
   * @returns what is missing, and the milliseconds until it wants to look again; nothing if all is there or could not
   * be looked for
   */
  async problem({ spec, metadata }: RenderService): Promise<{ problem: string; afterMs: number } | undefined> {
    const { uid, namespace } = metadata;
    const wanted = spec.fallback?.configMap;
    if (!wanted) {
      this.#looked.delete(uid);
      return undefined;
    }
    const what = `${wanted.name}/${wanted.key}`;
    let looked = this.#looked.get(uid);
    const ageMs = looked?.what === what ? this.#nowMs() - looked.atMs : Number.POSITIVE_INFINITY;
    if (!looked || ageMs >= (looked.problem ? MISSING_MS : KNOWN_MS)) {
      looked = { atMs: this.#nowMs(), what, problem: await this.#look(namespace, wanted) };
      this.#looked.set(uid, looked);
    }
    if (!looked.problem) return undefined;
    return { problem: looked.problem, afterMs: looked.atMs + MISSING_MS - this.#nowMs() };
  }

  /** Forgets RenderServices that are gone. */
  keepOnly(uids: Set<string>): void {
    for (const uid of this.#looked.keys()) if (!uids.has(uid)) this.#looked.delete(uid);
  }

  async #look(namespace: string, { name, key }: { name: string; key: string }): Promise<string | undefined> {
    try {
      const found = await this.#rest.request<KubeObject>('GET', objectPath(kinds.configMap, namespace, name));
      const { data, binaryData } = found as { data?: object; binaryData?: object };
      if (Object.hasOwn(data ?? {}, key) || Object.hasOwn(binaryData ?? {}, key)) return undefined;
      return `fallback: ConfigMap "${name}" has no key "${key}", so browsers get JSON`;
    } catch (error) {
      // What else may be wrong is somebody else's to tell: the pods do not wait for this.
      return isNotFound(error) ? `fallback: there is no ConfigMap "${name}", so browsers get JSON` : undefined;
    }
  }
}
