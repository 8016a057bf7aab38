/** Requests that `corelane run` sends itself, for --load and --chaos, and what has become of them. */
import { quantileOf } from '../../live/quantile.ts';
import { request } from '../../local/http.ts';

/** Requests on their way; a load that is too much for the fleet must not fill this process. */
const IN_FLIGHT_MAX = 512;
/** Times that quantiles are made of. */
const TIMES_MAX = 1_000;
/** Failures that are kept. */
const FAILURES_MAX = 1_000;

export interface Failure {
  /** By performance.now(). */
  beganMs: number;
  endedMs: number;
  /** Such as `502 worker-died`, `ECONNRESET`. */
  what: string;
}

export class Requests {
  ok = 0;
  failed = 0;
  /** Requests of the load that were not sent, because too many were on their way. */
  skipped = 0;
  failures: Failure[] = [];
  #times: number[] = [];
  readonly #inFlight = new Set<Promise<unknown>>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * Sends so many requests a second, each on a connection of its own, as a Service would see them, whether those before
   * have been answered or not.
   */
  startLoad(perSecond: number, port: () => number, path = '/'): void {
    const began = performance.now();
    let sent = 0;
    const tick = () => {
      const due = Math.floor(((performance.now() - began) * perSecond) / 1000);
      for (; sent < due; sent += 1) {
        if (this.#inFlight.size < IN_FLIGHT_MAX) void this.send(port(), path);
        else this.skipped += 1;
      }
    };
    this.#timer = setInterval(tick, Math.max(5, Math.min(1000 / perSecond, 100)));
  }

  stopLoad(): void {
    clearInterval(this.#timer);
  }

  /** One request. @returns its status with the reason for a failure: `200`, `502 worker-died`, `ECONNRESET` */
  async send(port: number, path = '/'): Promise<string> {
    const beganMs = performance.now();
    const answer = request(port, path, { isForgotten: true });
    this.#inFlight.add(answer);
    const what = await answer.then(
      ({ status, headers }) => [status, headers['x-corelane-error']].filter(Boolean).join(' '),
      (error) => String(error.code ?? error.message),
    );
    this.#inFlight.delete(answer);
    const endedMs = performance.now();
    if (/^[23]/.test(what)) {
      this.ok += 1;
      this.#times = [...this.#times.slice(1 - TIMES_MAX), endedMs - beganMs];
    } else {
      this.failed += 1;
      this.failures = [...this.failures.slice(1 - FAILURES_MAX), { beganMs, endedMs, what }];
    }
    return what;
  }

  /** Milliseconds of the last answers. */
  quantileMs(quantile: number): number | undefined {
    return quantileOf(quantile, this.#times);
  }
}
