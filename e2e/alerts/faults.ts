/** Faults as series, and what is said of each: which alerts fire, and with which words. */
import { OPERATOR, PODS, SHOP, type World } from './world.ts';

export interface Fault {
  /** Series that are other than in the world where all is well; undefined: gone. */
  series: Record<string, string | undefined>;
  /** Minutes after which one looks. */
  at: number;
  /** Alerts that fire then, with the labels that they have beside namespace, renderservice and severity. */
  fires: Record<string, Record<string, string>[]>;
  /** What each alert of the name of the fault says. */
  says: { summary: string; description: string }[];
}

export const pod = (name: string) => `${SHOP},revision="r1",pod="${name}"`;
const requests = (name: string, code: string, reason: string) =>
  `corelane_requests_total{${pod(name)},code="${code}",reason="${reason}"}`;
const condition = (type: string, reason: string) =>
  `corelane_renderservice_condition{${SHOP},type="${type}",reason="${reason}"}`;
const replicas = (state: string) => `corelane_renderservice_replicas{${SHOP},state="${state}"}`;
export const ofAllPods = (series: (name: string) => World): World => Object.assign({}, ...PODS.map(series));

/** A condition that has another reason or value. */
function turned(type: string, before: string, after: string, value: number): Record<string, string | undefined> {
  return { [condition(type, before)]: undefined, [condition(type, after)]: `${value}x300` };
}

/** What the operator that leads says of its data plane. */
function dataPlane(figures: { held: number; waiting: number }): Record<string, string> {
  const series = Object.entries(figures).map(([figure, value]) => [
    `corelane_data_plane_${figure}{${OPERATOR},pod="x"}`,
    `${value}x300`,
  ]);
  return Object.fromEntries(series);
}

const WITHOUT_OBJECTIVES = Object.fromEntries(
  [
    ...['availability', 'p99'].map((objective) => `objective_ratio{${SHOP},objective="${objective}"}`),
    `objective_latency_seconds{${SHOP},objective="p99"}`,
    `objective_latency_weight_ratio{${SHOP},objective="p99",le="0.5"}`,
  ].map((series) => [`corelane_renderservice_${series}`, undefined]),
);

/** Of 630 requests a minute of each pod that do not fail. */
export const failing = (perMinute: number, minutes = 300) =>
  ofAllPods((name) => ({ [requests(name, '5xx', 'render-timeout')]: `0+${perMinute}x${minutes}` }));
const slow = (perMinute: number) =>
  ofAllPods((name) =>
    Object.fromEntries(
      ['0.1', '0.25', '0.5'].map((le) => [
        `corelane_request_duration_seconds_bucket{${pod(name)},le="${le}"}`,
        `0+${600 - perMinute}x300`,
      ]),
    ),
  );

