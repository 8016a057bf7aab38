/** How much later what is streamed arrives than straight from the worker. */
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { application } from '../../sidecar/test/frameworks/application.ts';
import type { Group, Record, Target } from '../lib/load.ts';
import { median } from '../lib/stats.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { isAnswered } from './compute.ts';
import { load, type Reachable, untilServes, withSystem } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';

const SHELL_BYTES = 40_000;
/** The shell in one piece, as Next writes it; the rest when its data is there. */
const PAGE = `/?id=stream&steps=s${SHELL_BYTES},w60,s2000`;
/** Of either way, in turn. */
const REQUESTS = 80;
const NEXT_PAGE = '/stream';
const NEXT_REQUESTS = 12;
const WARM_UP = 4;

interface Measured {
  firstMs: number;
  shellMs: number;
}

/** One client, past the proxies and through them in turn. */
async function inTurns(
  network: string,
  targets: [through: Target, past: Target],
  path: string,
  count: number,
  markBytes: number,
) {
  const requests = [0, 1].map((target) => ({ path, target }));
  const group: Group = {
    name: 'turns',
    concurrency: 1,
    count: 2 * (count + WARM_UP),
    seconds: 60,
    markBytes,
    requests,
  };
  const records = await load({ network, targets }, [[group]]);
  const of = (target: number) => records.filter((_record, index) => index % 2 === target).slice(WARM_UP);
  return { through: measured(of(0)), past: measured(of(1)), failed: records.filter((one) => !isAnswered(one)).length };
}

function measured(records: Record[]): Measured {
  const of = (key: 'firstMs' | 'markMs') => median(records.map((record) => record[key] ?? Number.NaN));
  return { firstMs: of('firstMs'), shellMs: of('markMs') };
}

type Turns = Awaited<ReturnType<typeof inTurns>>;

function row(system: string, { through, past, failed }: Turns): Row {
  const values = {
    direct: past.firstMs,
    first: through.firstMs,
    added: through.firstMs - past.firstMs,
    shell: through.shellMs - past.shellMs,
    failed,
  };
  return { system, values };
}

const NODE_PORT = 9002;

async function run(): Promise<Result> {
  const stream = (system: Reachable & { direct?: Target[] }) => {
    const past = system.direct?.[0] ?? { host: '127.0.0.1', port: NODE_PORT };
    return inTurns(system.network, [system.targets[0] as Target, past], PAGE, REQUESTS, SHELL_BYTES);
  };
  const corelane = await withSystem(Corelane.start({ workersPerPod: 1 }), stream);
  const nginx = await withSystem(startNginx(1), async (system) => {
    await untilServes(system);
    return stream(system);
  });
  const worker = { folder: await application('next'), command: ['node', '.next/standalone/server.js'] };
  const options = { ...worker, options: ['--workdir', '/app'] };
  const next = await withSystem(Pod.start({ workersPerPod: 1, framework: 'Next' }, options), async (pod) => {
    const through = { host: '127.0.0.1', port: PORTS.http };
    await untilServes({ network: pod.network, targets: [through] }, NEXT_PAGE);
    const past = { host: '127.0.0.1', port: PORTS.firstWorker };
    return inTurns(pod.network, [through, past], NEXT_PAGE, NEXT_REQUESTS, 1);
  });
  const rows = [row('Corelane', corelane), row('Next in Corelane', next), row('nginx', nginx)];
  const added = Math.max(...rows.slice(0, 2).map(({ values }) => Number(values.added)));
  return { rows, figures: { first_byte_ms_added: added }, failed: corelane.failed + next.failed };
}

export const firstByte: Scenario = {
  key: 'first-byte',
  title: 'The first byte of a stream',
  text: `A page that writes a shell of ${SHELL_BYTES / 1_000} kB at once and the rest 60 ms later; a route of a Next app that streams. Straight to the worker (for Next: to its own server) and by the proxies, in turn; medians in ms. "Whole shell, added": how much later all of the shell was there.`,
  columns: [
    { key: 'direct', head: 'first byte, direct', digits: 1 },
    { key: 'first', head: 'first byte', digits: 1 },
    { key: 'added', head: 'added', digits: 1 },
    { key: 'shell', head: 'whole shell, added', digits: 1 },
    { key: 'failed', head: 'failed' },
  ],
  drawn: 'first',
  seconds: 40,
  wantsNext: true,
  run,
};
