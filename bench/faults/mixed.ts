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
import { CLIENTS_GROUP, spread, WORKERS } from './scenarios.ts';

const STEPS = 'b20,w30,b20';
const RENDER_MS = 70;
export const MIXED_CLIENTS = [13, 20, 30];
const SECONDS = 10;
export const MIXED_SECONDS = 3 * (15 + MIXED_CLIENTS.length * (SECONDS + 3));

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
];

export async function measureMixed(): Promise<MixedResult[]> {
  const results: MixedResult[] = [];
  for (const start of MIXED_SYSTEMS) {
    const system = await start();
    for (const clients of MIXED_CLIENTS) results.push(await measure(system, clients));
    await system.stop();
  }
  return results;
}

async function measure(system: System, clients: number): Promise<MixedResult> {
  const requests = spread(system, { path: `/?id={id}&steps=${STEPS}` });
  const group: Group = { name: CLIENTS_GROUP, concurrency: clients, count: 100_000, seconds: SECONDS, requests };
  const all = await run(system, [group]);
  const { answered, failed, overlaps, latency } = outcomeOf(all.records, all.notes, CLIENTS_GROUP);
  const bound = ideal(all, system.workers, RENDER_MS);
  return { system: system.name, clients, answered, failed, overlaps, p50: latency.p50, p99: latency.p99, ideal: bound };
}
