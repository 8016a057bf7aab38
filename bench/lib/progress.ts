/** Progress for people, on standard error: what runs now, and how long the rest will take. */

export class Progress {
  readonly #beganMs = Date.now();
  #plannedSeconds: number;
  #doneSeconds = 0;

  constructor(plannedSeconds: number) {
    this.#plannedSeconds = plannedSeconds;
  }

  /** Runs a step of about so many seconds, and prints its title and then its result. */
  async step<T>(title: string, seconds: number, work: () => Promise<T>, told: (result: T) => string = () => 'done') {
    const left = Math.max(1, Math.round((this.#plannedSeconds - this.#doneSeconds) / 60));
    process.stderr.write(`[about ${left} min left] ${title} (${Math.round(seconds)} s) ... `);
    const result = await work();
    process.stderr.write(`${told(result)}\n`);
    this.#doneSeconds += seconds;
    return result;
  }

  elapsedSeconds(): number {
    return (Date.now() - this.#beganMs) / 1_000;
  }
}
