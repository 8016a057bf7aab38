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
    let first = 0;
    for (let server = 1; server < servers; server += 1) {
      if ((freeAt[server] as number) < (freeAt[first] as number)) first = server;
    }
    const end = Math.max(at, freeAt[first] as number) + service;
    freeAt[first] = end;
    return end - at;
  });
}
