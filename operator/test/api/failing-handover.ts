/** Two operators, each behind an API server that fails in its own way, while the lead goes from one to the other. */
import { AccessLog } from '../support/access-log.ts';
import { eventually, settled } from '../support/eventually.ts';
import { FailingApi } from '../support/failing-api.ts';
import { HOSTILE_SEED } from '../support/hostile.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { Random } from '../support/random.ts';
import { sharedServer, World } from '../support/world.ts';

const SHARE = 0.06;
const WATCH_SHARE = 0.5;
const NAMES = ['one', 'two', 'three', 'four'];
/** Changes to RenderServices for each time that the lead goes to another one. */
const CHANGES = 6;
/** An operator that cannot renew gives up after 10 s, and its calls end 15 s later at the latest. */
const GIVE_UP_MS = 60_000;

/** An operator and what is between it and the API server. */
interface Seat {
  readonly name: string;
  readonly api: FailingApi;
  operator: OperatorProcess;
}

/** How a leader ends. */
const WAYS = {
  /** As an upgrade does. */
  stopped: async ({ operator }: Seat): Promise<void> => {
    await operator.stop();
  },
  /** Without a word. */
  killed: ({ operator }: Seat): Promise<void> => operator.kill(),
  /** Its calls reach nothing, so that it cannot renew. */
  cutOff: async ({ api, operator }: Seat): Promise<void> => {
    api.holds = () => true;
    api.cutWatches();
    await operator.exitCode(GIVE_UP_MS);
    api.holds = () => false;
  },
};

/** What a hand-over has left. */
export interface Outcome {
  log: AccessLog;
  /** Ports that the RenderServices ask for, and those of their Services. */
  wanted: Record<string, number>;
  found: Record<string, number>;
  /** Writes of an operator that has seen nothing of it. */
  writesAfterwards: number;
}

/** Proxies of the test that runs. */
const open: FailingApi[] = [];

/** Ends the operators and their proxies; for afterEach. */
export async function endHandOver(): Promise<void> {
  await OperatorProcess.killAll();
  for (const api of open.splice(0)) await api.close();
}

/** Ends the leader in each of these ways, in the middle of work, and then lets everything come to rest. */
export async function handOver(namespace: string, ways: (keyof typeof WAYS)[], run = 0): Promise<Outcome> {
  const world = await World.create(sharedServer(), namespace);
  const seed = HOSTILE_SEED + 2 * run;
  const random = new Random(seed);
  const log = new AccessLog();
  const wanted: Record<string, number> = {};
  const seats: Seat[] = [];
  const spawn = (name: string, { kubeconfig }: FailingApi) =>
    OperatorProcess.spawn({ ...world.settings(name), kubeconfig });

  /** As kubelet does. A process ends by itself only when it has lost the lead. */
  async function keepRunning(seat: Seat): Promise<void> {
    if (!seat.operator.hasEnded) return;
    expect(seat.operator.log).not.toMatch(/unhandled|uncaught/i);
    const code = await seat.operator.exitCode(0);
    if (code === 1) expect(seat.operator.log).toContain('"result":"lost"');
    seat.operator = await spawn(seat.name, seat.api);
  }

  function leader(): Promise<Seat> {
    return eventually('one of them leads', async () => {
      for (const seat of seats) {
        await keepRunning(seat);
        if (await seat.operator.isLeading()) return seat;
      }
      throw new Error('none does');
    });
  }

  async function change(): Promise<void> {
    const name = random.pick(NAMES);
    wanted[name] = random.whole(1_024, 32_000);
    await world.patchSpec(name, { service: { port: wanted[name] } });
  }

  async function ports(): Promise<Record<string, number>> {
    const found = NAMES.map(async (name) => [name, (await world.get('Service', name)).spec.ports[0].port]);
    return Object.fromEntries(await Promise.all(found));
  }

  for (const [index, name] of ['operator-a', 'operator-b'].entries()) {
    const api = await FailingApi.start(sharedServer(), seed + index, { by: name, log });
    open.push(api);
    seats.push({ name, api, operator: await spawn(name, api) });
  }
  for (const name of NAMES) {
    wanted[name] = 80;
    // Without pods nothing has to be said of them.
    await world.createRenderService(name, { replicas: 0 });
  }
  for (const { api } of seats) Object.assign(api, { share: SHARE, watchShare: WATCH_SHARE });
  for (const way of ways) {
    const first = await leader();
    const done = log.writes.length;
    for (let n = 0; n < CHANGES; n += 1) await change();
    await eventually('it is at work', () => expect(log.writes.length).toBeGreaterThan(done));
    const next = seats.find((seat) => seat !== first) as Seat;
    await eventually('the other one could lead', async () => {
      await keepRunning(next);
      expect(await next.operator.status('/readyz')).toBe(200);
    });
    await WAYS[way](first);
    for (let n = 0; n < CHANGES; n += 1) await change();
    await eventually('the other one leads', async () => {
      await keepRunning(next);
      expect(await next.operator.isLeading()).toBe(true);
    });
    await keepRunning(first);
  }
  for (const { api } of seats) Object.assign(api, { share: 0, watchShare: 0 });
  await eventually('all is carried out', async () => {
    for (const seat of seats) await keepRunning(seat);
    expect(await ports()).toEqual(wanted);
    for (const name of NAMES) {
      const { metadata, status } = await world.get('RenderService', name);
      expect(status?.observedGeneration).toBe(metadata.generation);
    }
    expect((await (await leader()).operator.work()).depth).toBe(0);
  });
  await settled('all objects', () => world.resourceVersions());
  await OperatorProcess.stopAll();
  const fresh = await world.startOperator('operator-c');
  await eventually('it has looked at all', async () => {
    const { done, depth } = await fresh.work();
    expect([done >= NAMES.length, depth]).toEqual([true, 0]);
  });
  const writesAfterwards = await fresh.sum('corelane_operator_writes_total');
  return { log, wanted, found: await ports(), writesAfterwards };
}

/** Expects of what a hand-over has left that only the holder of the Lease has written, and that all was carried out. */
export function expectHandedOver({ log, wanted, found, writesAfterwards }: Outcome): void {
  expect(new Set(log.writes.map(({ by }) => by)).size).toBe(2);
  expect(log.withoutLead).toEqual([]);
  expect(found).toEqual(wanted);
  expect(writesAfterwards).toBe(0);
}
