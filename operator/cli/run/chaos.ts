/** `--chaos`: one fault after the other, and what each cost whom. */
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../local/http.ts';
import type { RunFleet } from '../../local/run-fleet.ts';
import type { RunPod } from '../../local/run-pod.ts';
import { PORTS } from '../../src/api/names.ts';
import { concurrencyBounds } from '../../src/api/spec/concurrency.ts';
import { Exposition } from '../../src/pods/exposition.ts';
import { costOf } from './cost.ts';
import type { Requests } from './requests.ts';
import type { FaultRow } from './table.ts';

/** Between two faults. */
const PAUSE_MS = 3_000;
/** What a fault brings about may come a moment after the worker is back. */
const SETTLE_MS = 1_000;
/** For a worker that is stuck: stallTimeout, and its start. */
const BACK_MS_MAX = 180_000;
/** A request that is to be in the victim gets there by then, or another one has. */
const HOLD_MS_MAX = 10_000;

interface Victim {
  pod: RunPod;
  worker: number;
}

/** A fault: what it does to a worker (or its pod) that holds a request. */
interface Fault {
  name: (victim: Victim) => string;
  /** The victim is frozen when a request is sent into it, so that the request is there when the fault comes. */
  holds: boolean;
  strike: (victim: Victim, fleet: RunFleet) => Promise<unknown>;
  /** What is hurt: a worker is back when it has been started again, a drained pod when another one serves. */
  hurts: 'worker' | 'proxy' | 'pod';
  needsPods?: number;
}

const of =
  (what: string) =>
  ({ pod, worker }: Victim) =>
    `${what} worker-${worker} of ${pod.name}`;
const ofPod =
  (what: string) =>
  ({ pod }: Victim) =>
    `${what} of ${pod.name}`;
/** Its watchdog may have been quicker: then there is nothing to thaw. */
const thawed = async ({ pod, worker }: Victim) => pod.thaw(worker).catch(() => {});

const FAULTS: Fault[] = [
  { name: of('kill -9'), hurts: 'worker', holds: true, strike: ({ pod, worker }) => pod.hurt(worker, 'kill') },
  {
    name: of('exit 0 in'),
    hurts: 'worker',
    holds: true,
    strike: async (victim) => {
      await victim.pod.hurt(victim.worker, 'exit');
      await thawed(victim);
    },
  },
  { name: of('endless loop in'), hurts: 'worker', holds: false, strike: ({ pod, worker }) => pod.hurt(worker, 'loop') },
  { name: of('freeze'), hurts: 'worker', holds: false, strike: ({ pod, worker }) => pod.hurt(worker, 'freeze') },
  {
    name: ofPod('kill -9 HAProxy'),
    hurts: 'proxy',
    holds: true,
    strike: async (victim) => {
      await victim.pod.killProxy(victim.pod.haproxy, 'haproxy');
      await thawed(victim);
    },
  },
  {
    name: ofPod('kill -9 nginx'),
    hurts: 'proxy',
    holds: true,
    strike: async (victim) => {
      await victim.pod.killProxy(victim.pod.nginx, 'nginx', { withChildren: true });
      await thawed(victim);
    },
  },
  {
    name: ({ pod }) => `drain ${pod.name}, a new pod comes`,
    holds: true,
    needsPods: 2,
    strike: async (victim, fleet) => {
      const removed = fleet.remove(victim.pod);
      await thawed(victim);
      const pod = await fleet.add();
      await Promise.all([fleet.untilReady(pod), removed]);
    },
    hurts: 'pod',
  },
];

interface ChaosListeners {
  onRow: (row: FaultRow) => void;
  onError: (error: Error) => void;
}

export class Chaos {
  readonly rows: FaultRow[] = [];
  readonly #fleet: RunFleet;
  readonly #requests: Requests;
  #isOver = false;

  constructor(fleet: RunFleet, requests: Requests) {
    this.#fleet = fleet;
    this.#requests = requests;
  }

