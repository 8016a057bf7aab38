/** Pods with classes of requests, for the tests of them. */
import { type Answer, Pod, until, type WorkerEvent } from '../../e2e/harness/engine/pod.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { openStream, type Stream } from './stream.ts';

/** A class that has so many places, and for which so many more may wait. */
export const FEW_PLACES = {
  name: 'api',
  match: [{ pathPrefix: '/api' }],
  concurrency: 2,
  queue: { maxLength: 1, timeout: '60s' },
};

/** A pod of two workers that may die; the event loop of one may be blocked for so long. */
export function startMortal(stallTimeout: string): Promise<Pod> {
  return Pod.start({
    workersPerPod: 2,
    watchdog: { stallTimeout },
    classes: [
      { name: 'api', match: [{ pathPrefix: '/api' }], concurrency: 4 },
      { name: 'once', match: [{ pathPrefix: '/once' }], replay: false },
    ],
  });
}

/** Waits until both of its workers are up, for renders and for the class. */
export async function untilMortalUp(pod: Pod): Promise<void> {
  for (const backend of ['workers', 'class-api', 'class-once'])
    await until(`all are up in ${backend}`, async () => (await pod.isUp(0, backend)) && (await pod.isUp(1, backend)));
}

/** A pod whose class of events has 100 places. */
export const EVENTS: Partial<RenderServiceSpecInput> = {
  workersPerPod: 2,
  timeouts: { clientSend: '1s' },
  classes: [
    {
      name: 'events',
      match: [{ pathPrefix: '/events' }],
      concurrency: 50,
      queue: { maxLength: 0 },
      timeouts: { drain: '2s' },
    },
  ],
};

/** A stream of events: one of seven bytes, then silence until the test releases `end-ID`. */
export function openEvents(pod: Pod, id: string, more = ''): Promise<Stream> {
  return openStream(pod, `/events?id=${id}&step=head&step=write:7&step=hold:end-${id}${more}`);
}

/** Status and reason of an answer. */
export const reason = ({ status, headers }: Answer) => [status, headers['x-corelane-error']];

/** Most requests whose id begins so that a process had at a time. */
export function overlap(pod: Pod, prefix: string): number {
  const now = new Map<number, Set<string>>();
  let most = 0;
  for (const { event, id, pid } of pod.events().filter(({ id }: WorkerEvent) => id?.startsWith(prefix))) {
    const own = now.get(pid) ?? new Set();
    now.set(pid, own);
    if (event === 'begin') own.add(id as string);
    if (event === 'end') own.delete(id as string);
    most = Math.max(most, own.size);
  }
  return most;
}
