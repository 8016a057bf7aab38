/** Which worker `corelane profile` means; an error says what is in the way, and the way out. */
import type { V1Pod } from '@kubernetes/client-node';
import { API_VERSION, isWorkerName, KIND, LABEL_RENDER_SERVICE, LABEL_SERVING, PLURAL } from '../src/api/names.ts';
import type { Cluster } from './cluster.ts';

export interface Target {
  namespace: string;
  pod: string;
  worker: number;
}

/** What the user has said. */
export interface Wanted {
  /** Of the RenderService. */
  name: string;
  pod?: string;
  worker: number;
}

/** Names in a message; the others are counted. */
const NAMED_MAX = 5;

/** Looks at its pods: the one that is wanted, else the first by name that is ready and gets requests. */
export async function findTarget(cluster: Cluster, { name, pod, worker }: Wanted): Promise<Target> {
  const { namespace } = cluster;
  const pods = await podsOf(cluster, name);
  const found =
    pod === undefined
      ? pods.find((one) => isReady(one) && isServing(one))
      : pods.find(({ metadata }) => metadata?.name === pod);
  const names = named(pods.map(({ metadata }) => metadata?.name ?? ''));
  if (!found && pod === undefined)
    throw new Error(
      `no pod of ${KIND} ${namespace}/${name} is ready, of ${names}; see kubectl describe ${KIND.toLowerCase()} ${name}`,
    );
  if (!found) throw new Error(`${KIND} ${namespace}/${name} has no pod ${pod}; it has ${names}`);
  const chosen = found.metadata?.name as string;
  const phase = found.status?.phase;
  if (phase !== 'Running') throw new Error(`pod ${chosen} is ${phase}, not Running`);
  const workers = found.spec?.containers.filter((container) => isWorkerName(container.name)).length ?? 0;
  if (worker >= workers)
    throw new Error(
      workers === 1
        ? `pod ${chosen} has only worker-0, and no worker-${worker}`
        : `pod ${chosen} has workers 0 to ${workers - 1}, and no worker-${worker}`,
    );
  return { namespace, pod: chosen, worker };
}

/** The pods of a RenderService, by name. */
export async function podsOf(cluster: Cluster, name: string): Promise<V1Pod[]> {
  const labelSelector = `${LABEL_RENDER_SERVICE}=${name}`;
  const pods = await cluster.list('v1', 'Pod', 'pods', { labelSelector });
  if (pods.length === 0) throw new Error(await whyNoPods(cluster, name));
  return pods.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ value }) => value as V1Pod);
}

/** Without the right to look it stays with what is known. */
async function whyNoPods(cluster: Cluster, name: string): Promise<string> {
  const { namespace } = cluster;
  const all = await cluster.list(API_VERSION, KIND, PLURAL).catch(() => undefined);
  if (!all) return `${KIND} ${namespace}/${name} has no pods, or does not exist`;
  const names = all.map((one) => one.name);
  if (names.includes(name)) return `${KIND} ${namespace}/${name} has no pods`;
  const others = names.length > 0 ? `there are ${named(names)}` : 'nor any other';
  return `there is no ${KIND} ${name} in namespace ${namespace}; ${others}`;
}

/** Whether requests come to a pod: to one of a revision that rests none do, and what it has free is nobody's. */
export function isServing({ metadata }: V1Pod): boolean {
  return metadata?.labels?.[LABEL_SERVING] !== 'false';
}

function isReady({ metadata, status }: V1Pod): boolean {
  const isTrue = status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True');
  return isTrue === true && !metadata?.deletionTimestamp;
}

function named(names: string[]): string {
  const rest = names.length - NAMED_MAX;
  return rest > 0 ? `${names.slice(0, NAMED_MAX).join(', ')} and ${rest} more` : names.join(', ');
}
