/** How many requests a worker gets at a time: a number, or what its event loop has time for (`concurrency: Auto`). */
import { z } from 'zod';

const FIXED_MAX = 1000;
/** The worker runtime measures so many levels, and HAProxy's rows of them stay readable. */
export const RANGE_MAX = 64;
export const RANGE_DEFAULT = { min: 1, max: 16 };

const message = `must be a number from 1 to ${FIXED_MAX}, or Auto`;

/** A number, or Auto. */
export const numberOrAuto = z.union([z.int().min(1).max(FIXED_MAX), z.literal('Auto')], message).meta({
  'x-kubernetes-int-or-string': true,
  'x-kubernetes-validations': [
    { rule: `type(self) == int ? self >= 1 && self <= ${FIXED_MAX} : self == 'Auto'`, message },
  ],
});

/** The type is that of a field with a default: `specShape` fills it in (`usualConcurrency`), as other fields say. */
export const concurrency = numberOrAuto
  .optional()
  .describe(
    'Requests that one worker gets at a time. 1 for CPU-bound renders; more only for workers that mostly wait. With Auto each worker finds the number by itself: the smallest at which its event loop has no time left, within concurrencyRange. Unless given, it is Auto with `framework`, else 1; and 1 where Auto would be refused.',
  ) as unknown as z.ZodDefault<typeof numberOrAuto>;

export const concurrencyRange = z
  .strictObject({
    min: z
      .int()
      .min(1)
      .max(RANGE_MAX)
      .default(RANGE_DEFAULT.min)
      .describe('What a worker of a new fleet begins with, and none ever goes below.'),
    max: z
      .int()
      .min(1)
      .max(RANGE_MAX)
      .default(RANGE_DEFAULT.max)
      .describe(
        'What a worker never goes above: what its memory has room for, and what the services behind it bear from all workers together.',
      ),
  })
  .optional()
  .describe('Bounds of concurrency: Auto. From 1 to 16 unless given.');

interface Concurrency {
  concurrency: z.output<typeof concurrency>;
  concurrencyRange?: z.output<typeof concurrencyRange>;
}

/** The fewest and the most requests that a worker may ever have at a time; the same where the number is fixed. */
export function concurrencyBounds({ concurrency, concurrencyRange }: Concurrency): { min: number; max: number } {
  if (concurrency === 'Auto') return concurrencyRange ?? RANGE_DEFAULT;
  return { min: concurrency, max: concurrency };
}

/** What the default follows from: Auto cannot be together with some values of these. */
interface OtherFields {
  framework?: string | undefined;
  balance: string;
  runtime: { instrument: boolean };
  webSockets: { enabled: boolean };
}

/**
 * `concurrency` of a resource that does not say it. Programs that are made with a framework keep nothing of one request
 * in variables of a module, and their pages mostly wait for data. Of other programs nobody knows.
 */
export function usualConcurrency({ framework, balance, runtime, webSockets }: OtherFields): 'Auto' | 1 {
  const canBeAuto = runtime.instrument && balance !== 'first' && !webSockets.enabled;
  return framework !== undefined && canBeAuto ? 'Auto' : 1;
}

/** The same as CEL. */
export const USUAL_IS_AUTO =
  "has(self.framework) && self.runtime.instrument && self.balance != 'first' && !self.webSockets.enabled";

/** A beginning need not be exact, and each change of it is a write. */
const BEGINNINGS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/**
 * How many requests a new worker gets at a time until it has found its own number: about as many as half of the fleet
 * gets, rather fewer. Undefined where that is `min`, or nobody knows.
 */
export function beginningOf(spec: Concurrency, median?: number): number | undefined {
  if (spec.concurrency !== 'Auto' || median === undefined) return undefined;
  const { min, max } = concurrencyBounds(spec);
  const found = BEGINNINGS.findLast((number) => number <= Math.min(median, max));
  return found && found > min ? found : undefined;
}
