import { cacheTests } from './cache-tests.ts';
import { cached } from './cached.ts';
import { filesBeside } from './files.ts';
import { firstByte } from './first-byte.ts';
import { fleetHerd, herd } from './herd.ts';
import { idle } from './idle.ts';
import { overload } from './overload.ts';
import { people } from './people.ts';
import type { Scenario } from './scenario.ts';
import { slots } from './slots.ts';

/** In the order of the report. */
export const SCENARIOS: Scenario[] = [
  slots,
  firstByte,
  filesBeside,
  cached,
  herd,
  fleetHerd,
  cacheTests,
  overload,
  people,
  idle,
];
