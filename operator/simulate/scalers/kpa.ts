/**
 * Knative's pod autoscaler (knative.dev/serving pkg/autoscaler/scaling/autoscaler.go): concurrency over a stable and a
 * panic window. Defaults of its config-autoscaler. Its containerConcurrency is what the workers have at a time: with
 * Auto what they have found, which in a cluster somebody would have to write down.
 */
import { type Bounds, clamp, type Scaler } from './scaler.ts';

const TICK_S = 2;
const STABLE_S = 60;
const PANIC_S = 6;
/** Of the container's concurrency. */
const TARGET_UTILIZATION = 0.7;
const PANIC_THRESHOLD = 2;
const MAX_UP_RATE = 1000;
const MAX_DOWN_RATE = 2;

export function kpa(name: string, bounds: Bounds, workersPerPod: number): Scaler {
  const stable: number[] = [];
  let panicSinceS: number | undefined;
  let panicPods = 0;
  return {
    name,
    periodS: TICK_S,
    offsetS: 0,
    step({ nowS, pods, concurrency, places }) {
      stable.push(concurrency);
      if (stable.length > STABLE_S / TICK_S) stable.shift();
      const ready = Math.max(1, pods.filter(({ readyForS }) => readyForS >= 0).length);
      const target = TARGET_UTILIZATION * (places > 0 ? places / ready : workersPerPod);
      const want = (values: number[]) => {
        const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
        const wanted = Math.ceil(mean / target);
        return Math.min(Math.max(wanted, Math.floor(ready / MAX_DOWN_RATE)), Math.ceil(ready * MAX_UP_RATE));
      };
      const inStable = want(stable);
      const panicValues = stable.slice(-PANIC_S / TICK_S);
      const inPanic = want(panicValues);
      if (inPanic / ready >= PANIC_THRESHOLD) panicSinceS = nowS;
      else if (panicSinceS !== undefined && nowS - panicSinceS > STABLE_S) {
        panicSinceS = undefined;
        panicPods = 0;
      }
      if (panicSinceS === undefined) return clamp(inStable, bounds);
      // In panic it never shrinks.
      panicPods = Math.max(panicPods, inStable, inPanic);
      return clamp(panicPods, bounds);
    },
  };
}
