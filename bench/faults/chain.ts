/**
 * What the way to a worker costs, by GET and by POST: an empty render straight to the worker, and through the proxies,
 * in turn.
 */
import { cpuMs } from '../lib/cpu.ts';
import { type Group, runLoad } from '../lib/load.ts';
import { median } from '../lib/stats.ts';
import { Corelane } from '../systems/corelane.ts';
import { QueueProxies } from '../systems/queue-proxy.ts';
import type { System } from '../systems/system.ts';

/** The systems take turns, so that what else the machine does meets both. */
const ROUNDS = 5;
/** Each round: so many blocks of requests past the proxies, and as many through them. */
const BLOCKS = 10;
const REQUESTS_PER_BLOCK = 200;
const WARM_UP = 400;
export const CHAIN_SECONDS = 80;
/** What is sent: nothing, or as much as a page's data. The client makes a POST of whatever has a body. */
export const METHODS = { GET: 0, POST: 1_000 } as const;

export interface ChainCost {
  system: string;
  method: keyof typeof METHODS;
  requests: number;
  /** Medians in milliseconds. */
  directMs: number;
  chainMs: number;
  addedMs: number;
  /** CPU of the proxies for one request, in microseconds. */
  cpuUs: number;
}

interface Measured {
  direct: number[];
  chain: number[];
  cpuMs: number;
}

interface Way extends Measured {
  system: System;
  method: keyof typeof METHODS;
}

export async function measureChain(): Promise<ChainCost[]> {
  const systems: System[] = [await Corelane.start({ workersPerPod: 1 }), await QueueProxies.start(1)];
  const methods = Object.keys(METHODS) as (keyof typeof METHODS)[];
  const ways = systems.flatMap((system) =>
    methods.map((method): Way => ({ system, method, direct: [], chain: [], cpuMs: 0 })),
  );
  try {
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const way of ways) {
        const result = await measureRound(way, round === 0 ? WARM_UP : REQUESTS_PER_BLOCK);
        if (round > 0) add(way, result); // the first is for warming up
      }
    }
  } finally {
    for (const system of systems) await system.stop();
  }
  return ways.map(cost);
}

function add(sum: Measured, { direct, chain, cpuMs }: Measured): void {
  sum.direct.push(...direct);
  sum.chain.push(...chain);
  sum.cpuMs += cpuMs;
}

function cost({ system, method, direct, chain, cpuMs }: Way): ChainCost {
  const [directMs, chainMs] = [median(direct), median(chain)];
  const cpuUs = (cpuMs * 1_000) / chain.length;
  return {
    system: system.name,
    method,
    requests: chain.length,
    directMs,
    chainMs,
    addedMs: chainMs - directMs,
    cpuUs,
  };
}

/** One client with a kept connection, as an ingress has it; blocks of both ways in turn. */
async function measureRound({ system, method }: Way, count: number): Promise<Measured> {
  const group = (name: string, target: number): Group => ({
    name,
    concurrency: 1,
    count,
    seconds: 60,
    keepAlive: true,
    // One page, as a site has few: HAProxy treats URLs that nobody has seen answered otherwise.
    requests: [{ path: '/?id=way', target }],
  });
  const [through, past] = [system.targets[0], system.direct[0]];
  if (!through || !past) throw new Error(`${system.name} has no way past its proxies`);
  const phases = Array.from({ length: BLOCKS }, () => [[group('direct', 1)], [group('chain', 0)]]).flat();
  const before = await proxiesCpuMs(system);
  const plan = { targets: [through, past], bodyBytes: METHODS[method], timeoutMs: 10_000, phases };
  const records = await runLoad(system.network, plan);
  const after = await proxiesCpuMs(system);
  const of = (name: string) => records.filter(({ group: own }) => own === name).map(({ ms }) => ms);
  return { direct: of('direct'), chain: of('chain'), cpuMs: after - before };
}

async function proxiesCpuMs(system: System): Promise<number> {
  const times = await Promise.all(system.proxies.map(cpuMs));
  return times.reduce((sum, ms) => sum + ms, 0);
}
