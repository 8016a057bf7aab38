/**
 * What it costs a request to be handed over: the same empty render asked for at a pod that is busy, and at the one that
 * is free.
 */
import { runLoad } from '../lib/load.ts';
import { median } from '../lib/stats.ts';
import { FLEETS, type FleetKind } from './systems.ts';

const REQUESTS = 1_600;
/** The busy pod's only worker is busy for longer than the requests take, and for less than watchdog.stallTimeout. */
const BUSY_MS = 8_000;
const SECONDS = 6;
/** Until the busy pod is busy, and code is warm. */
const WARM_UP = 100;
export const HOP_SECONDS = 30;

export interface Hop {
  requests: number;
  /** Medians in milliseconds: at the free pod, and at the busy one, the question to the other pod included. */
  atHomeMs: number;
  handedOverMs: number;
}

/** One client, a new connection for each request, the two pods in turn. */
export async function measureHop(): Promise<Hop> {
  const fleet = await (FLEETS.corelane as FleetKind).start(2, 1);
  try {
    const [busy, free] = fleet.targets;
    if (!busy || !free) throw new Error('two pods are needed');
    const busyWork = { name: 'busy', requests: [{ path: `/?id={id}&steps=b${BUSY_MS}`, target: 0, atMs: 0 }] };
    const turns = [1, 0].map((target) => ({ path: '/?id={id}', target }));
    const asked = { name: 'asked', concurrency: 1, count: REQUESTS, seconds: SECONDS, requests: turns };
    const plan = { targets: [busy, free], bodyBytes: 0, timeoutMs: 2 * BUSY_MS, phases: [[busyWork, asked]] };
    const records = (await runLoad(fleet.network, plan)).filter(({ group }) => group === 'asked').slice(WARM_UP);
    const handedOver = await fleet.handedOver();
    if (records.some(({ status }) => status !== 200)) throw new Error('a request failed');
    if (handedOver < records.length / 2 - 1) throw new Error(`only ${handedOver} requests were handed over`);
    const of = (parity: number) =>
      records.filter(({ id }) => Number(id.split('-')[1]) % 2 === parity).map(({ ms }) => ms);
    return { requests: records.length, atHomeMs: median(of(0)), handedOverMs: median(of(1)) };
  } finally {
    await fleet.stop();
  }
}
