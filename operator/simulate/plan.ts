/** How many pods a load takes: the queueing model's answer, checked by the simulator. */
import type { FleetModel } from './fleet.ts';
import { type Load, latencyQuantile, type Objective, workersFor } from './queueing.ts';
import { type Result, run } from './run.ts';
import { fixed } from './scalers/others.ts';

export interface PlanOptions {
  load: Load;
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
      /** Of each worker, at this load. */
      utilization: number;
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
  const needed = workersFor(load, objective);
  if (needed === undefined) {
    return { isPossible: false, renderQuantileS: latencyQuantile({ ...load, rps: 0 }, 1, objective.quantile) };
  }
  const byModel = Math.ceil(needed / workersPerPod);
  let pods = byModel;
  let checked = check(pods, { load, objective, workersPerPod, seed });
  while (checked.p99Ms > objective.limitS * 1000 * TOLERANCE && pods < byModel + ADDED_MAX) {
    pods += 1;
    checked = check(pods, { load, objective, workersPerPod, seed });
  }
  const workers = pods * workersPerPod;
  return {
    isPossible: true,
    workers,
    pods,
    cores: workers,
    utilization: (load.rps * load.renderMeanS) / workers,
    modelS: latencyQuantile(load, workers, objective.quantile),
    simulatedMs: checked.p99Ms,
    added: pods - byModel,
  };
}

/** The load, steady, on warm pods. */
function check(pods: number, { load, objective, workersPerPod, seed }: PlanOptions): Result {
  const stepS = 60;
  const steps = Math.max(2, Math.ceil(REQUESTS / load.rps / stepS));
  const model: FleetModel = {
    workersPerPod,
    renderMeanS: load.renderMeanS,
    renderCv: load.renderCv,
    startS: 1,
    warmFactor: 1,
    warmS: 1,
    warmCpu: 0,
    queueLengthPerPod: 10_000,
    queueTimeoutS: 3600,
  };
  const trace = { stepS, rps: Array<number>(Math.min(steps, 10_080)).fill(load.rps) };
  return run(fixed('plan', pods), { trace, model, objective, seed, begin: pods });
}
