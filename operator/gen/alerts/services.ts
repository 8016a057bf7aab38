/** Alerts on one RenderService each: its visitors, its workers, its scaling, what was applied of it. */
import { BUSY, FAILED, FAILED_RATE, mean, WAITED } from './recordings.ts';
import { type Alert, OF_SERVICE, promql, SERVICE } from './rule.ts';

/** RenderServices whose condition `type` is so; `reasons` as a regular expression. */
function condition(type: string, value: 1 | 0, reasons = '.*'): string {
  const why = reasons === '.*' ? '' : `,reason=~"${reasons}"`;
  return `max by (${SERVICE}) (corelane_renderservice_condition{type="${type}"${why}}) == ${value}`;
}

const AT_MAXIMUM = condition('ScalingActive', 1, 'AtMaximum');
/** Reasons of X-Corelane-Error that mean: there was no room. */
export const NO_ROOM =
  'queue-full|queue-timeout|class-full|class-queue-timeout|requests-full|bodies-full|heads-full|websockets-full';
const LOOPING = `count by (${SERVICE}) (corelane_worker_crash_looping == 1)`;

const UNPLANNED = 'corelane_worker_restarts_total{reason=~"exit|error|signal|abandoned"}';

const RESTARTS_OF = UNPLANNED.replace('{', '{namespace="%[1]s",renderservice="%[2]s",');

/** The first label `name` of what a query finds, as a template of Prometheus; `otherwise` where it finds nothing. */
function firstOf(query: string, name: string, otherwise: string): string {
  const filled = `printf ${JSON.stringify(query)} $labels.namespace $labels.renderservice`;
  return `{{ with ${filled} | query }}{{ . | first | label "${name}" }}{{ else }}${otherwise}{{ end }}`;
}

const visitors: Alert[] = [
  {
    name: 'CorelaneNoWorkerUp',
    // Either the pods say so, or the operator, when no pod is left that could. A service that is new has no visitors.
    expr: promql`
      (
        sum by (${SERVICE}) (corelane_workers{state="up"}) == 0
        and on (${SERVICE}) sum by (${SERVICE}) (corelane_workers{state=~"up|down"} offset 15m) > 0
      )
      or
      (
        max by (${SERVICE}) (corelane_renderservice_replicas{state="ready"}) == 0
        and on (${SERVICE}) max by (${SERVICE}) (corelane_renderservice_replicas{state="wanted"}) > 0
        and on (${SERVICE}) max by (${SERVICE}) (corelane_renderservice_replicas{state="wanted"} offset 15m) > 0
      )`,
    for: '3m',
    severity: 'critical',
    summary: `${OF_SERVICE} has no worker that takes requests`,
    description: 'Every request that needs a render waits, and is then answered 503 no-worker, or meets no pod at all.',
  },
  {
    name: 'CorelaneRequestsFail',
    expr: promql`
      ${FAILED('5m')} > 0.05
      and on (${SERVICE}) ${mean(FAILED_RATE, '30m')} * 1800 > 10
      unless on (${SERVICE}) max by (${SERVICE}) (corelane_renderservice_objective_ratio{objective="availability"})`,
    for: '10m',
    severity: 'critical',
    summary: `${OF_SERVICE} answers {{ $value | humanizePercentage }} of the requests 5xx`,
    description:
      'It has no spec.objectives.availability, so the limit is 5 % for ten minutes. With an objective CorelaneAvailabilityBudgetBurn takes the place of this alert.',
  },
  {
    name: 'CorelaneRequestsRefused',
    // By the reason, not by the code: spec.fallback may answer them 200.
    expr: promql`
      sum by (${SERVICE}) (rate(corelane_requests_total{reason=~"${NO_ROOM}"}[5m]))
      / (sum by (${SERVICE}) (rate(corelane_requests_total[5m])) > 0)
      > 0.01`,
    for: '5m',
    severity: 'warning',
    summary: `${OF_SERVICE} refuses {{ $value | humanizePercentage }} of the requests: there is no room`,
    description: `Most of them: ${firstOf(`topk(1, sum by (reason) (rate(corelane_requests_total{namespace="%s",renderservice="%s",reason=~"${NO_ROOM}"}[5m])))`, 'reason', 'not known')}.`,
  },
  {
    name: 'CorelaneSaturated',
    // Where the maximum is what is in the way, the next one says so.
    expr: promql`
      ${BUSY} > 0.9
      and on (${SERVICE}) ${WAITED} > 0.1
      unless on (${SERVICE}) ${AT_MAXIMUM}`,
    for: '15m',
    severity: 'warning',
    summary: `${OF_SERVICE} has {{ $value | humanizePercentage }} of its workers busy, and requests wait`,
    description:
      'For 15 minutes nine of ten workers have had a request, and one render in ten has waited for longer than 100 ms.',
  },
];

