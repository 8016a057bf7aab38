/** Random numbers that are the same in every run. Computes only. */
import { Random as Generator } from '../../operator/simulate/random.ts';

/** Uniform in [0, 1). */
export type Random = () => number;

/** The simulator's generator. */
export function createRandom(seed: number): Random {
  const generator = new Generator(seed);
  return () => generator.fraction();
}

/** A whole number from 0 to below `count`. */
export function pick(random: Random, count: number): number {
  return Math.floor(random() * count);
}
