/**
 * Deliberate breakages of the data plane, each with the test that must notice it. `make test-mutants` tries them all;
 * docs/testing.md explains the invariants I1 to I7.
 */
import { assets } from './assets.ts';
import { cache } from './cache.ts';
import { canary } from './canary.ts';
import { classes } from './classes.ts';
import { concurrency } from './concurrency.ts';
import { doors } from './doors.ts';
import { lua } from './drain.ts';
import { scripts } from './drain-hook.ts';
import { entrypoint } from './entrypoint.ts';
import { etag } from './etag.ts';
import { fallback } from './fallback.ts';
import { front } from './front.ts';
import { guarded } from './guarded.ts';
import { haproxy } from './haproxy.ts';
import { live } from './live.ts';
import { metrics } from './metrics.ts';
import type { Mutant } from './mutant.ts';
import { nginx } from './nginx.ts';
import { overload } from './overload.ts';
import { ownSite } from './own-site.ts';
import { pooling } from './pooling.ts';
import { purge } from './purge.ts';
import { runtime } from './runtime.ts';
import { runtimePort } from './runtime-port.ts';
import { secondTries } from './second-tries.ts';
import { stickiness } from './stickiness.ts';
import { streaming } from './streaming.ts';
import { tracing } from './tracing.ts';

export const mutants: Mutant[] = [
  ...haproxy,
  ...doors,
  ...nginx,
  ...streaming,
  ...front,
  ...etag,
  ...fallback,
  ...overload,
  ...classes,
  ...ownSite,
  ...concurrency,
  ...live,
  ...canary,
  ...stickiness,
  ...metrics,
  ...tracing,
  ...assets,
  ...cache,
  ...purge,
  ...lua,
  ...secondTries,
  ...pooling,
  ...runtime,
  ...runtimePort,
  ...guarded,
  ...scripts,
  ...entrypoint,
];

/** The mutant that the tests of this process work on: `make test-mutants` sets it. */
export const CURRENT_MUTANT = mutants.find(({ name }) => name === process.env.CORELANE_MUTANT);

/** `text` of `file` as the mutant has it; unchanged when it is about another file. */
export function mutated(mutant: Mutant, file: string, text: string): string {
  if (mutant.file !== file) return text;
  return mutant.edits.reduce((result, [find, replace]) => result.replace(find, replace), text);
}
