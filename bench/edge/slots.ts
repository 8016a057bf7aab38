/** How many requests of a page with its files reach a worker. */
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { APP_FILES, AppFiles } from '../../sidecar/test/app-files.ts';
import { application } from '../../sidecar/test/frameworks/application.ts';
import { Notes } from '../lib/notes.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { begun, failedOf } from './compute.ts';
import {
  INSIDE_MOUNT,
  load,
  NEXT_COMMAND,
  type Reachable,
  startExpress,
  startNext,
  untilServes,
  withSystem,
} from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';

const CHUNKS = Array.from({ length: 25 }, (_unused, n) => `files/chunk-${n}.js`);
const SCRIPT = `export const text = '${'a chunk '.repeat(1_000)}';\n`;
/** What a browser fetches at a time from one host. */
const AT_A_TIME = 6;

/** Fetches a page that nobody has asked for yet, and then its files as a browser does. */
async function visit(system: Reachable & { notes: Notes }, page: string, files: string[]) {
  await untilServes(system, '/?id=hello');
  const beganMs = Date.now();
  const group = (name: string, paths: string[]) => ({
    ...{ name, concurrency: AT_A_TIME, count: paths.length, seconds: 30 },
    requests: paths.map((path) => ({ path })),
  });
  const records = await load(system, [[group('page', [page])], [group('files', files)]]);
  return {
    slots: begun(system.notes.read(), beganMs),
    failed: failedOf(records, 'page') + failedOf(records, 'files'),
  };
}

function row(system: string, files: string[], { slots, failed }: { slots: number; failed: number }): Row {
  return { system, values: { files: files.length, slots, failed } };
}

/** The page and 25 files, by what is compared. */
async function withChunks(options: string[]): Promise<Row[]> {
  const files = CHUNKS.map((path) => `/${path}`);
  const assets = [{ path: '/files/', from: `${APP_FILES}/files`, immutable: true }];
  const visited = (system: Reachable & { notes: Notes }) => visit(system, '/?id=page', files);
  const corelane = Corelane.start({ workersPerPod: 1, assets }, 'corelane', { options });
  return [
    row('Corelane', files, await withSystem(corelane, visited)),
    row('plain Node behind nginx', files, await withSystem(startNginx(1, { options }), visited)),
    row('Express, its static files', files, await withSystem(startExpress(options), visited)),
  ];
}

/** The first page of a Next app, and all files that it names. */
async function withNext(): Promise<Row[]> {
  const folder = await application('next');
  const worker = { folder, command: NEXT_COMMAND, options: ['--workdir', '/app', ...INSIDE_MOUNT] };
  const { files, corelane } = await withSystem(
    Pod.start({ workersPerPod: 1, framework: 'Next' }, worker),
    async (pod) => {
      const page = await pod.get('/');
      const found = [...new Set(page.body.match(/\/_next\/static\/[^"\\]+/g))];
      const targets = [{ host: '127.0.0.1', port: PORTS.http }];
      const system = { network: pod.network, targets, notes: new Notes(pod.notesFile) };
      return { files: found, corelane: await visit(system, '/', found) };
    },
  );
  const next = await withSystem(startNext(folder), (system) => visit(system, '/', files));
  return [row('Next in Corelane', files, corelane), row("Next's own server", files, next)];
}

async function run(): Promise<Result> {
  const chunks = new AppFiles(Object.fromEntries(CHUNKS.map((path) => [path, SCRIPT])));
  try {
    const rows = [...(await withChunks(chunks.options)), ...(await withNext())];
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
  text: `A page with ${CHUNKS.length} files, and the first page of a Next app with those that it names: requests that a process of Node.js has begun, by its own account.`,
  columns: [
    { key: 'files', head: 'files' },
    { key: 'slots', head: 'requests in Node.js' },
    { key: 'failed', head: 'failed' },
  ],
  drawn: 'slots',
  seconds: 30,
  wantsNext: true,
  run,
};
