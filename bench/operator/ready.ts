/** How long a fleet needs from `kubectl apply` until all of it is ready. */
import { setTimeout as delay } from 'node:timers/promises';
import { Arrivals, type Row } from './arrivals.ts';
import type { Cluster } from './cluster.ts';
import { type Shape, servicesOf } from './shape.ts';
import { TableWatch } from './table-watch.ts';

const LOOK_MS = 50;
const TELL_MS = 20_000;
/** Ten thousand pods are there in five minutes on two cores. */
const READY_MS_MAX = 30 * 60_000;

export interface Readiness {
  /** When kubectl was done. */
  appliedS: number;
  /** When the last service became ready. */
  readyS: number;
  /** When each did, in their order. */
  timesS: number[];
}

/**
 * Applies the objects and waits.
 * @param path of the collection whose rows tell who is ready
 * @param check fails early when there is nothing to wait for any more
 * @throws Error after half an hour
 */
export async function untilReady(
  cluster: Cluster,
  shape: Shape,
  { objects, path, isReady }: { objects: object[]; path: string; isReady: (row: Row, pods: number) => boolean },
  check: () => void = () => {},
): Promise<Readiness> {
  const names = servicesOf(shape).map(({ name }) => name);
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1_000;
  const arrivals = new Arrivals(names, (row) => isReady(row, shape.pods));
  const watch = new TableWatch(cluster.server.adminKubeconfig, path, (row) => arrivals.see(nameOf(row), seconds()));
  try {
    let appliedS = Number.NaN;
    let failure: Error | undefined;
    cluster.apply(objects).then(
      () => {
        appliedS = seconds();
      },
      (error) => {
        failure = error;
      },
    );
    let toldMs = began;
    while (arrivals.left > 0 || Number.isNaN(appliedS)) {
      if (failure) throw failure;
      check();
      if (seconds() * 1_000 > READY_MS_MAX) throw new Error(`${arrivals.left} services are not ready after 30 minutes`);
      if (performance.now() - toldMs > TELL_MS) {
        toldMs = performance.now();
        process.stderr.write(
          `${names.length - arrivals.left} of ${names.length} ready after ${Math.round(seconds())} s ... `,
        );
      }
      await delay(LOOK_MS);
    }
    return { appliedS, readyS: Math.max(appliedS, arrivals.timesS.at(-1) ?? 0), timesS: arrivals.timesS };
  } finally {
    watch.stop();
  }
}

/** A Deployment of a revision has the name of its service before the hyphen. */
function nameOf(row: Row): Row {
  return { ...row, Name: String(row.Name).split('-')[0] ?? '' };
}
