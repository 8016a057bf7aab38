/** How many requests of a page with its files reach a worker. */
import { APP_FILES, AppFiles } from '../../e2e/harness/engine/app-files.ts';
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { Notes } from '../lib/notes.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { begun, failedOf } from './compute.ts';
import { load, nextWorker, type Reachable, startExpress, startNext, untilServes } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { inTurn, turn } from './turns.ts';

const CHUNKS = Array.from({ length: 25 }, (_unused, n) => `files/chunk-${n}.js`);
const SCRIPT = `export const text = '${'a chunk '.repeat(1_000)}';\n`;
/** What a browser fetches at a time from one host. */
const AT_A_TIME = 6;

interface Counted extends Reachable {
  notes: Notes;
}

/** Fetches a page that nobody has asked for yet, and then its files as a browser does. */
async function visit(name: string, system: Counted, page: string, files: string[]): Promise<Row> {
  await untilServes(system);
  const beganMs = Date.now();
  const group = (name: string, paths: string[]) => ({
    ...{ name, concurrency: AT_A_TIME, count: paths.length, seconds: 30 },
    requests: paths.map((path) => ({ path })),
  });
  const hello = undefined; // it would be counted
  const records = await load(system, [[group('page', [page])], [group('files', files)]], { hello });
  const slots = begun(system.notes.read(), beganMs);
  const failed = failedOf(records, 'page') + failedOf(records, 'files');
  return { system: name, values: { files: files.length, slots, failed } };
}

/** The example of the guide to Next, and the files that its first page names. */
async function startNextInCorelane(): Promise<Counted & { files: string[]; stop(): Promise<void> }> {
  const pod = await Pod.start({ workersPerPod: 1, framework: 'Next', concurrency: 1 }, await nextWorker());
  const { body } = await pod.get('/');
  const targets = [{ host: '127.0.0.1', port: PORTS.http }];
  const files = [...new Set(body.match(/\/_next\/static\/[^"\\ ]+/g))];
  return { network: pod.network, targets, notes: new Notes(pod.notesFile), files, stop: () => pod.stop() };
}

async function run(): Promise<Result> {
  const chunks = new AppFiles(Object.fromEntries(CHUNKS.map((path) => [path, SCRIPT])));
  const { options } = chunks;
  const assets = [{ path: '/files/', from: `${APP_FILES}/files`, immutable: true }];
  const files = CHUNKS.map((path) => `/${path}`);
  const withChunks = (name: string) => (system: Counted) => visit(name, system, '/?id=page', files);
  const next = startNextInCorelane();
  try {
    const rows = await inTurn(
      turn(Corelane.start({ workersPerPod: 1, assets }, 'corelane', { options }), withChunks('Corelane')),
      turn(startNginx(1, { options }), withChunks('plain Node behind nginx')),
      turn(startExpress(options), withChunks('Express, its static files')),
      turn(next, (system) => visit('Next in Corelane', system, '/', system.files)),
      turn(startNext(), async (system) => visit("Next's own server", system, '/', (await next).files)),
    );
    const own = rows.filter(({ system }) => system.endsWith('Corelane'));
    const slots = Math.max(...own.map(({ values }) => Number(values.slots)));
    const failed = own.reduce((sum, { values }) => sum + Number(values.failed), 0);
    return { rows, figures: { slots_per_page: slots }, failed };
  } finally {
    chunks.remove();
  }
}

export const slots: Scenario = {
  key: 'slots',
  title: 'Slots per page',
  text: `A page with ${CHUNKS.length} files, and the first page of a Next app (examples/frameworks/next) with those that it names: requests that a process of Node.js has begun, by its own account.`,
  columns: [
    { key: 'files', head: 'files' },
    { key: 'slots', head: 'requests in Node.js' },
    { key: 'failed', head: 'failed' },
  ],
  drawn: 'slots',
  seconds: 24,
  wantsNext: true,
  run,
};
