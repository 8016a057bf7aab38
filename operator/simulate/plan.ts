/** How many pods a load takes: the queueing model's answer, checked by the simulator. */
import { mostCpu, settledLimit } from './concurrency.ts';
import type { FleetModel } from './fleet.ts';
import type { Objective } from './queueing.ts';
import { run } from './run.ts';
import type { View } from './scalers/scaler.ts';
import { type Demand, quantileWith, waitRatioOf, workersNeeded } from './staffing.ts';

export interface PlanOptions {
  load: Demand;
  objective: Objective;
  workersPerPod: number;
  seed: number;
}

export type Plan =
  | {
      isPossible: true;
      workers: number;
      pods: number;
      cores: number;
      /** CPU of each worker, at this load. */
      utilization: number;
      /** The same of a worker that is never without work. */
      mostUtilization: number;
      /** Renders of a worker at a time, at most, and how much of that is taken at this load. */
      limit: number;
      occupancy: number;
      /** The objective's quantile by the model, and as simulated. */
      modelS: number;
      simulatedMs: number;
      /** Pods that the simulation needed beyond the model's. */
      added: number;
    }
  | { isPossible: false /** The objective's quantile of a render that never waits. */; renderQuantileS: number };

/** Requests that are simulated: a p99 of 300,000 is good to about a percent. */
const REQUESTS = 300_000;
/** The simulation has noise, and counts latencies in buckets of 2 %. */
const TOLERANCE = 1.03;
const ADDED_MAX = 20;

export function plan({ load, objective, workersPerPod, seed }: PlanOptions): Plan {
  const needed = workersNeeded(load, objective);
  if (needed === undefined) {
    return { isPossible: false, renderQuantileS: quantileWith({ ...load, rps: 0 }, 1, objective.quantile) };
  }
  const byModel = Math.ceil(needed / workersPerPod);
  let pods = byModel;
  let checked = check(pods, { load, objective, workersPerPod, seed });
  while (checked.p99Ms > objective.limitS * 1000 * TOLERANCE && pods < byModel + ADDED_MAX) {
    pods += 1;
    checked = check(pods, { load, objective, workersPerPod, seed });
  }
  const workers = pods * workersPerPod;
  const { concurrency = 1 } = load;
  const waitRatio = waitRatioOf(load);
  return {
    isPossible: true,
    workers,
    pods,
    cores: workers,
    utilization: (load.rps * load.renderMeanS) / workers,
    mostUtilization: mostCpu(concurrency, waitRatio),
    limit: settledLimit(concurrency, waitRatio),
    occupancy: checked.occupancy,
    modelS: quantileWith(load, workers, objective.quantile),
    simulatedMs: checked.p99Ms,
    added: pods - byModel,
  };
}

/** Whether `pods` hold the objective, as simulated. */
export function keeps(pods: number, options: PlanOptions): { isKept: boolean; simulatedMs: number } {
  const { p99Ms } = check(pods, options);
  return { isKept: p99Ms <= options.objective.limitS * 1000 * TOLERANCE, simulatedMs: p99Ms };
}

interface Checked {
  /** The objective's quantile. */
  p99Ms: number;
  occupancy: number;
}

/** The load, steady, on warm pods. */
function check(pods: number, { load, objective, workersPerPod, seed }: PlanOptions): Checked {
  const stepS = 60;
  const steps = Math.max(2, Math.ceil(REQUESTS / load.rps / stepS));
  const model: FleetModel = {
    workersPerPod,
    renderMeanS: load.renderMeanS,
    renderCv: load.renderCv,
    wait: load.wait,
    concurrency: load.concurrency,
    startS: 1,
    warmFactor: 1,
    warmS: 1,
    warmCpu: 0,
    queueLengthPerPod: 10_000,
    queueTimeoutS: 3600,
  };
  const trace = { stepS, rps: Array<number>(Math.min(steps, 10_080)).fill(load.rps) };
  let taken = 0;
  let places = 0;
  const watch = (view: View) => {
    taken += view.taken;
    places += view.places;
    return pods;
  };
  const watching = { name: 'plan', periodS: 2, offsetS: 0, step: watch };
  const { p99Ms } = run(watching, { trace, model, objective, seed, begin: pods });
  return { p99Ms, occupancy: taken / places };
}