const scaling: Alert[] = [
  {
    name: 'CorelaneScalingAtMaximum',
    expr: promql`
      max by (${SERVICE}) (corelane_renderservice_replicas_max)
      and on (${SERVICE}) ${AT_MAXIMUM}`,
    for: '15m',
    severity: 'warning',
    summary: `${OF_SERVICE} wants more than its {{ $value }} pods`,
    description: 'For 15 minutes the operator has wanted more pods than scaling.maxReplicas allows.',
  },
  {
    name: 'CorelaneScalingBlind',
    expr: condition('ScalingActive', 0, 'NoMetrics'),
    for: '10m',
    severity: 'warning',
    summary: `${OF_SERVICE} does not scale: nothing is known of its load`,
    description:
      'The number of pods is held as it is, whatever comes. The condition ScalingActive says what is missing.',
  },
];

const workers: Alert[] = [
  {
    name: 'CorelaneWorkersCrashLoop',
    expr: `${LOOPING} > 0`,
    for: '2m',
    severity: 'warning',
    summary: `${OF_SERVICE} has {{ $value }} workers that end again and again`,
    description: `One of them is in pod ${firstOf('corelane_worker_crash_looping{namespace="%s",renderservice="%s"} == 1', 'pod', 'not known')}. The others of its pod serve meanwhile.`,
  },
  {
    name: 'CorelaneWorkersRestartOften',
    // A loop has an alert of its own, and so have renders that get stuck. A series is there from the first restart of
    // its reason on, which increase() does not see; of a pod that was there an hour ago all in it is of this hour.
    expr: promql`
      (
        sum by (${SERVICE}) (
          (
            ${UNPLANNED} unless ${UNPLANNED} offset 1h
            and on (${SERVICE}, pod, worker) corelane_worker_crash_looping offset 1h
          )
          or increase(${UNPLANNED}[1h])
        ) >= 5
        > on (${SERVICE}) 0.25 * sum by (${SERVICE}) (corelane_workers{state=~"up|down"})
      )
      unless on (${SERVICE}) count by (${SERVICE}) (max_over_time(corelane_worker_crash_looping[1h]) == 1)`,
    // A loop that begins is known as one by then.
    for: '5m',
    severity: 'warning',
    summary: `${OF_SERVICE}: {{ $value | humanize }} restarts of workers in an hour that nobody has planned`,
    description: `Most of them: ${firstOf(`topk(1, sum by (reason) ((${RESTARTS_OF} unless ${RESTARTS_OF} offset 1h) or increase(${RESTARTS_OF}[1h])))`, 'reason', 'not known')}. Each costs the renders that the worker had.`,
  },
  {
    name: 'CorelaneRendersStuck',
    expr: `sum by (${SERVICE}) (increase(corelane_worker_stalls_total[15m])) >= 3`,
    severity: 'warning',
    summary: `${OF_SERVICE}: {{ $value | humanize }} renders got stuck in 15 minutes`,
    description: `The last one in ${firstOf('topk(1, corelane_worker_last_stall_timestamp_seconds{namespace="%s",renderservice="%s"})', 'in', 'a function that the log of the worker names (podMonitor.workers.detail brings it here)')}.`,
  },
  {
    name: 'CorelaneRuntimeAbsent',
    expr: condition('WorkersHealthy', 1, 'RuntimeAbsent'),
    for: '15m',
    severity: 'warning',
    summary: `${OF_SERVICE} has workers without the worker runtime`,
    description:
      'A worker that gets stuck is not noticed, and one that ends restarts its container. The condition WorkersHealthy says why.',
  },
  {
    name: 'CorelanePodsIsolated',
    // pooling.maxPeers may be less than the pods that there are.
    expr: promql`
      count by (${SERVICE}) (
        corelane_peers_known < on (${SERVICE}) group_left () (0.5 * max by (${SERVICE}) (corelane_peers_known))
        or
        corelane_peers_known == 0 and on (${SERVICE}) count by (${SERVICE}) (corelane_peers_known) > 1
      ) > 0`,
    for: '15m',
    severity: 'warning',
    summary: `${OF_SERVICE} has {{ $value }} pods that reach few others, or none`,
    description: 'They cannot hand requests over: these wait, or are refused, while workers elsewhere are idle.',
  },
];

