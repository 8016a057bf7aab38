/** How much later what is streamed arrives than straight from the worker. */
import { exampleWorker } from '../../e2e/harness/engine/examples.ts';
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { Group, Record, Target } from '../lib/load.ts';
import { median } from '../lib/stats.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { isAnswered } from './compute.ts';
import { load } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { inTurn, turn } from './turns.ts';

const SHELL_BYTES = 40_000;
/** The shell in one piece, as Next writes it; the rest when its data is there. */
const PAGE = `/?id=stream&steps=s${SHELL_BYTES},w60,s2000`;
/** Of either way, in turn. */
const REQUESTS = 25;
const NEXT_PAGE = '/stream';
const NEXT_REQUESTS = 8;
const WARM_UP = 3;

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
  const records = await load({ network, targets }, [[group]], { hello: { path, status: 200 } });
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
const THROUGH = { host: '127.0.0.1', port: PORTS.http };
const WORKER = { host: '127.0.0.1', port: PORTS.firstWorker };

async function startNextInCorelane(): Promise<Pod> {
  return Pod.start({ workersPerPod: 1, framework: 'Next', concurrency: 1 }, await exampleWorker('next'));
}

async function run(): Promise<Result> {
  const rows = await inTurn(
    turn(Corelane.start({ workersPerPod: 1 }), async ({ network }) =>
      row('Corelane', await inTurns(network, [THROUGH, WORKER], PAGE, REQUESTS, SHELL_BYTES)),
    ),
    turn(startNextInCorelane(), async ({ network }) =>
      row('Next in Corelane', await inTurns(network, [THROUGH, WORKER], NEXT_PAGE, NEXT_REQUESTS, 1)),
    ),
    turn(startNginx(1), async ({ network, targets: [through] }) => {
      const past = { host: '127.0.0.1', port: NODE_PORT };
      return row('nginx', await inTurns(network, [through as Target, past], PAGE, REQUESTS, SHELL_BYTES));
    }),
  );
  const own = rows.slice(0, 2).map(({ values }) => values);
  const added = Math.max(...own.map((values) => Number(values.added)));
  return {
    rows,
    figures: { first_byte_ms_added: added },
    failed: own.reduce((sum, { failed }) => sum + Number(failed), 0),
  };
}

export const firstByte: Scenario = {
  key: 'first-byte',
  title: 'The first byte of a stream',
  text: `A page that writes a shell of ${SHELL_BYTES / 1_000} kB at once and the rest 60 ms later; a route of a Next app that streams (examples/frameworks/next). Straight to the worker (for Next: to its own server) and by the proxies, in turn; medians in ms. "Whole shell, added": how much later all of the shell was there.`,
  columns: [
    { key: 'direct', head: 'first byte, direct', digits: 1 },
    { key: 'first', head: 'first byte', digits: 1 },
    { key: 'added', head: 'added', digits: 1 },
    { key: 'shell', head: 'whole shell, added', digits: 1 },
    { key: 'failed', head: 'failed' },
  ],
  drawn: 'first',
  seconds: 26,
  wantsNext: true,
  run,
};
