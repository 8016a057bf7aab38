/**
 * Metrics of the operator, in Prometheus' conventions: base units, `_total` for counters. docs/metrics.md lists them.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** All metrics of one operator process. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
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
    scalingUtilization: new Gauge({
      name: 'corelane_scaling_utilization_ratio',
      help: 'Per-core CPU or occupancy over the window of additions, as the last decision saw it.',
      labelNames: ['namespace', 'name'],
      registers,
    }),
    scalingDecisions: new Counter({
      name: 'corelane_scaling_decisions_total',
      help: 'Changes of the number of pods, by direction and reason.',
      labelNames: ['namespace', 'name', 'direction', 'reason'],
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
