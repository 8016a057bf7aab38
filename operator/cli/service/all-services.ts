/** All services of a namespace, or of all: what `corelane top` without a name looks at. */
import type { ServiceNow } from '../../live/services.ts';
import { API_VERSION, KIND, PLURAL } from '../../src/api/names.ts';
import { Cluster } from '../cluster.ts';
import { ClusterSource } from './cluster-source.ts';
import { inTurn } from './in-turn.ts';
import { Watching } from './watching.ts';

/** Services in one look; and pods of each of these that are asked, so that a look of many ends. */
const SERVICES_MAX = 100;
const PODS_MAX = 60;
const PODS_EACH_MAX = 10;
/** Each asks several pods at a time. */
const AT_A_TIME = 4;

interface Watched {
  namespace: string;
  name: string;
  watching: Watching;
}

export class AllServices {
  readonly #cluster: Cluster;
  readonly #everywhere: boolean;
  /** By namespace and name: each knows what it has seen before. */
  #watched = new Map<string, Watched>();

  /** @throws Error when there is no kubeconfig that could be used */
  constructor({ namespace, everywhere }: { namespace?: string | undefined; everywhere: boolean }) {
    this.#cluster = new Cluster(namespace);
    this.#everywhere = everywhere;
  }

  /** What was looked at, in words. */
  get where(): string {
    return this.#everywhere ? 'all namespaces' : `namespace ${this.#cluster.namespace}`;
  }

  /** @throws Error that says what is missing, where not even a list can be had */
  async look(): Promise<{ services: ServiceNow[]; leftOut: number }> {
    const all = await this.#names();
    const names = all.slice(0, SERVICES_MAX);
    const podsMax = Math.min(PODS_EACH_MAX, Math.max(1, Math.floor(PODS_MAX / Math.max(1, names.length))));
    this.#watched = new Map(
      names.map((one) => [keyOf(one), this.#watched.get(keyOf(one)) ?? this.#watch(one, podsMax)]),
    );
    const services = await inTurn([...this.#watched.values()], AT_A_TIME, async ({ namespace, name, watching }) => ({
      ...{ namespace, name },
      // One that is gone since, or whose pods may not be listed, is no reason to show none.
      seen: await watching.look().catch((error: Error) => ({ error: error.message })),
    }));
    return { services, leftOut: all.length - names.length };
  }

  async close(): Promise<void> {
    await this.#cluster.close();
  }

  /** Those that are not ready first: of too many, they are the ones to be looked at. */
  async #names(): Promise<{ namespace: string; name: string }[]> {
    const objects = this.#everywhere
      ? await this.#cluster.listEverywhere(API_VERSION, PLURAL)
      : (await this.#cluster.list(API_VERSION, KIND, PLURAL)).map(({ value }) => value);
    return objects
      .map(({ metadata, status }) => ({
        ...(metadata as { namespace?: string; name: string }),
        isReady: isReady(status),
      }))
      .map(({ namespace = this.#cluster.namespace, name, isReady }) => ({ namespace, name, isReady }))
      .toSorted((one, other) => Number(one.isReady) - Number(other.isReady) || (keyOf(one) < keyOf(other) ? -1 : 1));
  }

  #watch({ namespace, name }: { namespace: string; name: string }, podsMax: number): Watched {
    const source = new ClusterSource(name, new Cluster(namespace, this.#cluster), podsMax);
    return { namespace, name, watching: new Watching(source) };
  }
}

function keyOf({ namespace, name }: { namespace: string; name: string }): string {
  return `${namespace}/${name}`;
}

function isReady(status: unknown): boolean {
  const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string }[] };
  return conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
}
