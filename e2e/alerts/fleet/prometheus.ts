/** Debian's Prometheus in a container, beside the pods that it scrapes once a second. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { POD_SERIES } from '../../../operator/gen/alerts/scraped.ts';
import { PORTS } from '../../../operator/src/api/names.ts';
import { docker, engine, start } from '../../harness/engine/docker.ts';
import { until } from '../../harness/engine/pod.ts';
import { prometheusImage } from '../promtool.ts';
import { squeezedGroups } from './squeeze.ts';

export interface Target {
  pod: string;
  address: string;
  revision?: string;
  /** shop/storefront unless given. */
  service?: { namespace: string; renderservice: string };
}

/** A series of an answer, with its values over time; NaN among them is left out. */
export interface Series {
  labels: Record<string, string>;
  points: [atS: number, value: number][];
}

/** A firing alert: its name, labels and annotations. */
export interface Firing {
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

function configuration(pods: Target[], operator: string) {
  const shop = { namespace: 'shop', renderservice: 'storefront' };
  return {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ['/etc/corelane/rules.yaml'],
    scrape_configs: [
      {
        job_name: 'corelane-renderservices',
        metrics_path: '/corelane/metrics',
        params: { detail: ['1'] },
        static_configs: pods.map(({ pod, address, revision = 'r1', service = shop }) => ({
          targets: [`${address}:${PORTS.stats}`],
          labels: { ...service, pod, revision },
        })),
        metric_relabel_configs: [{ source_labels: ['__name__'], regex: POD_SERIES, action: 'keep' }],
      },
      {
        job_name: 'corelane',
        honor_labels: true,
        static_configs: [{ targets: [`${operator}:8080`], labels: { namespace: 'corelane', pod: 'operator' } }],
      },
    ],
  };
}

export class Prometheus {
  readonly container: string;
  readonly #url: string;
  readonly #folder: string;
  readonly #operator: string;

  private constructor(container: string, url: string, folder: string, operator: string) {
    this.container = container;
    this.#url = url;
    this.#folder = folder;
    this.#operator = operator;
  }

  /** With nothing in it: what was before is not there. */
  static async start(network: string, pods: Target[], operator: string, times: number): Promise<Prometheus> {
    const image = await prometheusImage();
    const folder = engine.folder();
    chmodSync(folder, 0o755);
    writeFileSync(join(folder, 'prometheus.yaml'), stringify(configuration(pods, operator)));
    writeFileSync(join(folder, 'rules.yaml'), stringify({ groups: squeezedGroups(times) }));
    const container = await start(
      ...['--network', network, '--volume', `${folder}:/etc/corelane:ro`, '--publish', '127.0.0.1::9090'],
      ...['--tmpfs', '/data:mode=1777', image, 'prometheus'],
      ...['--config.file=/etc/corelane/prometheus.yaml', '--storage.tsdb.path=/data'],
      ...['--web.enable-lifecycle', '--web.console.libraries=/tmp', '--web.console.templates=/tmp'],
    );
    const address = (await docker('port', container, '9090')).split('\n')[0];
    const prometheus = new Prometheus(container, `http://${address}`, folder, operator);
    await until('Prometheus is ready', async () => {
      const answer = await fetch(`${prometheus.#url}/-/ready`).catch(() => undefined);
      return answer?.ok;
    });
    return prometheus;
  }

  async #ask<T>(path: string): Promise<T> {
    const answer = await fetch(`${this.#url}/api/v1/${path}`);
    if (!answer.ok) throw new Error(`Prometheus says ${answer.status} to ${path}: ${await answer.text()}`);
    return ((await answer.json()) as { data: T }).data;
  }

  /** Scrapes these pods from now on. */
  async watch(pods: Target[]): Promise<void> {
    writeFileSync(join(this.#folder, 'prometheus.yaml'), stringify(configuration(pods, this.#operator)));
    const answer = await fetch(`${this.#url}/-/reload`, { method: 'POST' });
    if (!answer.ok) throw new Error(`Prometheus says ${answer.status} to its configuration: ${await answer.text()}`);
  }

  /** What a query says from one time to another, in steps of a second. */
  async range(text: string, fromS: number, toS: number): Promise<Series[]> {
    const parameters = new URLSearchParams({ query: text, start: String(fromS), end: String(toS), step: '1' });
    const { result } = await this.#ask<{ result: { metric: Record<string, string>; values: [number, string][] }[] }>(
      `query_range?${parameters}`,
    );
    return result.map(({ metric, values }) => ({
      labels: metric,
      points: values
        .map(([atS, value]): [number, number] => [atS, Number(value)])
        .filter(([, value]) => Number.isFinite(value)),
    }));
  }

  /** Values that a label has in the series that are chosen. */
  labelValues(label: string, selector: string): Promise<string[]> {
    return this.#ask(`label/${label}/values?${new URLSearchParams({ 'match[]': selector })}`);
  }

  /** Values of a query, as they are now. */
  async query(text: string): Promise<number[]> {
    const { result } = await this.#ask<{ result: { value: [number, string] }[] }>(
      `query?query=${encodeURIComponent(text)}`,
    );
    return result.map(({ value }) => Number(value[1]));
  }

  /** Names of the series that a query finds. */
  async names(text: string): Promise<string[]> {
    const { result } = await this.#ask<{ result: { metric: { __name__: string } }[] }>(
      `query?query=${encodeURIComponent(text)}`,
    );
    return [...new Set(result.map(({ metric }) => metric.__name__))].sort();
  }

  /** Alerts that fire now. */
  async firing(): Promise<Firing[]> {
    const { alerts } = await this.#ask<{ alerts: (Firing & { state: string })[] }>('alerts');
    return alerts.filter(({ state }) => state === 'firing');
  }

  /** Names of the alerts that have fired at any moment of so many last seconds. */
  async fired(seconds: number): Promise<string[]> {
    const query = `count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[${seconds}s]))`;
    const { result } = await this.#ask<{ result: { metric: { alertname: string } }[] }>(
      `query?query=${encodeURIComponent(query)}`,
    );
    return result.map(({ metric }) => metric.alertname).sort();
  }

  /** Rules that could not be evaluated, with why. */
  async broken(): Promise<string[]> {
    const { groups } = await this.#ask<{ groups: { rules: { name: string; lastError?: string }[] }[] }>('rules');
    return groups.flatMap(({ rules }) =>
      rules.filter(({ lastError }) => lastError).map(({ name, lastError }) => `${name}: ${lastError}`),
    );
  }

  async stop(): Promise<void> {
    await docker('rm', '--force', '--volumes', this.container);
  }
}
