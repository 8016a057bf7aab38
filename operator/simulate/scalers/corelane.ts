/** The operator's own recommender, the very function that runs in the cluster. */
import { type Memory, measure, type PodReading, type Sample } from '../../src/autoscale/measure.ts';
import type { Policy } from '../../src/autoscale/policy.ts';
import { recommend, type State } from '../../src/autoscale/recommend.ts';
import type { PodView, Scaler, View } from './scaler.ts';

export function corelane(name: string, policy: Policy, workersPerPod: number): Scaler {
  const keptMs = Math.max(policy.up.windowMs, policy.down.windowMs) + 60_000;
  const state: State = {};
  let samples: Sample[] = [];
  let memory: Memory = new Map();
  return {
    name,
    periodS: 15,
    offsetS: 5,
    step(view) {
      const now = view.nowS * 1000;
      const look = measure(readings(view, workersPerPod), policy, now, memory);
      memory = look.memory;
      samples = [...samples.filter(({ atMs }) => atMs > now - keptMs), look.sample];
      const { replicas } = recommend(samples, view.replicas, policy, now, state);
      if (replicas > view.replicas) state.lastUpMs = now;
      if (replicas < view.replicas) state.lastDownMs = now;
      return replicas;
    },
  };
}

function readings({ pods, refusedTotal, taken, places }: View, workersPerPod: number): PodReading[] {
  const occupancy = Math.min(1, taken / Math.max(1, places));
  return pods.map((pod, index) => ({
    name: pod.name,
    state: pod.readyForS >= 0 ? 'ready' : 'starting',
    workers: Array.from({ length: workersPerPod }, () => worker(pod, occupancy)),
    takenMs: pod.takenS,
    // The queue is everybody's; the oldest pod speaks for it, because it is the last one to go.
    refusedTotal: index === 0 ? refusedTotal : 0,
  }));
}

/** All workers have the same occupancy, so how many places each has does not matter. */
function worker({ readyForS, cpu }: PodView, occupancy: number) {
  return { ageMs: readyForS * 1000, cpu, occupancy };
}
