/** For the TypeScript around it; the client itself runs without a build. */
export function percentile(sorted: ArrayLike<number>, percent: number): number | null;
