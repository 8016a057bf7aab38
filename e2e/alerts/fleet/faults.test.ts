/**
 * Faults of a real fleet, seen by a real Prometheus: each raises its alert, and none of another's. Hours are seconds
 * here. What the operator would say is written by hand.
 */
import { docker } from '../../harness/engine/docker.ts';
import { Fleet } from '../../harness/engine/fleet.ts';
import { type Pod, until } from '../../harness/engine/pod.ts';
import { SHOP } from '../world.ts';
import { getStuck, killWorkers, takeAllWorkers } from './harm.ts';
import { condition, OperatorPage, type Page, replicas, wellPage } from './operator-page.ts';
import { type Firing, Prometheus } from './prometheus.ts';
import { Visitors } from './visitors.ts';

/** An hour is a minute. */
const TIMES = 60;
const PODS = 3;
const WORKERS = 2;
const SPEC = {
  workersPerPod: WORKERS,
  queue: { maxLength: 3, timeout: '8s' },
  watchdog: { stallTimeout: '1s', quarantine: { enabled: false } },
};

let fleet: Fleet;
let page: OperatorPage;
let prometheus: Prometheus | undefined;
let visitors: Visitors | undefined;
const more: Visitors[] = [];
let undo: (() => Promise<unknown>) | undefined;
let release: (() => Promise<unknown>) | undefined;
let growing: NodeJS.Timeout | undefined;

const seen = () => prometheus as Prometheus;
const firstPod = () => fleet.pods[0] as Pod;

beforeAll(async () => {
  fleet = await Fleet.start(PODS, SPEC);
  page = await OperatorPage.start(fleet.network, wellPage(PODS));
});

afterAll(async () => {
  await prometheus?.stop();
  if (page) await docker('rm', '--force', page.container);
  await fleet?.stop();
});

beforeEach(async () => {
  page.set(wellPage(fleet.pods.length));
  for (const pod of fleet.pods)
    for (const worker of pod.workers.keys()) await until('all workers are up', () => pod.isUp(worker));
  await watch();
});

/** A Prometheus without a past, for all pods that there are. */
async function watch(): Promise<void> {
  await prometheus?.stop();
  const addressOf = async (container: string) =>
    docker('inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', container);
  const targets = await Promise.all(
    fleet.pods.map(async (pod, index) => ({ pod: `pod-${index}`, address: await pod.address() })),
  );
  prometheus = await Prometheus.start(fleet.network, targets, await addressOf(page.container), TIMES);
}

afterEach(async () => {
  clearInterval(growing);
  await undo?.();
  undo = undefined;
  await Promise.all([visitors, ...more.splice(0)].map((all) => all?.stop()));
  visitors = undefined;
});

/** Waits until the alert fires, and says which do then. */
async function untilFires(alert: string): Promise<Firing> {
  return until(
    `${alert} fires`,
    async () => (await seen().firing()).find(({ labels }) => labels.alertname === alert),
    90_000,
  );
}

async function namesOf(): Promise<string[]> {
  return [...new Set((await seen().firing()).map(({ labels }) => labels.alertname as string))].sort();
}

/** Prometheus has seen so much of a well fleet that a rate sees what changes. */
async function untilSeen(): Promise<void> {
  await until('there are rates', async () => (await seen().query('renderservice:corelane_requests:rate5m'))[0]);
}

test('for an hour all is well, every rule can be evaluated, and no alert fires', async () => {
  visitors = Visitors.start(fleet);
  // Before its first scrape a new Prometheus knows nobody who leads, for five seconds; the alert wants three.
  await untilSeen();
  const seenAt = Date.now();
  await until(
    'an hour has gone by',
    async () =>
      ((await seen().query('count_over_time(renderservice:corelane_requests:rate5m[10m])'))[0] ?? 0) >= 3600 / TIMES,
    180_000,
  );
  expect(await seen().fired(Math.floor((Date.now() - seenAt) / 1000))).toEqual([]);
  expect(await seen().broken()).toEqual([]);
  expect((await seen().query('renderservice:corelane_requests:rate5m'))[0]).toBeGreaterThan(1);
});

interface RealFault {
  /** What the operator says beside that all is well; undefined takes a series away. */
  says?: Record<string, number | undefined>;
  /** Of that, what is more by so much each half second. */
  grows?: Record<string, number>;
  visits?: (pod: Pod) => string;
  /** Once there is something to compare with. */
  begin?: () => Promise<unknown>;
  /** Undoes it. */
  end?: () => Promise<unknown>;
  description?: RegExp;
}

const objective = (name: string, ratio: number) => ({
  [`corelane_renderservice_objective_ratio{${SHOP},objective="${name}"}`]: ratio,
});
const everyThird = (path: string) => {
  let count = 0;
  return () => {
    count += 1;
    return count % 3 === 0 ? path : '/?ms=5&id=visit';
  };
};
const turned = (type: string, before: string, after: string, value: number) => ({
  [condition(type, before)]: undefined,
  [condition(type, after)]: value,
});

/** Counters of the operator at its own work. */
const calls = (code: string) => `corelane_operator_api_request_duration_seconds_count{method="GET",code="${code}"}`;
const samples = (result: string) => `corelane_operator_pod_samples_total{result="${result}"}`;

