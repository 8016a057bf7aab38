/**
 * The HorizontalPodAutoscaler's algorithm on CPU, as in Kubernetes 1.36 (pkg/controller/podautoscaler:
 * replica_calculator.go and horizontal.go): pods that are not ready or not measured, tolerance, stabilisation,
 * behaviour policies.
 */
import { type Bounds, clamp, type PodView, type Scaler } from './scaler.ts';

export interface HpaOptions extends Bounds {
  /** Target of usage over request, 0.7 for 70 %. */
  target: number;
  tolerance?: number;
  downStabilizationS?: number;
  /** Scale-up policies: the one that allows more counts. */
  upPercent?: number;
  upPods?: number;
  upPeriodS?: number;
}

interface Change {
  atS: number;
  by: number;
}

/** kube-controller-manager's --horizontal-pod-autoscaler-initial-readiness-delay. */
const METRICS_RESOLUTION_S = 15;

export function hpa(name: string, options: HpaOptions): Scaler {
  const { target, tolerance = 0.1, downStabilizationS = 300, upPercent = 100, upPods = 4, upPeriodS = 15 } = options;
  let recommendations: { atS: number; replicas: number }[] = [];
  let ups: Change[] = [];
  return {
    name,
    periodS: 15,
    offsetS: 5,
    step({ nowS, replicas, pods }) {
      const raw = desired(pods, replicas, target, tolerance);
      recommendations = [
        ...recommendations.filter(({ atS }) => atS > nowS - downStabilizationS),
        { atS: nowS, replicas: raw },
      ];
      // Down only to the highest recommendation of the stabilisation window; up at once.
      const highest = Math.max(...recommendations.map((one) => one.replicas));
      const stabilized = raw > replicas ? raw : Math.min(replicas, Math.max(raw, highest));
      ups = ups.filter(({ atS }) => atS > nowS - upPeriodS);
      const before = replicas - ups.reduce((sum, { by }) => sum + by, 0);
      const limit = Math.max(before + upPods, Math.ceil(before * (1 + upPercent / 100)));
      const result = clamp(
        stabilized > replicas ? Math.min(stabilized, Math.max(limit, replicas)) : stabilized,
        options,
      );
      if (result > replicas) ups.push({ atS: nowS, by: result - replicas });
      return result;
    },
  };
}

function desired(pods: PodView[], current: number, target: number, tolerance: number): number {
  // A pod counts from its first metrics that were all taken while it was ready.
  const isCounted = ({ readyForS, cpu }: PodView) => cpu !== undefined && readyForS >= METRICS_RESOLUTION_S;
  const ready = pods.filter(isCounted).map(({ cpu }) => cpu as number);
  const unready = pods.length - ready.length;
  if (ready.length === 0) return current;
  const ratio = percent(ready) / (100 * target);
  if (unready === 0) return isTolerated(ratio, tolerance) ? current : Math.ceil(ratio * ready.length);
  // Pods that start count as 0 % on the way up, and not at all on the way down.
  const values = ratio > 1 ? [...ready, ...Array<number>(unready).fill(0)] : ready;
  const adjusted = percent(values) / (100 * target);
  if (isTolerated(adjusted, tolerance) || ratio > 1 !== adjusted > 1) return current;
  const next = Math.ceil(adjusted * values.length);
  return ratio > 1 === next > current ? next : current;
}

function isTolerated(ratio: number, tolerance: number): boolean {
  return ratio >= 1 - tolerance && ratio <= 1 + tolerance;
}

/** The API server has whole percents. */
function percent(values: number[]): number {
  return Math.floor((100 * values.reduce((sum, value) => sum + value, 0)) / values.length + 1e-9);
}
