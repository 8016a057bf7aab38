/** Series that are recorded, by RenderService or by revision of one. */
import { type Group, promql, type Recording, SERVICE } from './rule.ts';

const REVISION = `${SERVICE}, revision`;

/**
 * Windows of the alerts on error budgets. Those beyond 5 minutes are means of what was recorded every time, so a window
 * of three days reads one series of a RenderService, and not all series of all its pods for three days.
 */
const WINDOWS = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'] as const;
export type Window = (typeof WINDOWS)[number];

/** Share of the requests that were answered 5xx; none where there were none. */
export const FAILED = (window: Window) => `renderservice:corelane_requests_failed:ratio_rate${window}`;
/** Share of the requests that took longer than an objective, by objective. */
export const SLOW = (window: Window) => `renderservice:corelane_requests_slow:ratio_rate${window}`;
/** Mean share of the workers that had a request. */
export const BUSY = 'renderservice:corelane_workers_busy:ratio_avg5m';
/** Share of the renders that waited for a worker for longer than 100 ms. */
export const WAITED = 'renderservice:corelane_requests_waited:ratio_rate5m';
/** Requests in a second. */
const REQUESTS = 'renderservice:corelane_requests:rate5m';

/** Requests in a second that were answered 5xx. */
export const FAILED_RATE = 'renderservice:corelane_requests_failed:rate5m';
/** Requests in a second that took longer than an objective, by objective. */
export const SLOW_RATE = 'renderservice:corelane_requests_slow:rate5m';
const TIMED_RATE = 'renderservice:corelane_requests_timed:rate5m';

/** Of a series that is recorded. */
export const mean = (series: string, window: Window) =>
  window === '5m' ? series : `avg_over_time(${series}[${window}])`;

/** The p-th quantile of a histogram of the pods. */
function quantile(q: number, histogram: string, by: string): string {
  return `histogram_quantile(${q}, sum by (${by}, le) (rate(${histogram}_bucket[5m])))`;
}

const traffic: Recording[] = [
  { record: REQUESTS, expr: `sum by (${SERVICE}) (rate(corelane_requests_total[5m]))` },
  { record: FAILED_RATE, expr: `sum by (${SERVICE}) (rate(corelane_requests_total{code="5xx"}[5m]))` },
  {
    record: TIMED_RATE,
    expr: `sum by (${SERVICE}) (rate(corelane_request_duration_seconds_count[5m]))`,
  },
  {
    // The operator says how much of each bucket is within the objective: docs/objectives.md.
    record: SLOW_RATE,
    expr: promql`
      max by (${SERVICE}, objective) (corelane_renderservice_objective_latency_seconds) * 0
        + on (${SERVICE}) group_left () ${TIMED_RATE}
        - on (${SERVICE}, objective) sum by (${SERVICE}, objective) (
            max by (${SERVICE}, objective, le) (corelane_renderservice_objective_latency_weight_ratio)
            * on (${SERVICE}, le) group_left ()
            sum by (${SERVICE}, le) (rate(corelane_request_duration_seconds_bucket[5m]))
          )`,
  },
];

const ratios: Recording[] = [
  ...WINDOWS.map((window) => ({
    record: FAILED(window),
    expr: `${mean(FAILED_RATE, window)} / (${mean(REQUESTS, window)} > 0)`,
  })),
  ...WINDOWS.map((window) => ({
    record: SLOW(window),
    expr: `${mean(SLOW_RATE, window)} / on (${SERVICE}) group_left () (${mean(TIMED_RATE, window)} > 0)`,
  })),
];

const fleet: Recording[] = [
  {
    record: BUSY,
    expr: promql`
      sum by (${SERVICE}) (avg_over_time(corelane_workers{state="busy"}[5m]))
      / (sum by (${SERVICE}) (avg_over_time(corelane_workers{state="up"}[5m])) > 0)`,
  },
  {
    record: WAITED,
    expr: promql`
      1 - sum by (${SERVICE}) (rate(corelane_request_queue_duration_seconds_bucket{le="0.1"}[5m]))
        / (sum by (${SERVICE}) (rate(corelane_request_queue_duration_seconds_count[5m])) > 0)`,
  },
  {
    record: 'renderservice:corelane_request_duration_seconds:p99_5m',
    expr: quantile(0.99, 'corelane_request_duration_seconds', SERVICE),
  },
  {
    record: 'renderservice:corelane_request_queue_duration_seconds:p99_5m',
    expr: quantile(0.99, 'corelane_request_queue_duration_seconds', SERVICE),
  },
];

/** So that two revisions can be held against each other in a rollout. */
const revisions: Recording[] = [
  { record: 'revision:corelane_requests:rate5m', expr: `sum by (${REVISION}) (rate(corelane_requests_total[5m]))` },
  {
    record: 'revision:corelane_requests_failed:rate5m',
    expr: `sum by (${REVISION}) (rate(corelane_requests_total{code="5xx"}[5m]))`,
  },
  {
    record: 'revision:corelane_request_render_duration_seconds:p99_5m',
    expr: quantile(0.99, 'corelane_request_render_duration_seconds', REVISION),
  },
  {
    record: 'revision:corelane_worker_cpu_seconds:rate5m',
    expr: `sum by (${REVISION}) (rate(corelane_worker_cpu_seconds_total[5m]))`,
  },
];

/** In this order: a rule reads what those before it have recorded. */
export const RECORDINGS: Group<Recording>[] = [
  { name: 'corelane.renderservices', rules: [...traffic, ...ratios, ...fleet] },
  { name: 'corelane.revisions', rules: revisions },
];
