/** When services have become ready, from the rows of a table of the API server. Computes only. */

/** A row by the names of its columns, as `kubectl get` would print it. */
export type Row = Record<string, string | number>;

/** Whether a Deployment's row says that all of its pods are there and of the newest template. */
export function isDeploymentReady(row: Row, pods: number): boolean {
  return row.Ready === `${pods}/${pods}` && row['Up-to-date'] === pods && row.Available === pods;
}

/** Whether a RenderService's row says so. */
export function isRenderServiceReady(row: Row, pods: number): boolean {
  return row.Ready === 'True' && row.Pods === pods && row.Wanted === pods;
}

/** Counts the names that are ready, and remembers when each has become so for the first time. */
export class Arrivals {
  readonly #wanted: Set<string>;
  readonly #isReady: (row: Row) => boolean;
  /** Seconds since the beginning, in their order. */
  readonly timesS: number[] = [];

  constructor(names: string[], isReady: (row: Row) => boolean) {
    this.#wanted = new Set(names);
    this.#isReady = isReady;
  }

  see(row: Row, atS: number): void {
    const name = String(row.Name);
    if (!this.#wanted.has(name) || !this.#isReady(row)) return;
    this.#wanted.delete(name);
    this.timesS.push(atS);
  }

  get left(): number {
    return this.#wanted.size;
  }
}
