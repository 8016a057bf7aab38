/**
 * All metrics of the operator's own, for docs/metrics.md; a test demands that the process has these and no others.
 * process_* and nodejs_* are prom-client's.
 */
import type { MetricRow } from './row.ts';

/** What everything about one RenderService has. Targets of its pods have the same two. */
const OWN = ['namespace', 'renderservice'] as const;

export const OPERATOR_METRICS: readonly MetricRow[] = [
  { name: 'corelane_operator_leader', type: 'gauge', labels: [], meaning: '1 in the process that leads' },
  {
    name: 'corelane_operator_reconcile_duration_seconds',
    type: 'histogram',
    labels: ['result'],
    meaning: 'time of a reconcile of a RenderService; result is done, stalled or error',
  },
  {
    name: 'corelane_operator_queue_depth',
    type: 'gauge',
    labels: [],
    meaning: 'RenderServices that wait or are being worked on',
  },
  {
    name: 'corelane_operator_writes_total',
    type: 'counter',
    labels: ['what'],
    meaning: 'objects written, by kind and reason; does not grow in a steady state',
  },
  {
    name: 'corelane_operator_api_request_duration_seconds',
    type: 'histogram',
    labels: ['method', 'code'],
    meaning: 'calls to the API server; code 0 is no answer',
  },
  {
    name: 'corelane_operator_watch_errors_total',
    type: 'counter',
    labels: ['kind'],
    meaning: 'lists and watches that failed and were begun again',
  },
  {
    name: 'corelane_operator_pod_samples_total',
    type: 'counter',
    labels: ['result'],
    meaning: "reads of a pod's metrics ([ADR 7](adr/0007-the-operator-reads-its-pods.md)); result is ok or error",
  },
  {
    name: 'corelane_operator_events_dropped_total',
    type: 'counter',
    labels: [],
    meaning:
      'events that were only logged: a RenderService has 25, then one in 30 s; all together 200, then one a second',
  },
  {
    name: 'corelane_operator_crd_missing_fields',
    type: 'gauge',
    labels: [],
    meaning:
      "fields that the operator knows and the cluster's CustomResourceDefinition does not: the API server drops them ([versions.md](versions.md))",
  },
  {
    name: 'corelane_data_plane_waiting',
    type: 'gauge',
    labels: [],
    meaning:
      'RenderServices whose pods are those of another version of the operator, and that wait for their turn ([upgrades.md](upgrades.md))',
  },
  {
    name: 'corelane_data_plane_held',
    type: 'gauge',
    labels: [],
    meaning:
      '1 while nobody gets a turn because a RenderService did not become healthy after its own; the condition `DataPlaneCurrent` has the reason Failed there, and Held on the others',
  },
  {
    name: 'corelane_scaling_utilization_ratio',
    type: 'gauge',
    labels: OWN,
    meaning: 'per-core CPU or occupancy that the last look at a RenderService with `scaling` saw',
  },
  {
    name: 'corelane_scaling_decisions_total',
    type: 'counter',
    labels: [...OWN, 'direction', 'reason'],
    meaning: 'changes of the number of pods, since this process leads',
  },
  {
    name: 'corelane_renderservice_rollout_phase',
    type: 'gauge',
    labels: [...OWN, 'phase', 'reason'],
    meaning: 'always 1; how far a canary is, and what it waits for. None without one ([canary.md](canary.md))',
  },
  {
    name: 'corelane_renderservice_rollout_share_ratio',
    type: 'gauge',
    labels: OWN,
    meaning: 'share of the requests that a canary is to get',
  },
  {
    name: 'corelane_renderservice_rollout_step',
    type: 'gauge',
    labels: OWN,
    meaning: 'step of a canary, from 1; 0 before the first one',
  },
  {
    name: 'corelane_renderservice_rollout_pods',
    type: 'gauge',
    labels: [...OWN, 'state'],
    meaning:
      'while there is a canary: pods that are ready, and those of them that have said that they know its share (applied)',
  },
  {
    name: 'corelane_renderservice_rollout_judged',
    type: 'gauge',
    labels: [...OWN, 'what', 'side'],
    meaning:
      'what this try of a canary is judged by, so far: `requests` and `errors` of them, `renders` whose time was judged and `slow` ones, of `canary` and `stable` ([canary.md](canary.md#what-it-looks-at))',
  },
  {
    name: 'corelane_renderservice_rollout_evidence',
    type: 'gauge',
    labels: [...OWN, 'test'],
    meaning:
      'how many times as likely it is that a canary is worse as that it is not, by `errors` or `slow`; at 100 it is over',
  },
  { name: 'corelane_operator_info', type: 'gauge', labels: ['version'], meaning: 'always 1' },
  {
    name: 'corelane_renderservice_info',
    type: 'gauge',
    labels: [...OWN, 'revision'],
    meaning:
      'always 1; the revision that is being rolled out or has been: the label `corelane.dev/revision` of its pods, empty before there is one',
  },
  {
    name: 'corelane_renderservice_replicas',
    type: 'gauge',
    labels: [...OWN, 'state'],
    meaning: 'pods: wanted by the spec, ready, and of that revision (updated)',
  },
  {
    name: 'corelane_renderservice_replicas_min',
    type: 'gauge',
    labels: OWN,
    meaning: '`scaling.minReplicas`; none without `scaling`',
  },
  {
    name: 'corelane_renderservice_replicas_max',
    type: 'gauge',
    labels: OWN,
    meaning: '`scaling.maxReplicas`; none without `scaling`',
  },
  {
    name: 'corelane_renderservice_workers',
    type: 'gauge',
    labels: [...OWN, 'state'],
    meaning: 'workers: in pods that exist (total), and up in pods that are ready (ready)',
  },
  {
    name: 'corelane_renderservice_condition',
    type: 'gauge',
    labels: [...OWN, 'type', 'reason'],
    meaning: "each condition of the RenderService's status, one series each: 1 is True, 0 False, -1 Unknown",
  },
  {
    name: 'corelane_renderservice_scaling_threshold_ratio',
    type: 'gauge',
    labels: [...OWN, 'direction'],
    meaning:
      'what `corelane_scaling_utilization_ratio` is compared with: pods are added above up and removed below down; none without `scaling`',
  },
  {
    name: 'corelane_renderservice_objective_ratio',
    type: 'gauge',
    labels: [...OWN, 'objective'],
    meaning:
      '`spec.objectives`: share of the requests that is to be good; objective is availability, p50, p90, p95 or p99. The error budget is 1 less this',
  },
  {
    name: 'corelane_renderservice_objective_latency_seconds',
    type: 'gauge',
    labels: [...OWN, 'objective'],
    meaning: 'time in which that share of the requests is to have the head of its response',
  },
  {
    name: 'corelane_renderservice_objective_latency_weight_ratio',
    type: 'gauge',
    labels: [...OWN, 'objective', 'le'],
    meaning:
      'how much of each bucket of `corelane_request_duration_seconds` counts: the sum of the products over all requests is the share within that time. One bucket with 1, or the two around a time between them. `le` of whole seconds is there as Prometheus 2 keeps it and as Prometheus 3 does (`1`, `1.0`)',
  },
];
