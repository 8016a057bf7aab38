/** Waiting for a state instead of for a time. */
import { setTimeout as delay } from 'node:timers/promises';

export interface EventuallyOptions {
  timeoutMs?: number;
  everyMs?: number;
}

/**
 * Calls `attempt` until it does not throw, and resolves with what it returns. An attempt is written with `expect`, so
 * that the error of the last one shows the last state.
 * @param what what is awaited, as it should stand in the error: "the Service is back"
 */
export async function eventually<T>(
  what: string,
  attempt: () => T | Promise<T>,
  { timeoutMs = 120_000, everyMs = EVERY_MS }: EventuallyOptions = {},
): Promise<T> {
  const started = performance.now();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() - started > timeoutMs) {
        throw new Error(`not within ${timeoutMs / 1000} s: ${what}\nAt the last look: ${(error as Error).message}`, {
          cause: error,
        });
      }
    }
    await delay(everyMs);
  }
}

const EVERY_MS = 100;

/**
 * Resolves with what `look` returns as soon as that has been the same for as many looks as `forMs` has room for: the
 * only way to see that something has come to rest. Looks are counted, and not time, in which a busy machine does
 * nothing. To prove that *nothing* happens, await a sign that it could have happened first.
 */
export async function settled<T>(
  what: string,
  look: () => T | Promise<T>,
  { forMs = 1500, timeoutMs = 120_000 }: { forMs?: number; timeoutMs?: number } = {},
): Promise<T> {
  const looks = Math.ceil(forMs / EVERY_MS);
  let before: string | undefined;
  let same = 0;
  return await eventually(
    `${what} comes to rest`,
    async () => {
      const value = await look();
      const text = JSON.stringify(value);
      same = text === before ? same + 1 : 0;
      before = text;
      if (same < looks) throw new Error(`still moving: ${text.slice(0, 2000)}`);
      return value;
    },
    { timeoutMs },
  );
}
