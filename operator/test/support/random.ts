/** Repeatable choices: the same seed makes the same ones on every machine. */
import { Random as Fractions } from '../../simulate/random.ts';

export class Random extends Fractions {
  /** From `min` to `max`, both included. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.whole(0, items.length - 1)] as T;
  }
}
