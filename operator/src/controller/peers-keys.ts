/**
 * Sees to it that each RenderService has a Secret with the key of its peers. The operator may create Secrets and
 * nothing else, so it asks by creating: 409 says that there is one. Pods without a key work alone, so nothing else
 * waits for it.
 */
import { randomBytes } from 'node:crypto';
import { PEERS_KEY } from '../api/names.ts';
import type { RenderService, RenderServiceStatus } from '../api/resource.ts';
import { collectionPath, kinds } from '../kube/kinds.ts';
import { ApiError, type Rest } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import { peersKeySecret } from '../plan/peers-key.ts';

const KEY_BYTES = 32;
/** Once in each resync, whose period is 10 min. */
const RECHECK_MS = 540_000;
/** At most this often for pods that are new, however many come. */
const NEW_PODS_MS = 10_000;
/** After a failure. */
const RETRY_MS = 60_000;
/** The same request would have the same answer: its rights, a quota, admission, or the namespace forbid it. */
const REFUSALS = [400, 403, 404, 413, 422];
/** Of what the API server says: admission may say more than anybody reads. */
const MESSAGE_LENGTH_MAX = 500;

interface Asked {
  /** When the Secret was last asked for, and whether that failed. */
  atMs: number;
  failed: boolean;
  /** A sentence, where the API server refuses the Secret; that it does not answer passes. */
  problem?: string | undefined;
  /** Pods that were there then. */
  pods: Set<string | undefined>;
}

export interface PeersKeysOptions {
  rest: Rest;
  onCreated: (key: string) => void;
  /** Called for the first of several failures in a row; `message` never has the key in it. */
  onFailed: (renderService: RenderService, message: string) => Promise<void>;
  nowMs?: () => number;
}

export class PeersKeys {
  readonly #options: PeersKeysOptions;
  readonly #nowMs: () => number;
  /** By uid of the RenderService. */
  readonly #asked = new Map<string, Asked>();

  constructor(options: PeersKeysOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /**
   * Creates the Secret if there may be none: the first time in this process, every ten minutes, and when there are new
   * pods, which get their files when they start.
   * @returns milliseconds until it wants to be called again, if it does
   */
  async ensure(renderService: RenderService, pods: KubeObject[]): Promise<number | undefined> {
    const { uid } = renderService.metadata;
    const asked = this.#asked.get(uid);
    const waitMs = asked ? this.#waitMs(asked, pods) : 0;
    if (waitMs > 0) return Number.isFinite(waitMs) ? waitMs : undefined;
    const result = await this.#create(renderService, asked?.failed ?? false);
    const seen = new Set(pods.map(({ metadata }) => metadata.uid));
    this.#asked.set(uid, { atMs: this.#nowMs(), ...result, pods: seen });
    return result.failed ? RETRY_MS : undefined;
  }

  /** Why the Secret cannot be created, for the status of the RenderService; undefined as far as it is known. */
  problemOf(uid: string): string | undefined {
    return this.#asked.get(uid)?.problem;
  }

  /** Forgets RenderServices that are gone. */
  keepOnly(uids: Set<string>): void {
    for (const uid of this.#asked.keys()) if (!uids.has(uid)) this.#asked.delete(uid);
  }

  #waitMs({ atMs, failed, pods: seen }: Asked, pods: KubeObject[]): number {
    const sinceMs = this.#nowMs() - atMs;
    if (sinceMs >= RECHECK_MS) return 0;
    if (failed) return RETRY_MS - sinceMs;
    return pods.some(({ metadata }) => !seen.has(metadata.uid)) ? NEW_PODS_MS - sinceMs : Number.POSITIVE_INFINITY;
  }

  /** `failed`, unless there is a Secret now. */
  async #create(renderService: RenderService, hasFailed: boolean): Promise<Pick<Asked, 'failed' | 'problem'>> {
    const { rest, onCreated, onFailed } = this.#options;
    const { namespace, name } = renderService.metadata;
    const key = randomBytes(KEY_BYTES).toString('base64');
    const body = peersKeySecret(renderService, key);
    try {
      await rest.request('POST', collectionPath(kinds.secret, namespace), { body });
      onCreated(`${namespace}/${name}`);
      return { failed: false };
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) return { failed: false };
      const data = (body.data as Record<string, string>)[PEERS_KEY] as string;
      const message = (error as Error).message.replaceAll(data, '...').replaceAll(key, '...');
      if (!hasFailed) await onFailed(renderService, message);
      const isRefused = error instanceof ApiError && REFUSALS.includes(error.status);
      return { failed: true, problem: isRefused ? noPeersKey(message) : undefined };
    }
  }
}

/** The sentence in the Event and in the condition Ready. */
export function noPeersKey(message: string): string {
  return `pods work alone, because the Secret with their key cannot be created: ${message.slice(0, MESSAGE_LENGTH_MAX)}`;
}

/** Whether the status says that there is no Secret: a restart of the operator is no reason for another Event. */
export function tellsNoPeersKey(status: RenderServiceStatus | undefined, message: string): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.message.includes(noPeersKey(message)) === true;
}