const applied: Alert[] = [
  {
    name: 'CorelanePodsMissing',
    // As many as before for ten minutes: no rollout, nor a fleet that grows.
    expr: promql`
      (
        max by (${SERVICE}) (corelane_renderservice_replicas{state="wanted"})
        - max by (${SERVICE}) (corelane_renderservice_replicas{state="ready"}) > 0
      )
      and on (${SERVICE}) max by (${SERVICE}) (corelane_renderservice_replicas{state="ready"}) > 0
      and on (${SERVICE}) max by (${SERVICE}) (changes(corelane_renderservice_replicas{state="ready"}[10m])) == 0
      unless on (${SERVICE}) ${condition('Stalled', 1)}`,
    for: '15m',
    severity: 'warning',
    summary: `${OF_SERVICE} lacks {{ $value }} pods, and none comes`,
    description: 'For 15 minutes no further pod has become ready. The condition Ready says what they lack.',
  },
  {
    name: 'CorelaneRolloutStopped',
    // Pods that an upgrade of the data plane has made are told of by an alert of the operator's.
    expr: promql`
      ${condition('Stalled', 1, 'ProgressDeadlineExceeded')}
      unless on (${SERVICE}) ${condition('DataPlaneCurrent', 0, 'Failed')}`,
    for: '1m',
    severity: 'warning',
    summary: `${OF_SERVICE}: the rollout makes no progress`,
    description:
      'The pods of the new revision do not become ready within rollout.rolling.progressDeadlineSeconds. Those of the one before serve.',
  },
  {
    name: 'CorelaneRenderServiceRefused',
    expr: promql`
      max by (${SERVICE}, reason) (
        corelane_renderservice_condition{type="Stalled",reason!="ProgressDeadlineExceeded"}
      ) == 1`,
    for: '5m',
    severity: 'warning',
    summary: `${OF_SERVICE} is not carried out: {{ $labels.reason }}`,
    description:
      'What was applied last has no effect until somebody changes it; what runs keeps running. The condition Stalled says what is wrong.',
  },
  {
    name: 'CorelaneLiveSettingsNotApplied',
    expr: condition('LiveSettingsApplied', 0),
    for: '10m',
    severity: 'warning',
    summary: `${OF_SERVICE} has pods without the live settings of its spec`,
    description: 'They usually have them within a second. The condition LiveSettingsApplied names a pod and why.',
  },
];

export const VISITORS = visitors;
export const OF_FLEET = [...scaling, ...workers];
export const OF_SPEC = applied;
