/** Systems side by side: all are started at once, measured one after the other, and stopped. */

/** A system with what is done with it. */
export interface Turn<T> {
  started: Promise<unknown>;
  take(): Promise<T>;
  end(): Promise<void>;
}

export function turn<S extends { stop(): Promise<void> }, T>(
  start: Promise<S>,
  work: (system: S) => Promise<T>,
): Turn<T> {
  return {
    started: start,
    take: async () => work(await start),
    end: () =>
      start.then(
        (system) => system.stop(),
        () => {}, // there is nothing to stop, and `take` has told why
      ),
  };
}

/**
 * Those that wait for their turn, or have had it, idle: that costs the one that is measured nothing, and starting them
 * one by one would take longer than all that is measured.
 * @throws what a start or a turn throws, when all have been stopped
 */
export function inTurn<T>(...turns: Turn<T>[]): Promise<T[]> {
  return started(turns, async () => {
    const results: T[] = [];
    for (const { take } of turns) results.push(await take());
    return results;
  });
}

/** The same for what is not about time. */
export function atOnce<T>(...turns: Turn<T>[]): Promise<T[]> {
  return started(turns, async () => {
    const results = turns.map(({ take }) => take());
    await Promise.allSettled(results);
    return Promise.all(results);
  });
}

async function started<T>(turns: Turn<T>[], work: () => Promise<T[]>): Promise<T[]> {
  await Promise.allSettled(turns.map(({ started }) => started));
  try {
    return await work();
  } finally {
    await Promise.all(turns.map(({ end }) => end()));
  }
}
