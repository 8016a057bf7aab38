/** Pages from a cache: requests per second that one core gives. */
import { engine } from '../../e2e/harness/engine/docker.ts';
import { Corelane } from '../systems/corelane.ts';
import type { InOneContainer } from '../systems/in-one-container.ts';
import { type Throughput, throughputOf } from './compute.ts';
import {
  CACHED,
  keptPage,
  onFirstCore,
  PEERS_IMAGE,
  type Reachable,
  SECOND_CORE,
  startCachingNginx,
  startExpress,
  startNext,
  startVarnish,
  untilServes,
} from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { inTurn, turn } from './turns.ts';

const BYTES = 20_000;
const PAGE = keptPage('cached', BYTES, 'b5');
const CONNECTIONS = 32;
const SECONDS = 3;
const WARM_UP_SECONDS = 1;
/** Of examples/frameworks/next: made when it was built. */
const NEXT_PAGE = '/picture';
const NEXT_KB = 6;

/** wrk in the network of a system, on the other core: first for what must be warm, then for what is told. */
async function wrk({ network, targets: [target] }: Reachable, path: string): Promise<Throughput> {
  const url = `http://${target?.host}:${target?.port}${path}`;
  const script = `wrk --duration ${WARM_UP_SECONDS}s "$@" >/dev/null && exec wrk --duration ${SECONDS}s --latency "$@"`;
  const options = ['--network', network, ...SECOND_CORE, '--entrypoint', 'sh', PEERS_IMAGE];
  const args = ['-c', script, 'wrk', '--threads', '1', '--connections', `${CONNECTIONS}`, url];
  return throughputOf(await engine.runToEnd(...options, ...args));
}

async function measure(system: string, running: Reachable, containers: string[], path = PAGE): Promise<Row> {
  await onFirstCore(containers);
  await untilServes(running, path);
  const { perSecond, p99Ms, failed } = await wrk(running, path);
  return { system, values: { rps: perSecond, p99: p99Ms, failed, express: null } };
}

async function run(): Promise<Result> {
  const peer = (name: string, start: Promise<InOneContainer>, path?: string) =>
    turn(start, (system) => measure(name, system, [system.container, ...system.proxies], path));
  const rows = await inTurn(
    turn(Corelane.start({ workersPerPod: 1, ...CACHED }), (system) =>
      measure('Corelane', system, [...system.proxies, ...system.pod.workers]),
    ),
    peer('Express, a cache in its process', startExpress()),
    peer("nginx' own cache", startCachingNginx()),
    peer('Varnish', startVarnish()),
    peer("Next's own server, a page that it keeps", startNext(), NEXT_PAGE),
  );
  const [own, express] = rows.map(({ values }) => values) as [Row['values'], Row['values']];
  for (const { values } of rows) values.express = Number(values.rps) / Number(express.rps);
  return { rows, figures: { cached_x: Number(own.express) }, failed: Number(own.failed) };
}

export const cached: Scenario = {
  key: 'cached',
  title: 'A cached page',
  text: `One page of ${BYTES / 1_000} kB over ${CONNECTIONS} kept connections (wrk). All of a system, its worker included, has one core, the client the other one. Corelane writes its access log, the peers write none. Next's page is one that it made when it was built (examples/frameworks/next), of ${NEXT_KB} kB.`,
  columns: [
    { key: 'rps', head: 'requests/s' },
    { key: 'express', head: "x Express's", digits: 2 },
    { key: 'p99', head: 'p99, ms', digits: 1 },
    { key: 'failed', head: 'failed' },
  ],
  drawn: 'rps',
  seconds: 42,
  wantsNext: true,
  run,
};
