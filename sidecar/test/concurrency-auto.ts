/** Figures of a pod with `concurrency: Auto`: how many requests workers and queue take at a time. */
import type { Pod } from '../../e2e/harness/engine/pod.ts';

/** What the pod says of its numbers. */
export function numbers(thePod: () => Pod) {
  const limitOf = (worker: number) => thePod().runtimeMetric(worker, 'corelane_worker_concurrency_limit');
  const placesIn = (server: string) => thePod().metric(`haproxy_server_limit_sessions{${server}}`);
  const placesOf = (worker: number) => placesIn(`proxy="workers",server="worker-${worker}"`);
  const inLine = () => placesIn('proxy="line",server="slots"');

  /** Most requests that a process of the program had at a time. */
  const mostInFlight = (from = 0) =>
    Math.max(
      0,
      ...thePod()
        .events({ event: 'begin' })
        .flatMap(({ inFlight = 0, at }) => (at >= from ? [inFlight] : [])),
    );

  return { limitOf, placesIn, placesOf, inLine, mostInFlight };
}
