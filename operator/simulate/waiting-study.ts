/**
 * Renders that wait, one at a time and as many as Auto finds: what per-core CPU and occupancy mean then, how many pods
 * a load takes, and what thresholds make of a flash crowd. Computes only.
 */
import { type ScalingSpec, scaling } from '../src/api/scaling.ts';
import { RANGE_DEFAULT } from '../src/api/spec/concurrency.ts';
import { type Policy, policyOf } from '../src/autoscale/policy.ts';
import { needOf, ORACLE_AHEAD_S, players, type Scenario } from './compare.ts';
import { type Concurrency, mostCpu, settledLimit } from './concurrency.ts';
import type { FleetModel } from './fleet.ts';
import { plan } from './plan.ts';
import type { Objective, Times } from './queueing.ts';
import { type Result, run } from './run.ts';
import { hpa } from './scalers/hpa.ts';
import { oracle } from './scalers/others.ts';
import type { View } from './scalers/scaler.ts';
import { waitRatioOf } from './staffing.ts';
import { generatedDay, type Trace } from './trace.ts';

/** A sort of page. */
interface Renders {
  name: string;
  renderMeanS: number;
  wait?: Times;
  objective: Objective;
}

const RENDERS = {
  compute: { name: '80 ms of CPU', renderMeanS: 0.08, objective: { quantile: 0.99, limitS: 0.5 } },
  half: {
    name: '40 ms + 40 ms',
    renderMeanS: 0.04,
    wait: { meanS: 0.04, cv: 1 },
    objective: { quantile: 0.99, limitS: 0.5 },
  },
  third: {
    name: '30 ms + 100 ms',
    renderMeanS: 0.03,
    wait: { meanS: 0.1, cv: 1 },
    objective: { quantile: 0.99, limitS: 0.7 },
  },
  tenth: {
    name: '10 ms + 90 ms',
    renderMeanS: 0.01,
    wait: { meanS: 0.09, cv: 1 },
    objective: { quantile: 0.99, limitS: 0.6 },
  },
} satisfies Record<string, Renders>;

/** Of renders, and how many a worker has at a time. */
interface Setting {
  renders: Renders;
  concurrency: Concurrency;
}
const bothOf = (renders: Renders): Setting[] => [
  { renders, concurrency: 1 },
  { renders, concurrency: RANGE_DEFAULT },
];

const WORKERS_PER_POD = 4;
const SEED = 1;

/** Names of a setting, as tables have them. */
export interface Named {
  renders: string;
  /** `1`, or `Auto`. */
  concurrency: string;
}

function named({ renders, concurrency }: Setting): Named {
  return { renders: renders.name, concurrency: typeof concurrency === 'number' ? String(concurrency) : 'Auto' };
}

function modelOf({ renders: { renderMeanS, wait }, concurrency }: Setting): FleetModel {
  return {
    ...{ workersPerPod: WORKERS_PER_POD, renderMeanS, renderCv: 1, wait, concurrency },
    ...{ startS: 20, warmFactor: 3, warmS: 20, warmCpu: 0.5, queueLengthPerPod: 100, queueTimeoutS: 10 },
  };
}

/** A fleet under a steady load. */
export interface LoadPoint extends Named {
  waitRatio: number;
  /** Renders of a worker at a time. */
  limit: number;
  /** Share of what the fleet can do. */
  load: number;
  cpu: number;
  occupancy: number;
  p99Ms: number;
}

const LOADS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95];
const LOAD_PODS = 5;
const LOAD_REQUESTS = 100_000;

function loadPoint(setting: Setting, load: number): LoadPoint {
  const { renders, concurrency } = setting;
  const waitRatio = waitRatioOf(renders);
  const rps = (load * LOAD_PODS * WORKERS_PER_POD * mostCpu(concurrency, waitRatio)) / renders.renderMeanS;
  const stepS = 60;
  const trace = { stepS, rps: Array<number>(Math.max(2, Math.ceil(LOAD_REQUESTS / rps / stepS))).fill(rps) };
  let [taken, places] = [0, 0];
  const step = (view: View) => {
    taken += view.taken;
    places += view.places;
    return LOAD_PODS;
  };
  const watch = { name: 'load', periodS: 2, offsetS: 0, step };
  const { p99Ms } = run(watch, { trace, model: modelOf(setting), ...renders, seed: SEED, begin: LOAD_PODS });
  return {
    ...named(setting),
    waitRatio: Number(waitRatio.toFixed(2)),
    limit: settledLimit(concurrency, waitRatio),
    load,
    cpu: (rps * renders.renderMeanS) / (LOAD_PODS * WORKERS_PER_POD),
    occupancy: taken / places,
    p99Ms,
  };
}

