/** What a failed test should show beside its error. `environment.mjs` calls it. */

type Dump = () => string;

const holder = globalThis as { corelaneFailureDumps?: Set<Dump> };

/** Has `dump` printed after every failed test of this file; the returned function takes that back. */
export function onFailure(dump: Dump): () => void {
  holder.corelaneFailureDumps ??= new Set();
  const dumps = holder.corelaneFailureDumps;
  dumps.add(dump);
  return () => dumps.delete(dump);
}
