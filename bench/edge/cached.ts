/** Pages from a cache: requests per second that one core gives. */
import { engine } from '../../e2e/harness/engine/docker.ts';
import { application } from '../../sidecar/test/frameworks/application.ts';
import { Corelane } from '../systems/corelane.ts';
import { CACHED } from './cached-spec.ts';
import { type Throughput, throughputOf } from './compute.ts';
import {
  keptPage,
  onFirstCore,
  PEERS_IMAGE,
  type Reachable,
  SECOND_CORE,
  startCachingNginx,
  startExpress,
  startNext,
  type startNode,
  startVarnish,
  untilServes,
  withSystem,
} from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { unknownFields } from './version.ts';

const BYTES = 20_000;
const PAGE = keptPage('cached', BYTES, 'b5');
const CONNECTIONS = 32;
const SECONDS = 4;
const WARM_UP_SECONDS = 1;

/** wrk in the network of a system, on the other core. */
async function wrk({ network, targets: [target] }: Reachable, path: string, seconds: number): Promise<Throughput> {
  const url = `http://${target?.host}:${target?.port}${path}`;
  const options = ['--network', network, ...SECOND_CORE, '--entrypoint', 'wrk', PEERS_IMAGE];
  const args = ['--threads', '1', '--connections', `${CONNECTIONS}`, '--duration', `${seconds}s`, '--latency', url];
  return throughputOf(await engine.runToEnd(...options, ...args));
}

interface Pinned extends Reachable {
  containers: string[];
  stop(): Promise<void>;
}

async function measure(name: string, start: Promise<Pinned>, path = PAGE): Promise<Row> {
  return withSystem(start, async (system) => {
    await onFirstCore(system.containers);
    await untilServes(system, path);
    await wrk(system, path, WARM_UP_SECONDS);
    const { perSecond, p99Ms, failed } = await wrk(system, path, SECONDS);
    return { system: name, values: { rps: perSecond, p99: p99Ms, failed, express: null } };
  });
}

async function startCorelane(): Promise<Pinned> {
  const system = await Corelane.start({ workersPerPod: 1, ...CACHED });
  return Object.assign(system, { containers: [...system.proxies, ...system.pod.workers] });
}

async function peer(start: ReturnType<typeof startNode>): Promise<Pinned> {
  const system = await start;
  return Object.assign(system, { containers: [system.container, ...system.proxies] });
}

async function run(): Promise<Result> {
  const missing = unknownFields(CACHED);
  const rows: Row[] = [];
  if (missing.length === 0) rows.push(await measure('Corelane', startCorelane()));
  const express = await measure('Express, a cache in its process', peer(startExpress()));
  rows.push(express);
  rows.push(await measure("nginx' own cache", peer(startCachingNginx())));
  rows.push(await measure('Varnish', peer(startVarnish())));
  rows.push(
    await measure("Next's own server, a page that it keeps", peer(startNext(await application('next'))), '/kept'),
  );
  for (const { values } of rows) values.express = Number(values.rps) / Number(express.values.rps);
  const own = rows.find(({ system }) => system === 'Corelane')?.values;
  if (!own) return { rows, figures: {}, failed: 0, missing };
  return { rows, figures: { cached_x: Number(own.express) }, failed: Number(own.failed) };
}

export const cached: Scenario = {
  key: 'cached',
  title: 'A cached page',
  text: `One page of ${BYTES / 1_000} kB over ${CONNECTIONS} kept connections (wrk). All of a system, its worker included, has one core, the client the other one. Corelane writes its access log, the peers write none. Next's page is one that it made when it was built, of about the same length.`,
  columns: [
    { key: 'rps', head: 'requests/s' },
    { key: 'express', head: "x Express's", digits: 2 },
    { key: 'p99', head: 'p99, ms', digits: 1 },
    { key: 'failed', head: 'failed' },
  ],
  drawn: 'rps',
  seconds: 60,
  wantsNext: true,
  run,
};
