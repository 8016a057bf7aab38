/** What the way to a worker costs: an empty render straight to the worker, and through the proxies, in turn. */
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
export const CHAIN_SECONDS = 40;

export interface ChainCost {
  system: string;
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

export async function measureChain(): Promise<ChainCost[]> {
  const systems: System[] = [await Corelane.start({ workersPerPod: 1 }), await QueueProxies.start(1)];
  const measured = systems.map((): Measured => ({ direct: [], chain: [], cpuMs: 0 }));
  try {
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const [index, system] of systems.entries()) {
        const result = await measureRound(system, round === 0 ? WARM_UP : REQUESTS_PER_BLOCK);
        if (round > 0) add(measured[index] as Measured, result); // the first is for warming up
      }
    }
  } finally {
    for (const system of systems) await system.stop();
  }
  return systems.map(({ name }, index) => cost(name, measured[index] as Measured));
}

function add(sum: Measured, { direct, chain, cpuMs }: Measured): void {
  sum.direct.push(...direct);
  sum.chain.push(...chain);
  sum.cpuMs += cpuMs;
}

function cost(system: string, { direct, chain, cpuMs }: Measured): ChainCost {
  const [directMs, chainMs] = [median(direct), median(chain)];
  const cpuUs = (cpuMs * 1_000) / chain.length;
  return { system, requests: chain.length, directMs, chainMs, addedMs: chainMs - directMs, cpuUs };
}

/** One client with a kept connection, as an ingress has it; blocks of both ways in turn. */
async function measureRound(system: System, count: number): Promise<Measured> {
  const group = (name: string, target: number): Group => ({
    name,
    concurrency: 1,
    count,
    seconds: 60,
    keepAlive: true,
    requests: [{ path: '/?id={id}', target }],
  });
  const [through, past] = [system.targets[0], system.direct[0]];
  if (!through || !past) throw new Error(`${system.name} has no way past its proxies`);
  const phases = Array.from({ length: BLOCKS }, () => [[group('direct', 1)], [group('chain', 0)]]).flat();
  const before = await proxiesCpuMs(system);
  const plan = { targets: [through, past], bodyBytes: 0, timeoutMs: 10_000, phases };
  const records = await runLoad(system.network, plan);
  const after = await proxiesCpuMs(system);
  const of = (name: string) => records.filter(({ group: own }) => own === name).map(({ ms }) => ms);
  return { direct: of('direct'), chain: of('chain'), cpuMs: after - before };
}

async function proxiesCpuMs(system: System): Promise<number> {
  const times = await Promise.all(system.proxies.map(cpuMs));
  return times.reduce((sum, ms) => sum + ms, 0);
}
