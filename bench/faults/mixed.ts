/**
 * Renders that await data between two stretches of blocking. Single flight lets the worker idle during the wait, which
 * costs throughput; an event loop that takes more requests can use it, and then renders get in each other's way.
 */
import type { Group } from '../lib/load.ts';
import { outcomeOf } from '../lib/outcome.ts';
import { Corelane } from '../systems/corelane.ts';
import { SYSTEMS } from '../systems/index.ts';
import type { System } from '../systems/system.ts';
import { type Ideal, ideal, run } from './run.ts';
import { CLIENTS_GROUP, COUNT_MAX, clients, WORKERS } from './scenarios.ts';

const STEPS = 'b20,w30,b20';
const RENDER_MS = 70;
const MIXED_CLIENTS = [13, 20, 30];
/** Some 3,000 requests: fewer make a 99th percentile of a handful. */
const SECONDS = 20;
/**
 * A server's first hundred requests are slow, and a container that has just been started has work to do beside them.
 */
const WARM_UP_SECONDS = 8;

export interface MixedResult {
  system: string;
  clients: number;
  answered: number;
  failed: number;
  overlaps: number;
  p50: number;
  p99: number;
  ideal: Ideal;
}

const MIXED_SYSTEMS: (() => Promise<System>)[] = [
  () => Corelane.start({ workersPerPod: WORKERS }, 'corelane, concurrency 1'),
  () => Corelane.start({ workersPerPod: WORKERS, concurrency: 2, balance: 'leastconn' }, 'corelane, concurrency 2'),
  () => SYSTEMS.cluster?.start(WORKERS) as Promise<System>,
  () => SYSTEMS.direct?.start(WORKERS) as Promise<System>,
];
export const MIXED_SECONDS = MIXED_SYSTEMS.length * (15 + WARM_UP_SECONDS + MIXED_CLIENTS.length * (SECONDS + 3));

export async function measureMixed(): Promise<MixedResult[]> {
  const results: MixedResult[] = [];
  for (const start of MIXED_SYSTEMS) {
    const system = await start();
    await run(system, [load(system, WORKERS, WARM_UP_SECONDS)]);
    for (const count of MIXED_CLIENTS) results.push(await measure(system, count));
    await system.stop();
  }
  return results;
}

function load(system: System, count: number, seconds: number): Group {
  return clients(system, count, { count: COUNT_MAX, seconds }, { path: `/?id={id}&steps=${STEPS}` });
}

async function measure(system: System, count: number): Promise<MixedResult> {
  const all = await run(system, [load(system, count, SECONDS)]);
  const { answered, failed, overlaps, latency } = outcomeOf(all.records, all.notes, CLIENTS_GROUP);
  const bound = ideal(all, system.workers, RENDER_MS);
  return {
    system: system.name,
    clients: count,
    answered,
    failed,
    overlaps,
    p50: latency.p50,
    p99: latency.p99,
    ideal: bound,
  };
}
