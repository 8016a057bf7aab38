/**
 * Metrics about each RenderService. They are made from what the operator has in its caches when somebody asks, so
 * nothing is kept of a RenderService that is gone, and a process that does not lead has none.
 */
import { Counter, Gauge, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';
import type { RenderServiceResource } from './api/resource.ts';
import type { ScalingFigures } from './controller/autoscaler.ts';
import { type Family, labelsOf, type Series, seriesOf } from './controller/series.ts';

/** Where the figures are. */
export interface RenderServiceSources {
  /** All RenderServices while this process leads, otherwise none. */
  list: () => RenderServiceResource[];
  /** By the uid of the RenderService. */
  revisions: () => Map<string, string>;
  scalingOf: (uid: string) => ScalingFigures | undefined;
}

/** Labels that all of them have. */
const OWN = ['namespace', 'renderservice'];

const FAMILIES: Record<Family, [labels: string[], help: string]> = {
  replicas: [['state'], 'Pods of a RenderService: wanted by its spec, ready, of the newest revision (updated).'],
  replicas_min: [[], 'spec.scaling.minReplicas; none without scaling.'],
  replicas_max: [[], 'spec.scaling.maxReplicas; none without scaling.'],
  workers: [['state'], 'Workers of a RenderService: in pods that exist (total), and up in pods that are ready.'],
  condition: [['type', 'reason'], 'Conditions of a RenderService: 1 for True, 0 for False, -1 for Unknown.'],
  rollout_phase: [['phase', 'reason'], 'Always 1: how far the canary of a RenderService is; none without one.'],
  rollout_share_ratio: [[], 'Share of the requests that a canary is to get.'],
  rollout_step: [[], 'Step of a canary, from 1; 0 before the first one.'],
  rollout_pods: [
    ['state'],
    'Pods beside and of a canary: ready, and those that have said that they know its share (applied).',
  ],
  rollout_judged: [
    ['what', 'side'],
    'What this try of a canary is judged by, so far: requests and errors, renders whose time was judged and slow ones.',
  ],
  rollout_evidence: [
    ['test'],
    'How many times as likely it is that a canary is worse as that it is not, by errors or slow renders; 100 is enough.',
  ],
  scaling_threshold_ratio: [
    ['direction'],
    'What the utilization is compared with: more pods above up, fewer below down.',
  ],
  objective_ratio: [['objective'], 'Share of the requests that is to be good, by objective.'],
  objective_latency_seconds: [['objective'], 'Time in which that share of the requests is to be answered.'],
  // `le`, although it is no histogram: so that it joins with the buckets.
  objective_latency_weight_ratio: [
    ['objective', 'le'],
    'How much of a bucket of corelane_request_duration_seconds is within the objective.',
  ],
};

/** Registers them; they are read from `sources` at each scrape. */
export function trackRenderServices(registry: Registry, { list, revisions, scalingOf }: RenderServiceSources): void {
  const overScaled = (series: (figures: ScalingFigures, labels: Record<string, string>) => Series[]) =>
    list().flatMap((resource) => {
      const figures = scalingOf(resource.metadata.uid);
      return figures ? series(figures, labelsOf(resource)) : [];
    });
  atScrape(
    new Gauge({
      name: 'corelane_scaling_utilization_ratio',
      help: 'Per-core CPU or occupancy over the window of additions, as the last decision saw it.',
      labelNames: OWN,
      registers: [registry],
    }),
    () => overScaled(({ utilization }, labels) => (utilization === undefined ? [] : [{ labels, value: utilization }])),
  );
  atScrape(
    new Counter({
      name: 'corelane_scaling_decisions_total',
      help: 'Changes of the number of pods, by direction and reason.',
      labelNames: [...OWN, 'direction', 'reason'],
      registers: [registry],
    }),
    () =>
      overScaled(({ decisions }, labels) =>
        decisions.map(({ direction, reason, count }) => ({ labels: { ...labels, direction, reason }, value: count })),
      ),
  );
  atScrape(
    new Gauge({
      name: 'corelane_renderservice_info',
      help: 'The revision that a RenderService rolls out (label corelane.dev/revision of its pods), always 1.',
      labelNames: [...OWN, 'revision'],
      registers: [registry],
    }),
    () => {
      const known = revisions();
      return list().map((resource) => {
        const revision = known.get(resource.metadata.uid) ?? '';
        return { labels: { ...labelsOf(resource), revision }, value: 1 };
      });
    },
  );
  for (const [family, [labels, help]] of Object.entries(FAMILIES) as [Family, [string[], string]][]) {
    const name = `corelane_renderservice_${family}`;
    const gauge = new Gauge({ name, help, labelNames: [...OWN, ...labels], registers: [registry] });
    atScrape(gauge, () => list().flatMap((resource) => seriesOf(resource, family)));
  }
}

/** Lets a metric give these series instead of its own: to set a thousand of them takes longer than to write them. */
function atScrape(metric: Gauge | Counter, series: () => Series[]): void {
  const get = metric.get.bind(metric);
  metric.get = async () => ({ ...(await get()), values: series() }) as MetricObjectWithValues<MetricValue<string>>;
}
