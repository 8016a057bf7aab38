/** Many ask at once for a page that nobody has yet. */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { INSIDE } from '../lib/inside.ts';
import { Notes } from '../lib/notes.ts';
import { summarize } from '../lib/stats.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { addressOf } from '../systems/system.ts';
import { CACHED, fleetSpec } from './cached-spec.ts';
import { begun, failedOf } from './compute.ts';
import {
  keptPage,
  load,
  type Reachable,
  startCachingNginx,
  startExpress,
  startVarnish,
  untilServes,
  withSystem,
} from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { type LaterSpec, unknownFields } from './version.ts';

const CLIENTS = 300;
const WORKERS = 4;
const RENDER_MS = 200;
const BYTES = 20_000;
/** Each of another page; the median is told, and the most renders. */
const HERDS = 3;

const COLUMNS = [
  { key: 'renders', head: 'renders' },
  { key: 'p50', head: 'p50, ms' },
  { key: 'max', head: 'max, ms' },
  { key: 'failed', head: 'failed' },
];

/** A herd after the other; its requests go to the targets in turn. */
async function measure(
  name: string,
  system: Reachable & { notes: { read: Notes['read'] } },
  herds = HERDS,
): Promise<Row> {
  await untilServes(system);
  const beganMs = Date.now();
  const ids = Array.from({ length: herds }, (_unused, herd) => `herd${herd}`);
  const phases = ids.map((id) => [
    {
      ...{ name: id, concurrency: CLIENTS, count: CLIENTS, seconds: 30 },
      requests: system.targets.map((_target, target) => ({ path: keptPage(id, BYTES, `b${RENDER_MS}`), target })),
    },
  ]);
  const records = await load(system, phases);
  const renders = ids.map((id) => begun(system.notes.read(), beganMs, id));
  const { p50, max } = summarize(records.map(({ ms }) => ms));
  const failed = ids.reduce((sum, id) => sum + failedOf(records, id), 0);
  return { system: name, values: { renders: Math.max(...renders), p50, max, failed } };
}

/** What Corelane's row says. */
function result(rows: Row[], figure: 'herd_renders' | 'fleet_herd_renders', missing: string[]): Result {
  const own = rows.find(({ system }) => system === 'Corelane')?.values;
  if (!own) return { rows, figures: {}, failed: 0, missing };
  return { rows, figures: { [figure]: Number(own.renders) }, failed: Number(own.failed) };
}

async function runHerd(): Promise<Result> {
  const missing = unknownFields(CACHED);
  const rows: Row[] = [];
  const add = async (name: string, start: ReturnType<typeof startNginx>, herds?: number) => {
    rows.push(await withSystem(start, (system) => measure(name, system, herds)));
  };
  if (missing.length === 0) {
    const start = Corelane.start({ workersPerPod: WORKERS, ...CACHED });
    rows.push(await withSystem(start, (system) => measure('Corelane', system)));
  }
  await add('Express, a cache in its process', startExpress());
  await add("nginx' own cache, with its lock", startCachingNginx(WORKERS));
  await add('Varnish', startVarnish());
  await add('plain Node behind nginx', startNginx(WORKERS), 1); // 15 s, whoever asks
  return result(rows, 'herd_renders', missing);
}

export const herd: Scenario = {
  key: 'herd',
  title: 'A herd',
  text: `${CLIENTS} clients ask at once for a page of ${RENDER_MS} ms that nobody has asked for yet; ${HERDS} times, each time for another one. Renders: the most of any of them; plain Node once. ${WORKERS} workers; Express and Varnish have one.`,
  columns: COLUMNS,
  drawn: 'p50',
  seconds: 35,
  run: runHerd,
};

const PODS = 2;

async function measureFleet(spec: LaterSpec): Promise<Row> {
  const start = Fleet.start(PODS, { workersPerPod: 2, ...spec }, { folder: INSIDE });
  return withSystem(start, async ({ pods, network }) => {
    const targets = await Promise.all(
      pods.map(async (pod) => ({ host: await addressOf(pod.holder), port: PORTS.http })),
    );
    const sources = pods.map((pod) => new Notes(pod.notesFile));
    return measure('Corelane', { network, targets, notes: { read: () => sources.flatMap((source) => source.read()) } });
  });
}

/** Without `shared` there is a herd in each pod, which is told as such. */
async function runFleetHerd(): Promise<Result> {
  const { spec, missing } = fleetSpec();
  const rows = unknownFields(spec).length === 0 ? [await measureFleet(spec)] : [];
  return { ...result(rows, 'fleet_herd_renders', missing), missing };
}

export const fleetHerd: Scenario = {
  key: 'fleet-herd',
  title: 'A herd at several pods',
  text: `The same at ${PODS} pods of 2 workers, each request to the next pod in turn: renders in all of them. No peer does it without a part that they share.`,
  columns: COLUMNS,
  drawn: 'p50',
  seconds: 15,
  run: runFleetHerd,
};
