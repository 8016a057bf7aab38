/** What decides about the number of pods, as the simulator sees it. */

export interface PodView {
  name: string;
  /** Negative while it starts. */
  readyForS: number;
  ageS: number;
  /** Mean over the workers of used over requested CPU, from the last metrics; undefined before its first ones. */
  cpu: number | undefined;
  takenS: number | undefined;
}

export interface View {
  nowS: number;
  /** Pods that are wanted. */
  replicas: number;
  pods: PodView[];
  /** Requests in the fleet, waiting ones included, on average since the last look of the simulator. */
  concurrency: number;
  /** Of these, those in progress. */
  taken: number;
  /** Requests that the ready pods take at a time now; with `concurrency: Auto` it changes. */
  places: number;
  refusedTotal: number;
}

export interface Scaler {
  name: string;
  /** Looks every so often, and a little after the metrics have come. */
  periodS: number;
  offsetS: number;
  /** Wanted pods. */
  step(view: View): number;
}

export interface Bounds {
  min: number;
  max: number;
}

export function clamp(replicas: number, { min, max }: Bounds): number {
  return Math.min(Math.max(replicas, min), max);
}
