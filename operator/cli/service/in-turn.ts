/** Work on many things, so many at a time. */

/** The results in the order of the things; fails when one has failed. */
export async function inTurn<T, R>(things: T[], atATime: number, work: (thing: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const waiting = things.entries();
  const next = async () => {
    for (const [index, thing] of waiting) results[index] = await work(thing);
  };
  await Promise.all(Array.from({ length: Math.min(atATime, things.length) }, next));
  return results;
}
