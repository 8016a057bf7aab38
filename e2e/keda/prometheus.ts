/** Debian's Prometheus as docs/metrics.md sets it up, at the address that examples/autoscaling/keda.yaml has. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { PORTS } from '../../operator/src/api/names.ts';
import { prometheusImage } from '../alerts/promtool.ts';
import { docker, engine, start } from '../harness/engine/docker.ts';
import type { Fleet } from '../harness/engine/fleet.ts';

/** Host of `serverAddress`. */
const HOST = 'prometheus.monitoring';

/** Namespace of the same pods with all that their workers know. */
export const DETAILED = 'detailed';

/** The pods as targets of `renderservice`, in namespace default. */
async function configuration(fleet: Fleet, renderservice: string) {
  const addresses = await Promise.all(fleet.pods.map((pod) => pod.address()));
  const job = (job_name: string, namespace: string, params = {}) => ({
    ...{ job_name, params, metrics_path: '/corelane/metrics' },
    static_configs: addresses.map((address, index) => ({
      targets: [`${address}:${PORTS.stats}`],
      labels: { namespace, renderservice, pod: `${renderservice}-${index}` },
    })),
  });
  return {
    global: { scrape_interval: '1s', scrape_timeout: '1s' },
    scrape_configs: [job('corelane-pods', 'default'), job('detailed', DETAILED, { detail: ['1'] })],
  };
}

export class Prometheus {
  readonly container: string;
  readonly #file: string;

  private constructor(container: string, file: string) {
    this.container = container;
    this.#file = file;
  }

  /** In the network of the pods, and in that of KEDA. */
  static async start(fleet: Fleet, renderservice: string, network: string): Promise<Prometheus> {
    const folder = engine.folder();
    chmodSync(folder, 0o755);
    const file = join(folder, 'prometheus.yaml');
    writeFileSync(file, stringify(await configuration(fleet, renderservice)));
    const container = await start(
      ...['--network', fleet.network, '--volume', `${folder}:/etc/corelane:ro`, '--tmpfs', '/data:mode=1777'],
      ...[await prometheusImage(), 'prometheus', '--config.file=/etc/corelane/prometheus.yaml'],
      ...['--storage.tsdb.path=/data', '--web.console.libraries=/tmp', '--web.console.templates=/tmp'],
    );
    await docker('network', 'connect', '--alias', HOST, network, container);
    return new Prometheus(container, file);
  }

  /** Value of a query that has one. */
  async value(query: string): Promise<number> {
    const url = 'http://localhost:9090';
    const answer = await docker('exec', this.container, 'promtool', 'query', 'instant', '-o', 'json', url, query);
    const [only, ...more] = JSON.parse(answer) as { value: [number, string] }[];
    if (!only || more.length > 0) throw new Error(`not one value of ${query}: ${answer}`);
    return Number(only.value[1]);
  }

  /** From now on it knows no pod. */
  async forgetPods(): Promise<void> {
    writeFileSync(this.#file, stringify({ global: { scrape_interval: '1s' } }));
    await docker('kill', '--signal', 'HUP', this.container);
  }

  async stop(): Promise<void> {
    await docker('rm', '--force', '--volumes', this.container);
  }
}
