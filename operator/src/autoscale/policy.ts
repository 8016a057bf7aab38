/** `spec.scaling` as numbers: what the recommender works from. */
import { durationMs } from '../api/scalars.ts';
import { DEFAULT_CPU, type ScalingSpec } from '../api/scaling.ts';

export type Signal = 'cpu' | 'occupancy';

export interface Step {
  /** Ratio, 0.2 for 20 %. */
  above: number;
  add: number;
}

export interface Policy {
  minReplicas: number;
  maxReplicas: number;
  signal: Signal;
  statistic: 'Average' | 'Max';
  up: { steps: Step[]; windowMs: number; cooldownMs: number };
  down: { below: number; remove: number; windowMs: number; cooldownMs: number };
  /** Undefined where refused requests are not to count. */
  queue: { add: number; cooldownMs: number } | undefined;
  warmUpMs: number;
}

/** Policy of a checked, defaulted `spec.scaling`. */
export function policyOf(scaling: ScalingSpec): Policy {
  const { statistic, scaleUp, scaleDown } = scaling.occupancy ?? scaling.cpu ?? DEFAULT_CPU;
  const steps = [scaleUp, ...scaleUp.steps].map(({ abovePercent, addReplicas }) => ({
    above: abovePercent / 100,
    add: addReplicas,
  }));
  return {
    minReplicas: scaling.minReplicas,
    maxReplicas: scaling.maxReplicas,
    signal: scaling.occupancy ? 'occupancy' : 'cpu',
    statistic,
    up: {
      steps: steps.toSorted((one, other) => one.above - other.above),
      windowMs: durationMs(scaleUp.window),
      cooldownMs: durationMs(scaleUp.cooldown),
    },
    down: {
      below: scaleDown.belowPercent / 100,
      remove: scaleDown.removeReplicas,
      windowMs: durationMs(scaleDown.window),
      cooldownMs: durationMs(scaleDown.cooldown),
    },
    queue: scaling.queue.enabled
      ? { add: scaling.queue.addReplicas, cooldownMs: durationMs(scaling.queue.cooldown) }
      : undefined,
    warmUpMs: durationMs(scaling.warmUp),
  };
}