/** Pods for a load. */
export interface PlanPoint extends Named {
  rps: number;
  limitMs: number;
  pods: number;
  limit: number;
  cpu: number;
  mostCpu: number;
  occupancy: number;
  p99Ms: number;
}

function planPoint(setting: Setting, rps: number): PlanPoint {
  const { renders, concurrency } = setting;
  const { objective, renderMeanS, wait } = renders;
  const load = { rps, renderMeanS, renderCv: 1, wait, concurrency };
  const planned = plan({ load, objective, workersPerPod: WORKERS_PER_POD, seed: SEED });
  if (!planned.isPossible) throw new Error(`no fleet holds the objective of ${renders.name}`);
  const { pods, limit, utilization: cpu, mostUtilization, occupancy, simulatedMs: p99Ms } = planned;
  return {
    ...named(setting),
    rps,
    limitMs: 1000 * objective.limitS,
    pods,
    limit,
    cpu,
    mostCpu: mostUtilization,
    occupancy,
    p99Ms,
  };
}

/** A policy through the flash crowd. */
export interface CrowdResult extends Named {
  policy: string;
  coreHours: number;
  /** Of the objective, which allows 1 %. */
  missed: number;
  refused: number;
  flaps: number;
  fewestPods: number;
  mostPods: number;
  reachedS?: number | undefined;
}

/** Two hours of the generated day, around its flash crowd. */
const CROWD = { peakRps: 240, fromStep: 13 * 60 + 15, toStep: 15 * 60 + 15 };
const BOUNDS = { min: 1, max: 100 };

function flashCrowd(): Trace {
  const { stepS, rps } = generatedDay(CROWD.peakRps, SEED);
  return { stepS, rps: rps.slice(CROWD.fromStep, CROWD.toStep) };
}

function policy(spec: object): Policy {
  return policyOf(scaling.parse({ minReplicas: BOUNDS.min, maxReplicas: BOUNDS.max, ...spec }) as ScalingSpec);
}

/** Thresholds on CPU that leave as much room as 60/45 leaves where a worker can use all of its core. */
function cpuOf(most: number): Policy {
  const percent = (ratio: number) => Math.max(1, Math.round(100 * ratio * most));
  const [abovePercent, belowPercent] = [percent(0.6), percent(0.45)];
  return policy({ cpu: { scaleUp: { abovePercent }, scaleDown: { belowPercent } } });
}

/** The head-room of the default, where a worker has one render at a time. */
const AMPLE = { scaleUp: { abovePercent: 20 }, scaleDown: { belowPercent: 15 } };

function crowdResults(setting: Setting): CrowdResult[] {
  const { objective } = setting.renders;
  const model = modelOf(setting);
  const scenario: Scenario = { trace: flashCrowd(), model, objective, seed: SEED, policy: policy({}) };
  const need = needOf(scenario);
  const { play, playPolicy, steady } = players(scenario, need);
  const begin = need(scenario.trace.rps[0] as number);
  const results: Result[] = [
    playPolicy(policy({})),
    playPolicy(cpuOf(mostCpu(setting.concurrency, waitRatioOf(model)))),
    playPolicy(policy({ occupancy: {} })),
    playPolicy(policy({ occupancy: AMPLE })),
    play(hpa('HPA 70 %', { ...BOUNDS, target: 0.7 }), steady('cpu', 0.7)),
    play(oracle('oracle', scenario.trace, need, ORACLE_AHEAD_S, BOUNDS), begin),
  ];
  return results.map(({ name, coreHours, missed, refused, flaps, mostPods, reachedS, slots }) => ({
    ...named(setting),
    ...{ policy: name, coreHours, missed, refused, flaps, mostPods, reachedS },
    // At the end there is nothing ahead that an oracle could know.
    fewestPods: Math.min(...slots.slice(0, -1).map(({ replicas }) => replicas)),
  }));
}

export interface WaitingStudy {
  loads: LoadPoint[];
  plans: PlanPoint[];
  crowd: CrowdResult[];
}

/** All of it; the same each time. */
export function waitingStudy(): WaitingStudy {
  const { compute, half, third, tenth } = RENDERS;
  const single: Setting = { renders: compute, concurrency: 1 };
  const settings = [single, ...bothOf(half), ...bothOf(third), ...bothOf(tenth)];
  return {
    loads: settings.flatMap((setting) => LOADS.map((load) => loadPoint(setting, load))),
    plans: settings.flatMap((setting) => [120, 600].map((rps) => planPoint(setting, rps))),
    crowd: [single, ...bothOf(third), ...bothOf(tenth)].flatMap(crowdResults),
  };
}
