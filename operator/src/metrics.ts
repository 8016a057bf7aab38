/**
 * Metrics of the operator, in Prometheus' conventions: base units, `_total` for counters. docs/metrics.md lists them.
 * Those about each RenderService are in renderservice-metrics.ts.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** All metrics of one operator process of this version. */
export function createMetrics(version: string) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const info = new Gauge({
    name: 'corelane_operator_info',
    help: 'Version of the operator, always 1.',
    labelNames: ['version'],
    registers,
  });
  info.set({ version }, 1);
  return {
    registry,
    reconcileSeconds: new Histogram({
      name: 'corelane_operator_reconcile_duration_seconds',
      help: 'Duration of one reconcile of a RenderService, by result.',
      labelNames: ['result'],
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    }),
    /** Registers the gauge of the queue, which is read at each scrape. */
    trackQueueDepth: (depth: () => number) =>
      new Gauge({
        name: 'corelane_operator_queue_depth',
        help: 'RenderServices that wait for a reconcile or are in one.',
        registers,
        collect() {
          this.set(depth());
        },
      }),
    /** Registers the gauges of the staged data plane, which are read at each scrape. */
    trackDataPlane: (figures: () => { waiting: number; held: number }) => {
      const gauge = (name: string, help: string, value: () => number) =>
        new Gauge({
          name,
          help,
          registers,
          collect() {
            this.set(value());
          },
        });
      gauge(
        'corelane_data_plane_waiting',
        'RenderServices whose pods are those of another version of the operator, and that wait for their turn.',
        () => figures().waiting,
      );
      gauge(
        'corelane_data_plane_held',
        '1 while no RenderService gets its turn because one did not become healthy.',
        () => figures().held,
      );
    },
    requestSeconds: new Histogram({
      name: 'corelane_operator_api_request_duration_seconds',
      help: 'Duration of calls to the API server, by method and status code (0: no answer).',
      labelNames: ['method', 'code'],
      buckets: [0.002, 0.01, 0.05, 0.2, 1, 5, 15],
      registers,
    }),
    writes: new Counter({
      name: 'corelane_operator_writes_total',
      help: 'Objects written, by kind and reason. A steady state writes nothing.',
      labelNames: ['what'],
      registers,
    }),
    watchErrors: new Counter({
      name: 'corelane_operator_watch_errors_total',
      help: 'Lists and watches that failed and were begun again, by kind.',
      labelNames: ['kind'],
      registers,
    }),
    podSamples: new Counter({
      name: 'corelane_operator_pod_samples_total',
      help: 'Reads of the metrics of a pod (port 8999), by result.',
      labelNames: ['result'],
      registers,
    }),
    eventsDropped: new Counter({
      name: 'corelane_operator_events_dropped_total',
      help: 'Events that were only logged, because there had been too many.',
      registers,
    }),
    crdMissingFields: new Gauge({
      name: 'corelane_operator_crd_missing_fields',
      help: "Fields that the operator knows and the cluster's CustomResourceDefinition does not.",
      registers,
    }),
    leader: new Gauge({
      name: 'corelane_operator_leader',
      help: '1 while this process is the leader.',
      registers,
    }),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
