/** The bound: one perfect FIFO queue in front of all workers, without any way in between. Computes only. */

export interface Work {
  /** When it arrives and how long it takes, in milliseconds. */
  at: number;
  service: number;
}

/**
 * Response time of each piece of work, in the order of `work`.
 * @param work in order of arrival
 */
export function fifoResponseMs(work: Work[], servers: number): number[] {
  const freeAt = Array.from({ length: servers }, () => Number.NEGATIVE_INFINITY);
  return work.map(({ at, service }) => {
    const server = earliest(freeAt);
    const end = Math.max(at, freeAt[server] as number) + service;
    freeAt[server] = end;
    return end - at;
  });
}

/**
 * The same queue for clients that begin together and each ask again as soon as they are answered: response times. Where
 * there are more clients than servers, arrivals of a real run are no fair bound: they come as late as that run has
 * answered, and a queue that is faster by any little has none left.
 */
export function closedLoopResponseMs(clients: number, servers: number, service: number, count: number): number[] {
  const asksAt = Array.from({ length: clients }, () => 0);
  const freeAt = Array.from({ length: servers }, () => 0);
  return Array.from({ length: count }, () => {
    const client = earliest(asksAt);
    const server = earliest(freeAt);
    const at = asksAt[client] as number;
    const end = Math.max(at, freeAt[server] as number) + service;
    asksAt[client] = end;
    freeAt[server] = end;
    return end - at;
  });
}

function earliest(times: number[]): number {
  let first = 0;
  for (let index = 1; index < times.length; index += 1) {
    if ((times[index] as number) < (times[first] as number)) first = index;
  }
  return first;
}
