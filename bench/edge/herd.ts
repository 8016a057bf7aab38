/** Many ask at once for a page that nobody has yet. */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { INSIDE } from '../lib/inside.ts';
import { Notes } from '../lib/notes.ts';
import { summarize } from '../lib/stats.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { addressOf } from '../systems/system.ts';
import { begun, failedOf } from './compute.ts';
import { CACHED, keptPage, load, type Reachable, startCachingNginx, startExpress, startVarnish } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { inTurn, turn } from './turns.ts';
import { laterSpec, unknownFields } from './version.ts';

const CLIENTS = 300;
const WORKERS = 8;
const RENDER_MS = 200;
const BYTES = 20_000;
/** One site, whichever pod is asked: `Host` is a part of a page's key. */
const HOST = 'shop.example';
/** Room for a herd of this size: by default nginx' memory lets 205 in at a time (docs/cache.md). */
const ROOM = { sidecar: { nginx: { memoryLimit: '1Gi' } } };
/** Each of another page; the median is told, and the most renders. */
const HERDS = 3;

const COLUMNS = [
  { key: 'renders', head: 'renders' },
  { key: 'p50', head: 'p50, ms' },
  { key: 'max', head: 'max, ms' },
  { key: 'failed', head: 'failed' },
];

interface Noted extends Reachable {
  notes: { read: Notes['read'] };
}

/** A herd after the other; its requests go to the targets in turn. */
async function measure(system: string, running: Noted, herds = HERDS): Promise<Row> {
  const beganMs = Date.now();
  const ids = Array.from({ length: herds }, (_unused, herd) => `herd${herd}`);
  const phases = ids.map((id) => [
    {
      ...{ name: id, concurrency: CLIENTS, count: CLIENTS, seconds: 30 },
      requests: running.targets.map((_target, target) => ({ path: keptPage(id, BYTES, `b${RENDER_MS}`), target })),
    },
  ]);
  const records = await load(running, phases, { host: HOST });
  const renders = ids.map((id) => begun(running.notes.read(), beganMs, id));
  const { p50, max } = summarize(records.map(({ ms }) => ms));
  const failed = ids.reduce((sum, id) => sum + failedOf(records, id), 0);
  return { system, values: { renders: Math.max(...renders), p50, max, failed } };
}

async function runHerd(): Promise<Result> {
  const rows = await inTurn(
    turn(Corelane.start({ workersPerPod: WORKERS, ...CACHED, ...ROOM }), (system) => measure('Corelane', system)),
    turn(startExpress(), (system) => measure('Express, a cache in its process', system)),
    turn(startCachingNginx(WORKERS), (system) => measure("nginx' own cache, with its lock", system)),
    turn(startVarnish(), (system) => measure('Varnish', system)),
    turn(startNginx(WORKERS), (system) => measure('plain Node behind nginx', system, 1)), // it takes 8 s
  );
  const { renders, failed } = (rows[0] as Row).values;
  return { rows, figures: { herd_renders: Number(renders) }, failed: Number(failed) };
}

export const herd: Scenario = {
  key: 'herd',
  title: 'A herd',
  text: `${CLIENTS} clients ask at once for a page of ${RENDER_MS} ms that nobody has asked for yet; ${HERDS} times, each time for another one. Renders: the most of any of them; plain Node once. ${WORKERS} workers; Express and Varnish have one. Corelane has \`sidecar.nginx.memoryLimit: 1Gi\`: by default it lets 205 of them in at a time, and refuses the rest.`,
  columns: COLUMNS,
  drawn: 'p50',
  seconds: 35,
  run: runHerd,
};

const PODS = 2;
/** The pods of a fleet render once for all of them. */
const SHARED = laterSpec({ cache: { enabled: true, shared: 'Peers' } });

/** Without `shared` there is a herd in each pod, which is told as such. */
async function runFleetHerd(): Promise<Result> {
  const missing = unknownFields(SHARED);
  const spec = missing.length === 0 ? SHARED : CACHED;
  const start = Fleet.start(PODS, { workersPerPod: 2, ...spec, ...ROOM }, { folder: INSIDE });
  const rows = await inTurn(
    turn(start, async ({ pods, network }) => {
      const targets = await Promise.all(
        pods.map(async (pod) => ({ host: await addressOf(pod.holder), port: PORTS.http })),
      );
      const sources = pods.map((pod) => new Notes(pod.notesFile));
      const notes = { read: () => sources.flatMap((source) => source.read()) };
      return measure('Corelane', { network, targets, notes });
    }),
  );
  const { renders, failed } = (rows[0] as Row).values;
  return { rows, figures: { fleet_herd_renders: Number(renders) }, failed: Number(failed), missing };
}

export const fleetHerd: Scenario = {
  key: 'fleet-herd',
  title: 'A herd at several pods',
  text: `The same at ${PODS} pods of 2 workers, each request to the next pod in turn: renders in all of them. No peer does it without a part that they share.`,
  columns: COLUMNS,
  drawn: 'p50',
  seconds: 14,
  run: runFleetHerd,
};
