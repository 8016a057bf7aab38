/** Counts and percentages of a rolling update, as the Deployment controller takes them. */

export interface Bounds {
  surge: number;
  unavailable: number;
}

/** A percentage of surge is rounded up, one of unavailable pods down; of both 0 nothing would ever move. */
export function bounds(wanted: {
  replicas: number;
  maxSurge: number | string;
  maxUnavailable: number | string;
}): Bounds {
  const surge = countOf(wanted.maxSurge, wanted.replicas, Math.ceil);
  const unavailable = countOf(wanted.maxUnavailable, wanted.replicas, Math.floor);
  if (surge === 0 && unavailable === 0) return { surge, unavailable: 1 };
  return { surge, unavailable: Math.min(unavailable, wanted.replicas) };
}

function countOf(value: number | string, of: number, round: (count: number) => number): number {
  if (typeof value === 'number') return value;
  return round((Number.parseInt(value, 10) * of) / 100);
}
