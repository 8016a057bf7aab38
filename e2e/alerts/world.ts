/** A Corelane where all is well, as series of Prometheus: what rules are tried on. */

/** Series by name and labels; the values as promtool has them: `0+6x300` is 0, 6, 12 and so on, one a minute. */
export type World = Record<string, string>;

export const SHOP = 'namespace="shop",renderservice="storefront"';
/** Another one, which has no part in what happens to the first. */
const BLOG = 'namespace="shop",renderservice="blog"';
/** Targets of the operator. */
export const OPERATOR = 'namespace="corelane",job="corelane"';

export const PODS = ['a', 'b', 'c', 'd'] as const;
const WORKERS = ['0', '1'];
const FAILURES = ['queue-full', 'queue-timeout', 'no-worker', 'render-timeout', 'worker-died', 'worker-stuck'];

const pad =
  (minutes: number) =>
  (start: number, step = 0) =>
    `${start}+${step}x${minutes}`;

function podSeries(service: string, pod: string, at: (start: number, step?: number) => string): World {
  const own = `${service},revision="r1",pod="${pod}"`;
  const histogram = (name: string, counts: Record<string, number>) =>
    Object.fromEntries(
      Object.entries({ ...counts, '+Inf': 600 }).map(([le, count]) => [
        `${name}_bucket{${own},le="${le}"}`,
        at(0, count),
      ]),
    );
  return {
    [`up{${own}}`]: at(1),
    [`corelane_requests_total{${own},code="2xx",reason=""}`]: at(0, 600),
    [`corelane_requests_total{${own},code="4xx",reason="client-limit"}`]: at(0, 30),
    [`corelane_requests_total{${own},code="5xx",reason=""}`]: at(0),
    ...Object.fromEntries(
      FAILURES.map((reason) => [`corelane_requests_total{${own},code="5xx",reason="${reason}"}`, at(0)]),
    ),
    ...histogram('corelane_request_duration_seconds', { '0.1': 300, '0.25': 590, '0.5': 598, '1': 600 }),
    [`corelane_request_duration_seconds_count{${own}}`]: at(0, 600),
    ...histogram('corelane_request_queue_duration_seconds', { '0.025': 500, '0.1': 590 }),
    [`corelane_request_queue_duration_seconds_count{${own}}`]: at(0, 600),
    ...histogram('corelane_request_render_duration_seconds', { '0.1': 300, '0.25': 600 }),
    ...Object.fromEntries(
      Object.entries({ up: 2, down: 0, busy: 1, watched: 2 }).map(([state, count]) => [
        `corelane_workers{${own},state="${state}"}`,
        at(count),
      ]),
    ),
    [`corelane_peers_known{${own}}`]: at(PODS.length - 1),
    ...Object.fromEntries(
      WORKERS.flatMap((worker) => [
        [`corelane_worker_restarts_total{${own},worker="${worker}",reason="recycled"}`, at(0, 1)],
        [`corelane_worker_stalls_total{${own},worker="${worker}"}`, at(0)],
        [`corelane_worker_crash_looping{${own},worker="${worker}"}`, at(0)],
        [`corelane_worker_cpu_seconds_total{${own},worker="${worker}"}`, at(0, 30)],
      ]),
    ),
  };
}

/** Conditions of a RenderService: type, reason, and 1, 0 or -1. */
function conditions(service: string, list: [type: string, reason: string, value: number][]): string[][] {
  return list.map(([type, reason, value]) => [
    `corelane_renderservice_condition{${service},type="${type}",reason="${reason}"}`,
    String(value),
  ]);
}

/** What the operator says of one that is well: `wanted` pods of as many. */
function operatorSeries(service: string, wanted: number, more: [string, string, number][]): string[][] {
  return [
    [`corelane_renderservice_info{${service},revision="r1"}`, '1'],
    ...['wanted', 'ready', 'updated'].map((state) => [
      `corelane_renderservice_replicas{${service},state="${state}"}`,
      String(wanted),
    ]),
    ...conditions(service, [
      ['Ready', 'AllPodsReady', 1],
      ['Reconciling', 'UpToDate', 0],
      ['Stalled', 'UpToDate', 0],
      ['LiveSettingsApplied', 'AllPods', 1],
      ['DataPlaneCurrent', 'UpToDate', 1],
      ...more,
    ]),
  ];
}

/**
 * So many minutes in which all is well: one RenderService with objectives and scaling; one without objectives, whose
 * scaling is paused and whose runtime is off as its spec asks; one that is scaled to zero; an operator with a standby.
 */
export function healthy(minutes: number): World {
  const at = pad(minutes);
  const zero = 'namespace="shop",renderservice="zero"';
  const said = [
    ...operatorSeries(SHOP, PODS.length, [
      ['WorkersHealthy', 'WorkersUp', 1],
      ['ScalingActive', 'Measuring', 1],
    ]),
    ...operatorSeries(BLOG, PODS.length, [
      ['WorkersHealthy', 'RuntimeOff', 1],
      ['ScalingActive', 'Paused', 0],
    ]),
    ...operatorSeries(zero, 0, [['ScalingActive', 'ScaledToZero', 0]]),
    [`corelane_renderservice_replicas_max{${SHOP}}`, '8'],
    [`corelane_renderservice_objective_ratio{${SHOP},objective="availability"}`, '0.999'],
    [`corelane_renderservice_objective_ratio{${SHOP},objective="p99"}`, '0.99'],
    [`corelane_renderservice_objective_latency_seconds{${SHOP},objective="p99"}`, '0.5'],
    [`corelane_renderservice_objective_latency_weight_ratio{${SHOP},objective="p99",le="0.5"}`, '1'],
    [`corelane_operator_leader{${OPERATOR},pod="x"}`, '1'],
    [`corelane_operator_leader{${OPERATOR},pod="y"}`, '0'],
    ...['held', 'waiting'].flatMap((figure) =>
      ['x', 'y'].map((pod) => [`corelane_data_plane_${figure}{${OPERATOR},pod="${pod}"}`, '0']),
    ),
  ];
  return {
    ...Object.assign({}, ...PODS.flatMap((pod) => [podSeries(SHOP, pod, at), podSeries(BLOG, pod, at)])),
    ...Object.fromEntries(said.map(([series, value]) => [series, at(Number(value))])),
    [`corelane_operator_api_request_duration_seconds_count{${OPERATOR},pod="x",method="GET",code="200"}`]: at(0, 120),
    [`corelane_operator_api_request_duration_seconds_count{${OPERATOR},pod="x",method="GET",code="404"}`]: at(0, 60),
    [`corelane_operator_pod_samples_total{${OPERATOR},pod="x",result="ok"}`]: at(0, 32),
    [`corelane_operator_pod_samples_total{${OPERATOR},pod="x",result="error"}`]: at(0, 1),
  };
}
