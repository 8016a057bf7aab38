/** The containers of the pods that `corelane run` has on this machine, whichever process has started them. */
import { isWorkerName, NGINX_CONTAINER, PORTS } from '../src/api/names.ts';
import { type Engine, isStale } from './engine.ts';

const LABEL = 'corelane.part';
/** The container that holds the pod's network, and its ports. */
export const HOLDER = 'network';

/** Options of the engine for a container of a pod. */
export function partLabel(pod: string, name: string): string[] {
  return ['--label', `${LABEL}=${pod}/${name}`];
}

export interface PodParts {
  /** `storefront-1`. */
  name: string;
  /** Of this machine, which leads to port 8999. */
  statsPort: number;
  nginx: string;
  /** Containers by name: worker-0, worker-1, ... */
  workers: Map<string, string>;
}

/** Pods whose containers run, by name; those that a killed run has left behind are none. */
export async function podParts(engine: Engine): Promise<PodParts[]> {
  const format = `{{.ID}}\t{{.Label "${engine.label}"}}\t{{.Label "${LABEL}"}}\t{{.Ports}}`;
  const lines = (await engine.run('ps', '--filter', `label=${LABEL}`, '--format', format)).split('\n');
  const pods = new Map<string, PodParts>();
  for (const line of lines) {
    const [id = '', owner = '', part = '', ports = ''] = line.split('\t');
    const [name = '', what = ''] = part.split('/');
    if (id === '' || isStale(owner)) continue;
    const key = `${owner} ${name}`;
    const pod = pods.get(key) ?? { name, statsPort: 0, nginx: '', workers: new Map() };
    pods.set(key, pod);
    const [, port] = new RegExp(`:([0-9]+)->${PORTS.stats}/tcp`).exec(ports) ?? [];
    if (what === HOLDER) pod.statsPort = Number(port ?? 0);
    if (what === NGINX_CONTAINER) pod.nginx = id;
    if (isWorkerName(what)) pod.workers.set(what, id);
  }
  return [...pods.values()]
    .filter(({ statsPort }) => statsPort > 0)
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
}
