/** The policies side by side through the same day. */
import { type ScalingSpec, scaling } from '../src/api/scaling.ts';
import { type Policy, policyOf } from '../src/autoscale/policy.ts';
import { settledLimit } from './concurrency.ts';
import type { FleetModel } from './fleet.ts';
import { plan } from './plan.ts';
import type { Objective } from './queueing.ts';
import { type Result, run } from './run.ts';
import { corelane } from './scalers/corelane.ts';
import { hpa } from './scalers/hpa.ts';
import { kpa } from './scalers/kpa.ts';
import { fixed, oracle } from './scalers/others.ts';
import { clamp, type Scaler } from './scalers/scaler.ts';
import { waitRatioOf, workersNeeded } from './staffing.ts';
import { peakBetween, steepestRise, type Trace } from './trace.ts';

export interface Scenario {
  trace: Trace;
  model: FleetModel;
  objective: Objective;
  seed: number;
  policy: Policy;
}

/** Between the thresholds: what a fleet stands at of the upper one. */
const BEGIN = 0.875;
/** Knows what comes for as long as a pod takes to come and to be warm. */
export const ORACLE_AHEAD_S = 180;

/** Pods that hold the objective at a rate, by the queueing model. */
function podsFor({ model, objective }: Pick<Scenario, 'model' | 'objective'>, rps: number): number | undefined {
  const workers = workersNeeded({ rps, ...model }, objective);
  return workers && Math.ceil(workers / model.workersPerPod);
}

/**
 * Pods at which per-core CPU (or occupancy) at the day's peak stands at the policy's threshold: the same head-room,
 * always.
 */
function podsByRule({ trace, model, policy }: Scenario): number {
  const offered = peakBetween(trace, 0, Number.MAX_SAFE_INTEGER) * offeredBy(model)[policy.signal];
  return Math.ceil(offered / (policy.up.steps[0]?.above ?? 1) / model.workersPerPod);
}

/** What one request per second adds to the CPU of a worker, and to its occupancy if nothing waits for the CPU. */
function offeredBy(model: FleetModel): Record<Policy['signal'], number> {
  const { renderMeanS, wait, concurrency = 1 } = model;
  const heldS = renderMeanS + (wait?.meanS ?? 0);
  return { cpu: renderMeanS, occupancy: heldS / settledLimit(concurrency, waitRatioOf(model)) };
}

/**
 * Pods for a rate. Where workers have several renders at a time the model promises too much: by as much as the
 * simulation needs more at the peak.
 * @throws Error when no fleet can hold the objective
 */
export function needOf(scenario: Scenario): (rps: number) => number {
  const { trace, model, objective, seed } = scenario;
  const peak = peakBetween(trace, 0, Number.MAX_SAFE_INTEGER);
  const byModel = podsFor(scenario, peak);
  if (byModel === undefined) throw new Error('no fleet holds this objective: a render alone takes too long');
  if ((model.concurrency ?? 1) === 1) return (rps) => podsFor(scenario, rps) as number;
  const planned = plan({ load: { rps: peak, ...model }, objective, workersPerPod: model.workersPerPod, seed });
  const more = planned.isPossible ? planned.pods / byModel : 1;
  return (rps) => Math.ceil((podsFor(scenario, rps) as number) * more);
}

interface Players {
  /** @param begin pods that the day begins with */
  play(scaler: Scaler, begin: number): Result;
  playPolicy(policy: Policy): Result;
  /** The pods that a day would begin with if yesterday had been like today, at this share of the signal. */
  steady(signal: Policy['signal'], ratio: number): number;
}

/** Of one day. */
export function players(scenario: Scenario, need: (rps: number) => number): Players {
  const { trace, model } = scenario;
  const bounds = { min: scenario.policy.minReplicas, max: scenario.policy.maxReplicas };
  const { atS, rps } = steepestRise(trace);
  const rise = { atS, pods: need(rps) };
  const offered = offeredBy(model);
  const first = trace.rps[0] as number;
  // CPU of renders that wait may say that none is needed: nobody begins a day with a fleet that is too small.
  const least = model.wait ? need(first) : 1;
  const steady: Players['steady'] = (signal, ratio) =>
    clamp(Math.max(least, Math.ceil((first * offered[signal]) / ratio / model.workersPerPod)), bounds);
  const play: Players['play'] = (scaler, begin) => run(scaler, { ...scenario, begin, rise });
  return {
    play,
    steady,
    playPolicy(policy) {
      const share = (policy.up.steps[0]?.above ?? 1) * BEGIN;
      return play(corelane(policyName(policy), policy, model.workersPerPod), steady(policy.signal, share));
    },
  };
}

/** What is compared with what; the results come in this order. */
export interface Comparison {
  results: Result[];
  /** The policy, and what it is measured against. */
  policy: Result;
  fixedByRule: Result;
  fixedPlanned: Result;
  hpa: Result;
}

/**
 * Runs the policy, its peers and its bounds.
 * @throws Error when no fleet can hold the objective
 */
export function compare(scenario: Scenario): Comparison {
  const { trace, model, policy } = scenario;
  const need = needOf(scenario);
  const planned = need(peakBetween(trace, 0, Number.MAX_SAFE_INTEGER));
  const byRule = podsByRule(scenario);
  const bounds = { min: policy.minReplicas, max: policy.maxReplicas };
  const { play, playPolicy, steady } = players(scenario, need);
  const own = playPolicy(policy);
  const others = policy.signal === 'cpu' ? [playPolicy({ ...OCCUPANCY, ...limits(policy) })] : [];
  const hpaResult = play(hpa('HPA 70 %', { ...bounds, target: 0.7 }), steady('cpu', 0.7));
  const fixedByRule = play(fixed(`fixed fleet, same head-room`, byRule), byRule);
  const fixedPlanned = play(fixed('fixed fleet, smallest', planned), planned);
  return {
    results: [
      own,
      ...others,
      hpaResult,
      play(kpa('Knative KPA', bounds, model.workersPerPod), steady('occupancy', 0.7)),
      fixedByRule,
      fixedPlanned,
      play(oracle('oracle', trace, need, ORACLE_AHEAD_S, bounds), need(trace.rps[0] as number)),
    ],
    policy: own,
    fixedByRule,
    fixedPlanned,
    hpa: hpaResult,
  };
}

/** `spec.scaling.occupancy` with its defaults, to show what another signal makes of the same day. */
const OCCUPANCY = policyOf(scaling.parse({ maxReplicas: 1, occupancy: {} }) as ScalingSpec);

function limits({ minReplicas, maxReplicas }: Policy) {
  return { minReplicas, maxReplicas };
}

function policyName({ signal, up, down }: Policy): string {
  const first = up.steps[0];
  const what = signal === 'cpu' ? 'CPU' : 'occupancy';
  return `Corelane, ${what} ${Math.round((first?.above ?? 0) * 100)}/${Math.round(down.below * 100)}`;
}
