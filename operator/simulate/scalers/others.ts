/** The two ends of the scale: a fleet that never changes, and one that knows the future. */
import { peakBetween, type Trace } from '../trace.ts';
import { type Bounds, clamp, type Scaler } from './scaler.ts';

/** A fixed number of pods. */
export function fixed(name: string, replicas: number): Scaler {
  return { name, periodS: 3600, offsetS: 0, step: () => replicas };
}

/**
 * Knows the traffic ahead and what it needs: the bound that no policy can beat without missing the objective.
 * @param need pods for a rate
 * @param aheadS how early a pod must be ordered so that it is there and warm
 */
export function oracle(
  name: string,
  trace: Trace,
  need: (rps: number) => number,
  aheadS: number,
  bounds: Bounds,
): Scaler {
  return {
    name,
    periodS: 30,
    offsetS: 0,
    step: ({ nowS }) => clamp(need(peakBetween(trace, nowS, nowS + aheadS)), bounds),
  };
}