  /** Goes on until `stop`; calls `onRow` after each fault, `onError` when one cannot be done. */
  async run({ onRow, onError }: ChaosListeners): Promise<void> {
    for (let turn = 0; !this.#isOver; turn += 1) {
      const possible = FAULTS.filter(({ needsPods = 1 }) => this.#fleet.staying.length >= needsPods);
      const victim = await this.#victim(turn);
      if (!victim || this.#isOver) return;
      try {
        const row = await this.#strike(possible[turn % possible.length] as Fault, victim);
        this.rows.push(row);
        onRow(row);
      } catch (error) {
        if (!this.#isOver) onError(error as Error);
      }
      await sleep(PAUSE_MS);
    }
  }

  stop(): void {
    this.#isOver = true;
  }

  /** The next worker, when all are up. */
  async #victim(turn: number): Promise<Victim | undefined> {
    const all = () =>
      this.#fleet.staying.flatMap((pod) => Array.from(pod.workers.keys(), (worker): Victim => ({ pod, worker })));
    const areUp = async () => (await Promise.all(all().map(isUp))).every(Boolean);
    await until('all workers are up', async () => this.#isOver || (await areUp()), BACK_MS_MAX);
    const victims = all();
    return victims[turn % victims.length];
  }

  async #strike(fault: Fault, victim: Victim): Promise<FaultRow> {
    const { pod, worker } = victim;
    const name = fault.name(victim);
    const restarts = await restartsOf(victim);
    let sent: Promise<string>[] = [];
    if (fault.holds) {
      await pod.hurt(worker, 'freeze');
      sent = await this.#putIn(victim);
    }
    const beganMs = performance.now();
    await fault.strike(victim, this.#fleet);
    // The engine's program takes some time, in which the fault comes.
    const struckMs = fault.hurts === 'pod' ? beganMs : performance.now();
    if (!fault.holds) sent = await this.#putIn(victim);
    const backMs = await this.#isBack(fault, victim, restarts).then(
      () => performance.now() - beganMs,
      () => undefined,
    );
    await Promise.all(sent);
    await sleep(SETTLE_MS);
    const failures = this.#requests.failures.filter(({ endedMs }) => endedMs >= beganMs);
    return { fault: name, backMs, ...costOf(failures, { struckMs, places: concurrencyBounds(pod.spec).max }) };
  }

  /**
   * Sends requests to the pod until its victim has one: that one, or one of the load. (A page may be so fast that none
   * is seen in there: then the next one is.)
   */
  async #putIn({ pod, worker }: Victim): Promise<Promise<string>[]> {
    const line = `haproxy_server_current_sessions{proxy="workers",server="worker-${worker}"}`;
    const sent: Promise<string>[] = [];
    const isIn = async () => {
      if ((await pod.metric(line).catch(() => 0)) >= 1) return true;
      sent.push(this.#requests.send(pod.port(PORTS.http)));
      await sleep(100);
      return false;
    };
    await until('a request is in the victim', isIn, HOLD_MS_MAX);
    return sent;
  }

  async #isBack({ hurts }: Fault, victim: Victim, restarts: number): Promise<void> {
    if (hurts === 'pod') return;
    if (hurts === 'worker')
      await until('it has been started again', async () => (await restartsOf(victim)) > restarts, BACK_MS_MAX);
    else await until('nginx answers', () => victim.pod.get(victim.pod.spec.ping.path).catch(() => false), BACK_MS_MAX);
    await until('it is back', async () => (await isUp(victim)) && (await victim.pod.isTaking()), BACK_MS_MAX);
  }
}

async function restartsOf({ pod, worker }: Victim): Promise<number> {
  const page = await pod.page(`/workers/${worker}/metrics`).catch(() => '');
  return new Exposition(page).sum('corelane_worker_restarts_total');
}

function isUp({ pod, worker }: Victim): Promise<boolean> {
  return pod.isUp(worker).catch(() => false);
}