/** By the alert that each is the fault of. */
export const FAULTS: Record<string, Fault> = {
  CorelaneAvailabilityBudgetBurn: {
    // So much that without an objective another alert would fire.
    series: failing(60),
    at: 30,
    fires: { CorelaneAvailabilityBudgetBurn: [{ window: '1h' }, { window: '6h' }] },
    says: [
      {
        summary: 'shop/storefront answers 8.696% of the requests 5xx (1h)',
        description:
          'That is more than spec.objectives.availability leaves. For 1h the error budget of 30 days has been spent at least 14.4 times as fast as it lasts, and for the last 5m, too.',
      },
      {
        summary: 'shop/storefront answers 8.696% of the requests 5xx (6h)',
        description:
          'That is more than spec.objectives.availability leaves. For 6h the error budget of 30 days has been spent at least 6 times as fast as it lasts, and for the last 30m, too.',
      },
    ],
  },
  CorelaneLatencyBudgetBurn: {
    series: slow(120),
    at: 30,
    fires: {
      CorelaneLatencyBudgetBurn: [
        { window: '1h', objective: 'p99' },
        { window: '6h', objective: 'p99' },
      ],
    },
    says: [
      {
        summary: 'shop/storefront is too slow for its p99 with 20% of the requests (1h)',
        description:
          'spec.objectives.latency.p99 allows fewer. For 1h the error budget of 30 days has been spent at least 14.4 times as fast as it lasts, and for the last 5m, too.',
      },
      {
        summary: 'shop/storefront is too slow for its p99 with 20% of the requests (6h)',
        description:
          'spec.objectives.latency.p99 allows fewer. For 6h the error budget of 30 days has been spent at least 6 times as fast as it lasts, and for the last 30m, too.',
      },
    ],
  },
  CorelaneNoWorkerUp: {
    series: ofAllPods((name) => ({
      [`corelane_workers{${pod(name)},state="up"}`]: '2x19 0x281',
      [`corelane_workers{${pod(name)},state="down"}`]: '0x19 2x281',
      [`corelane_workers{${pod(name)},state="busy"}`]: '1x19 0x281',
    })),
    at: 30,
    fires: { CorelaneNoWorkerUp: [{}] },
    says: [
      {
        summary: 'shop/storefront has no worker that takes requests',
        description:
          'Every request that needs a render waits, and is then answered 503 no-worker, or meets no pod at all.',
      },
    ],
  },
  CorelaneRequestsFail: {
    series: { ...WITHOUT_OBJECTIVES, ...failing(60) },
    at: 30,
    fires: { CorelaneRequestsFail: [{}] },
    says: [
      {
        summary: 'shop/storefront answers 8.696% of the requests 5xx',
        description:
          'It has no spec.objectives.availability, so the limit is 5 % for ten minutes. With an objective CorelaneAvailabilityBudgetBurn takes the place of this alert.',
      },
    ],
  },
  CorelaneRequestsRefused: {
    // A page for browsers answers them 200, so no budget burns.
    series: ofAllPods((name) => ({ [requests(name, '2xx', 'queue-full')]: '0+30x300' })),
    at: 30,
    fires: { CorelaneRequestsRefused: [{}] },
    says: [
      {
        summary: 'shop/storefront refuses 4.545% of the requests: there is no room',
        description: 'Most of them: queue-full.',
      },
    ],
  },
  CorelaneSaturated: {
    series: ofAllPods((name) => ({
      [`corelane_workers{${pod(name)},state="busy"}`]: '2x300',
      [`corelane_request_queue_duration_seconds_bucket{${pod(name)},le="0.025"}`]: '0+10x300',
      [`corelane_request_queue_duration_seconds_bucket{${pod(name)},le="0.1"}`]: '0+300x300',
    })),
    at: 30,
    fires: { CorelaneSaturated: [{}] },
    says: [
      {
        summary: 'shop/storefront has 100% of its workers busy, and requests wait',
        description:
          'For 15 minutes nine of ten workers have had a request, and one render in ten has waited for longer than 100 ms.',
      },
    ],
  },
  CorelaneScalingAtMaximum: {
    series: turned('ScalingActive', 'Measuring', 'AtMaximum', 1),
    at: 20,
    fires: { CorelaneScalingAtMaximum: [{}] },
    says: [
      {
        summary: 'shop/storefront wants more than its 8 pods',
        description: 'For 15 minutes the operator has wanted more pods than scaling.maxReplicas allows.',
      },
    ],
  },
  CorelaneScalingBlind: {
    series: turned('ScalingActive', 'Measuring', 'NoMetrics', 0),
    at: 15,
    fires: { CorelaneScalingBlind: [{}] },
    says: [
      {
        summary: 'shop/storefront does not scale: nothing is known of its load',
        description:
          'The number of pods is held as it is, whatever comes. The condition ScalingActive says what is missing.',
      },
    ],
  },
  CorelaneWorkersCrashLoop: {
    series: {
      [`corelane_worker_crash_looping{${pod('b')},worker="1"}`]: '0x9 1x291',
      [`corelane_worker_restarts_total{${pod('b')},worker="1",reason="error"}`]: '_x9 1+1x290',
    },
    at: 40,
    fires: { CorelaneWorkersCrashLoop: [{}] },
    says: [
      {
        summary: 'shop/storefront has 1 workers that end again and again',
        description: 'One of them is in pod b. The others of its pod serve meanwhile.',
      },
    ],
  },
  CorelaneWorkersRestartOften: {
    // As pods have it: a series of the reason is there from its first restart on.
    series: ofAllPods((name) => ({
      [`corelane_worker_restarts_total{${pod(name)},worker="0",reason="error"}`]: '_x60 2x240',
      [`corelane_worker_restarts_total{${pod(name)},worker="1",reason="signal"}`]: '1x60 2x240',
    })),
    at: 70,
    fires: { CorelaneWorkersRestartOften: [{}] },
    says: [
      {
        summary: 'shop/storefront: 12 restarts of workers in an hour that nobody has planned',
        description: 'Most of them: error. Each costs the renders that the worker had.',
      },
    ],
  },
  CorelaneRendersStuck: {
    series: {
      [`corelane_worker_stalls_total{${pod('c')},worker="0"}`]: '0x20 1x2 2x2 3x276',
      [`corelane_worker_last_stall_timestamp_seconds{${pod('a')},worker="0",in="warmUp (server.js:3:1)"}`]: '1x300',
      [`corelane_worker_last_stall_timestamp_seconds{${pod('c')},worker="0",in="renderTree (app.js:12:5)"}`]:
        '1300x300',
    },
    at: 28,
    fires: { CorelaneRendersStuck: [{}] },
    says: [
      {
        summary: 'shop/storefront: 3 renders got stuck in 15 minutes',
        description: 'The last one in renderTree (app.js:12:5).',
      },
    ],
  },
  CorelaneRuntimeAbsent: {
    series: turned('WorkersHealthy', 'WorkersUp', 'RuntimeAbsent', 1),
    at: 20,
    fires: { CorelaneRuntimeAbsent: [{}] },
    says: [
      {
        summary: 'shop/storefront has workers without the worker runtime',
        description:
          'A worker that gets stuck is not noticed, and one that ends restarts its container. The condition WorkersHealthy says why.',
      },
    ],
  },
  CorelanePodsIsolated: {
    series: { [`corelane_peers_known{${pod('d')}}`]: '1x300', [`corelane_peers_known{${pod('a')}}`]: '2x300' },
    at: 20,
    fires: { CorelanePodsIsolated: [{}] },
    says: [
      {
        summary: 'shop/storefront has 1 pods that reach few others, or none',
        description: 'They cannot hand requests over: these wait, or are refused, while workers elsewhere are idle.',
      },
    ],
  },
  CorelanePodsMissing: {
    series: { [replicas('wanted')]: '4x9 6x291' },
    at: 40,
    fires: { CorelanePodsMissing: [{}] },
    says: [
      {
        summary: 'shop/storefront lacks 2 pods, and none comes',
        description: 'For 15 minutes no further pod has become ready. The condition Ready says what they lack.',
      },
    ],
  },
  CorelaneRolloutStopped: {
    series: { ...turned('Stalled', 'UpToDate', 'ProgressDeadlineExceeded', 1), [replicas('ready')]: '3x300' },
    at: 40,
    fires: { CorelaneRolloutStopped: [{}] },
    says: [
      {
        summary: 'shop/storefront: the rollout makes no progress',
        description:
          'The pods of the new revision do not become ready within rollout.rolling.progressDeadlineSeconds. Those of the one before serve.',
      },
    ],
  },
  CorelaneRenderServiceRefused: {
    series: turned('Stalled', 'UpToDate', 'Rejected', 1),
    at: 10,
    fires: { CorelaneRenderServiceRefused: [{ reason: 'Rejected' }] },
    says: [
      {
        summary: 'shop/storefront is not carried out: Rejected',
        description:
          'What was applied last has no effect until somebody changes it; what runs keeps running. The condition Stalled says what is wrong.',
      },
    ],
  },
  CorelaneLiveSettingsNotApplied: {
    series: turned('LiveSettingsApplied', 'AllPods', 'Waiting', 0),
    at: 15,
    fires: { CorelaneLiveSettingsNotApplied: [{}] },
    says: [
      {
        summary: 'shop/storefront has pods without the live settings of its spec',
        description: 'They usually have them within a second. The condition LiveSettingsApplied names a pod and why.',
      },
    ],
  },
  CorelanePodsNotScraped: {
    series: { [`up{${pod('a')}}`]: '0x300' },
    at: 20,
    fires: { CorelanePodsNotScraped: [{}] },
    says: [
      {
        summary: 'Prometheus cannot scrape 25% of the pods of shop/storefront',
        description: 'All alerts on their visitors and workers are blind for these pods.',
      },
    ],
  },
  CorelaneOperatorNoLeader: {
    series: { [`corelane_operator_leader{${OPERATOR},pod="x"}`]: '1x10 0x290' },
    at: 20,
    fires: { CorelaneOperatorNoLeader: [{ namespace: 'corelane', job: 'corelane' }] },
    says: [
      {
        summary: 'no Corelane operator leads',
        description:
          'Pods go on serving, but nothing scales, no RenderService is carried out, and the alerts on them see nothing. Or Prometheus does not scrape the operator (serviceMonitor.enabled).',
      },
    ],
  },
  CorelaneOperatorApiErrors: {
    series: {
      [`corelane_operator_api_request_duration_seconds_count{${OPERATOR},pod="x",method="GET",code="0"}`]: '0+20x300',
    },
    at: 30,
    fires: { CorelaneOperatorApiErrors: [{ namespace: 'corelane', job: 'corelane' }] },
    says: [
      {
        summary: "10% of the operator's calls to the API server fail",
        description: 'They had no answer, or 5xx. What is applied, and scaling, is late.',
      },
    ],
  },
  CorelaneDataPlaneHeld: {
    // Its pods would be a rollout that has stopped, if they were its user's.
    series: {
      ...turned('Stalled', 'UpToDate', 'ProgressDeadlineExceeded', 1),
      ...turned('DataPlaneCurrent', 'UpToDate', 'Failed', 0),
      ...dataPlane({ held: 1, waiting: 7 }),
    },
    at: 20,
    fires: { CorelaneDataPlaneHeld: [{ namespace: 'corelane', job: 'corelane' }] },
    says: [
      {
        summary: 'the upgrade of the data plane has stopped: shop/storefront',
        description:
          'It got the pods of this version and is not healthy with them. No other service gets them meanwhile: 7 wait, and serve with the pods that they have.',
      },
    ],
  },
  CorelaneOperatorPodsUnreachable: {
    series: { [`corelane_operator_pod_samples_total{${OPERATOR},pod="x",result="error"}`]: '0+32x300' },
    at: 30,
    fires: { CorelaneOperatorPodsUnreachable: [{ namespace: 'corelane', job: 'corelane' }] },
    says: [
      {
        summary: 'the operator cannot read 50% of the pods',
        description:
          'Port 8999 of the pods does not answer it. Scaling by occupancy is blind there, and status.workers is old.',
      },
    ],
  },
};

