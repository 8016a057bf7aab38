/** Which worker `corelane profile` means; an error says what is in the way, and the way out. */
import { ApiException, CoreV1Api, CustomObjectsApi, KubeConfig, type V1Pod } from '@kubernetes/client-node';
import { GROUP, isWorkerName, KIND, LABEL_RENDER_SERVICE, PLURAL, VERSION } from '../src/api/names.ts';

export interface Target {
  namespace: string;
  pod: string;
  worker: number;
}

/** What the user has said. */
export interface Wanted {
  namespace: string;
  /** Of the RenderService. */
  name: string;
  pod?: string;
  worker: number;
}

/** Names in a message; the others are counted. */
const NAMED_MAX = 5;

/** The user's kubeconfig, read into `config`. */
export function userKubeConfig<T extends KubeConfig = KubeConfig>(config = new KubeConfig() as T): T {
  try {
    config.loadFromDefault();
  } catch (error) {
    throw new Error(`the kubeconfig cannot be read: ${(error as Error).message}`);
  }
  // What the library makes up where there is none.
  if (config.getCurrentCluster()?.server === 'http://localhost:8080')
    throw new Error('there is no kubeconfig: set KUBECONFIG, or make ~/.kube/config');
  if (!config.getCurrentCluster()) throw new Error('the current context of the kubeconfig names no cluster');
  return config;
}

/** Looks at the RenderService's pods: the one that is wanted, else the first by name that is ready. */
export async function findTarget(config: KubeConfig, { namespace, name, pod, worker }: Wanted): Promise<Target> {
  const pods = await podsOf(config, namespace, name);
  const found = pod === undefined ? pods.find(isReady) : pods.find(({ metadata }) => metadata?.name === pod);
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

async function podsOf(config: KubeConfig, namespace: string, name: string): Promise<V1Pod[]> {
  const labelSelector = `${LABEL_RENDER_SERVICE}=${name}`;
  try {
    const { items } = await config.makeApiClient(CoreV1Api).listNamespacedPod({ namespace, labelSelector });
    if (items.length > 0) return items.sort((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1));
  } catch (error) {
    throw plain(error, 'the pods cannot be listed');
  }
  throw new Error(await whyNoPods(config, namespace, name));
}

/** Without the right to look it stays with what is known. */
async function whyNoPods(config: KubeConfig, namespace: string, name: string): Promise<string> {
  const api = config.makeApiClient(CustomObjectsApi);
  try {
    const all = await api.listNamespacedCustomObject({ group: GROUP, version: VERSION, namespace, plural: PLURAL });
    const names = (all.items as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name);
    if (names.includes(name)) return `${KIND} ${namespace}/${name} has no pods`;
    const others = names.length > 0 ? `there are ${named(names)}` : 'nor any other';
    return `there is no ${KIND} ${name} in namespace ${namespace}; ${others}`;
  } catch {
    return `${KIND} ${namespace}/${name} has no pods, or does not exist`;
  }
}

function isReady({ metadata, status }: V1Pod): boolean {
  const isTrue = status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True');
  return isTrue === true && !metadata?.deletionTimestamp;
}

function named(names: string[]): string {
  const rest = names.length - NAMED_MAX;
  return rest > 0 ? `${names.slice(0, NAMED_MAX).join(', ')} and ${rest} more` : names.join(', ');
}

/** The API server's own words instead of the whole answer. */
function plain(error: unknown, what: string): Error {
  const { message, cause } = error as Error;
  if (!(error instanceof ApiException)) return new Error(`${what}: ${cause ? `${message}: ${cause}` : message}`);
  let said = String(error.body);
  try {
    said = JSON.parse(said).message ?? said;
  } catch {
    // No JSON: a proxy in between, say.
  }
  return new Error(`${what}: ${error.code} ${said.slice(0, 500)}`);
}