/** By the alert that each raises. */
const FAULTS: Record<string, RealFault> = {
  CorelaneRequestsFail: { visits: everyThird('/?status=500&id=fails') },
  CorelaneAvailabilityBudgetBurn: {
    says: objective('availability', 0.99),
    visits: everyThird('/?status=500&id=fails'),
  },
  CorelaneLatencyBudgetBurn: {
    says: {
      ...objective('p99', 0.99),
      [`corelane_renderservice_objective_latency_seconds{${SHOP},objective="p99"}`]: 0.5,
      [`corelane_renderservice_objective_latency_weight_ratio{${SHOP},objective="p99",le="0.5"}`]: 1,
    },
    visits: everyThird('/?ms=1200&id=slow'),
  },
  CorelaneRendersStuck: {
    begin: () => getStuck(firstPod(), 4),
    description: /^The last one in \S*render .*worker\.mjs/,
  },
  CorelaneWorkersRestartOften: {
    begin: () => killWorkers(fleet, 8),
    description: /^Most of them: signal\./,
  },
  CorelaneRequestsRefused: {
    // Failures are no news where so many are allowed.
    says: objective('availability', 0.5),
    begin: async () => {
      release = await takeAllWorkers(fleet);
      more.push(Visitors.start(fleet), Visitors.start(fleet), Visitors.start(fleet));
    },
    end: async () => release?.(),
    description: /^Most of them: queue-(full|timeout)\./,
  },
  CorelaneWorkersCrashLoop: {
    says: objective('availability', 0.5),
    begin: async () => {
      const looping = async () => (await seen().query('sum(corelane_worker_crash_looping)'))[0] ?? 0;
      while ((await looping()) === 0) await firstPod().get('/?die=1&id=loops', { method: 'POST' });
    },
    description: /^One of them is in pod pod-0\./,
  },
  CorelaneNoWorkerUp: {
    says: objective('availability', 0.5),
    begin: async () => {
      await until(
        'they have been up for a while',
        async () => (await seen().query('sum(corelane_workers{state="up"} offset 15s)'))[0],
      );
      await docker('kill', ...fleet.pods.flatMap(({ workers }) => workers));
    },
    end: async () => {
      await docker('start', ...fleet.pods.flatMap(({ workers }) => workers));
    },
  },
  CorelaneSaturated: {
    // Nine at a time for six workers, and room for those who wait.
    visits: () => '/?ms=600&id=visit',
    begin: async () => more.push(...[1, 2].map(() => Visitors.start(fleet, () => '/?ms=600&id=visit'))),
    description: /^For 15 minutes nine of ten workers have had a request/,
  },
  CorelaneRuntimeAbsent: { says: turned('WorkersHealthy', 'WorkersUp', 'RuntimeAbsent', 1) },
  CorelaneLiveSettingsNotApplied: { says: turned('LiveSettingsApplied', 'AllPods', 'Waiting', 0) },
  CorelaneOperatorApiErrors: { grows: { [calls('200')]: 9, [calls('0')]: 3, [calls('404')]: 3 } },
  CorelaneOperatorPodsUnreachable: { grows: { [samples('ok')]: 3, [samples('error')]: 3 } },
  CorelaneOperatorNoLeader: { says: { corelane_operator_leader: 0 } },
  CorelaneScalingBlind: { says: turned('ScalingActive', 'Measuring', 'NoMetrics', 0) },
  CorelaneScalingAtMaximum: { says: turned('ScalingActive', 'Measuring', 'AtMaximum', 1) },
  CorelaneRenderServiceRefused: { says: turned('Stalled', 'UpToDate', 'NotOwned', 1) },
  CorelaneRolloutStopped: { says: turned('Stalled', 'UpToDate', 'ProgressDeadlineExceeded', 1) },
  CorelaneDataPlaneHeld: {
    says: {
      ...turned('Stalled', 'UpToDate', 'ProgressDeadlineExceeded', 1),
      ...turned('DataPlaneCurrent', 'UpToDate', 'Failed', 0),
      corelane_data_plane_held: 1,
      corelane_data_plane_waiting: 3,
    },
    description: /: 3 wait, /,
  },
  CorelanePodsMissing: { says: { [replicas('ready')]: PODS - 1 } },
};

test.each(Object.entries(FAULTS))('%s', async (alert, { says = {}, grows = {}, visits, begin, end, description }) => {
  undo = end;
  const all: Record<string, number | undefined> = { ...wellPage(PODS), ...says };
  const set = () =>
    page.set(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Page);
  const grow = () => {
    for (const [series, step] of Object.entries(grows)) all[series] = (all[series] ?? 0) + step;
    set();
  };
  set();
  if (Object.keys(grows).length > 0) growing = setInterval(grow, 500);
  visitors = Visitors.start(fleet, visits);
  await untilSeen();
  await begin?.();
  const { annotations } = await untilFires(alert);
  expect(await namesOf()).toEqual([alert]);
  if (description) expect(annotations.description).toMatch(description);
});

test('CorelanePodsIsolated', async () => {
  const alone = await fleet.add(SPEC, { key: null });
  undo = async () => {
    fleet.pods.splice(fleet.pods.indexOf(alone), 1);
    await alone.stop();
  };
  page.set(wellPage(fleet.pods.length));
  await watch();
  visitors = Visitors.start(fleet);
  await untilSeen();
  await untilFires('CorelanePodsIsolated');
  expect(await namesOf()).toEqual(['CorelanePodsIsolated']);
});

test('CorelanePodsNotScraped', async () => {
  visitors = Visitors.start(fleet);
  await untilSeen();
  const [gone] = fleet.pods.splice(PODS - 1);
  await gone?.stop();
  await untilFires('CorelanePodsNotScraped');
  expect(await namesOf()).toEqual(['CorelanePodsNotScraped']);
});