/** What looks like a fault and is none: no alert fires. */
export const QUIET: Record<string, Pick<Fault, 'series' | 'at'>> = {
  'one request in 1,200 fails': { series: { [requests('a', '5xx', 'worker-died')]: '0+2x300' }, at: 100 },
  'all of few requests fail, at night': {
    series: ofAllPods((name) => ({
      [requests(name, '2xx', '')]: '0x300',
      [requests(name, '4xx', 'client-limit')]: '0x300',
      [requests(name, '5xx', 'worker-died')]: '0x60 1x240',
    })),
    at: 65,
  },
  // For an hour to come it is in the long windows.
  'a minute of failures is over': {
    series: ofAllPods((name) => ({ [requests(name, '5xx', 'no-worker')]: '0x240 600x60' })),
    at: 275,
  },
  'busy workers, and nobody waits': {
    series: ofAllPods((name) => ({ [`corelane_workers{${pod(name)},state="busy"}`]: '2x300' })),
    at: 100,
  },
  'a fleet that grows': {
    series: { [replicas('wanted')]: '4x40 8x260', [replicas('ready')]: '4x49 5x8 6x8 7x8 8x220' },
    at: 70,
  },
  'a new service whose workers are not up yet': {
    series: ofAllPods((name) => ({
      [`corelane_workers{${pod(name)},state="up"}`]: '_x40 0x260',
      [`corelane_workers{${pod(name)},state="down"}`]: '_x40 2x260',
      [`corelane_workers{${pod(name)},state="busy"}`]: '_x40 0x260',
    })),
    at: 50,
  },
  'a rollout': {
    series: {
      ...turned('Reconciling', 'UpToDate', 'Progressing', 1),
      ...ofAllPods((name) => ({
        [`corelane_peers_known{${pod(name)}}`]: '3x40 0x9 3x250',
      })),
    },
    at: 60,
  },
  'pods with a past, and a Prometheus without': {
    series: ofAllPods((name) => ({
      [`corelane_worker_restarts_total{${pod(name)},worker="0",reason="error"}`]: '40x300',
    })),
    at: 30,
  },
  'pods that may know two others each': {
    series: ofAllPods((name) => ({ [`corelane_peers_known{${pod(name)}}`]: name === 'a' ? '1x300' : '2x300' })),
    at: 60,
  },
  'two renders got stuck': {
    series: { [`corelane_worker_stalls_total{${pod('c')},worker="0"}`]: '0x20 1x2 2x278' },
    at: 28,
  },
  'services that wait for their turn': {
    series: {
      ...turned('DataPlaneCurrent', 'UpToDate', 'Waiting', 0),
      ...dataPlane({ held: 0, waiting: 7 }),
    },
    at: 100,
  },
  'the lead changes': {
    series: {
      [`corelane_operator_leader{${OPERATOR},pod="x"}`]: '1x30 0x270',
      [`corelane_operator_leader{${OPERATOR},pod="y"}`]: '0x31 1x269',
    },
    at: 31,
  },
  'settings that are on their way': {
    series: {
      [condition('LiveSettingsApplied', 'AllPods')]: '1x30 _x2 1x268',
      [condition('LiveSettingsApplied', 'Waiting')]: '_x30 0x2 _x268',
    },
    at: 33,
  },
  'pods that cannot be asked for their settings': {
    series: turned('LiveSettingsApplied', 'AllPods', 'PodsUnreachable', -1),
    at: 60,
  },
};
