/** What `explain` and `top` know, for programs. Computes only; fields are only added. */
import type { ServiceEvent } from './events.ts';
import { explain, named } from './explain.ts';
import { findingsOf } from './findings.ts';
import { inOrder, type Lane } from './lanes.ts';
import { type Snapshot, workersOf } from './snapshot.ts';
import type { Window } from './window.ts';
import { isSilent, stateOf } from './worker-state.ts';

/** A service: its numbers, what limits it (the first of the findings), and the same in words. */
export function serviceReport(snapshot: Snapshot, window: Window) {
  const { name, namespace, atMs, pods, podsNotAsked, status } = snapshot;
  const workers = workersOf(snapshot);
  const { failures, ...numbers } = window;
  return {
    ...{ namespace, name, time: new Date(atMs).toISOString() },
    ...numbers,
    failures: Object.fromEntries(failures),
    waiting: pods.reduce((sum, { figures }) => sum + (figures?.queue ?? 0), 0),
    pods: {
      all: pods.length + podsNotAsked,
      ready: pods.filter(({ state }) => state === 'ready').length,
      asked: pods.filter(({ figures }) => figures).length,
      notTold: pods.flatMap(({ name: pod, silence }) => (silence === undefined ? [] : [{ name: pod, why: silence }])),
    },
    workers: {
      all: workers.length,
      busy: workers.filter(({ up, busy }) => up && busy > 0).length,
      down: workers.filter(({ up }) => !up).length,
      silent: workers.filter(isSilent).length,
    },
    findings: findingsOf(snapshot, window).map(({ code, what, next }) => ({
      ...{ code, what: named(what, snapshot) },
      ...(next !== undefined && { next: named(next, snapshot) }),
    })),
    ...(status.scaling?.lastDecision && { lastScaling: status.scaling.lastDecision }),
    text: explain(snapshot, window),
  };
}

/** @param events undefined: nobody could say */
export function explainReport(snapshot: Snapshot, window: Window, events: ServiceEvent[] | undefined) {
  const told = events?.map(({ atMs, ...event }) => ({ time: new Date(atMs).toISOString(), ...event }));
  return { ...serviceReport(snapshot, window), events: told ?? null };
}

/** A service and each of its workers, those in trouble first. */
export function topReport(snapshot: Snapshot, window: Window, lanes: Lane[]) {
  return {
    ...serviceReport(snapshot, window),
    lanes: inOrder(lanes, 'stuck').map(({ pod, worker, requests, cpu }) => ({
      ...{ pod, worker: worker.name, state: stateOf(worker), up: worker.up, busy: worker.busy },
      ...{ silentSeconds: worker.silentS, cpu, requests, rendered: worker.requests, restarts: worker.restarts },
      ...{ memoryBytes: worker.memoryBytes, oldSpaceBytes: worker.oldSpaceBytes },
      ...(worker.lastStall && {
        lastStall: { time: new Date(worker.lastStall.atMs).toISOString(), in: worker.lastStall.in },
      }),
    })),
  };
}
