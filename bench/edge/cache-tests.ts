/** http-cache-tests: what RFC 9111 asks of a cache. */
import { Corelane } from '../systems/corelane.ts';
import { type CacheTest, passedOf } from './compute.ts';
import {
  CACHED,
  PEERS_MOUNT,
  type Reachable,
  runPeer,
  startCachingNginxBefore,
  startVarnish,
  untilServes,
} from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { atOnce, turn } from './turns.ts';

/** As the image of the suite has it. */
const VARNISH = ['-p', 'default_ttl=0', '-p', 'default_grace=0', '-p', 'default_keep=3600'];
const ORIGIN = ['node', '/peers/cache-tests.mjs', 'server'];

async function measure(system: string, running: Reachable): Promise<Row> {
  await untilServes(running, '/config/hello', 405); // as the origin answers whatever is no PUT
  const [target] = running.targets;
  const text = await runPeer(running, '/peers/cache-tests.mjs', 'client', `http://${target?.host}:${target?.port}`);
  const tests = JSON.parse(text) as CacheTest[];
  const values = ['required', 'optimal', 'check'].flatMap((kind) => {
    const { passed, of } = passedOf(tests, kind);
    return [
      [kind, passed],
      [`${kind}Of`, of],
    ];
  });
  const failing = tests.filter(({ kind, passed }) => kind === 'required' && !passed).map(({ id }) => id);
  return { system, values: { ...Object.fromEntries(values), failing: failing.join(' ') } };
}

async function run(): Promise<Result> {
  // The suite sends a hundred tests at a time, each of some requests, and wants none of them refused.
  const spec = { workersPerPod: 1, concurrency: 100, ...CACHED };
  const worker = { command: ORIGIN, options: PEERS_MOUNT };
  const nginx = startCachingNginxBefore(ORIGIN, PEERS_MOUNT, 'proxy_cache_revalidate on;');
  // What counts is what they do, not how long it takes.
  const rows = await atOnce(
    turn(Corelane.start(spec, 'corelane', worker), (system) => measure('Corelane', system)),
    turn(nginx, (system) => measure("nginx' own cache", system)),
    turn(startVarnish(ORIGIN, PEERS_MOUNT, VARNISH), (system) => measure('Varnish', system)),
  );
  return { rows, figures: { cache_tests_required: Number(rows[0]?.values.required) }, failed: 0 };
}

export const cacheTests: Scenario = {
  key: 'cache-tests',
  title: 'What a cache must do',
  text: 'http-cache-tests (cache-tests.fyi): how many of its tests pass. "Required" is what RFC 9111 demands, "optimal" what it allows, "behaviour" says only how a cache does something. edge.json names the required ones that fail.',
  columns: [
    { key: 'required', head: 'required' },
    { key: 'requiredOf', head: 'of' },
    { key: 'optimal', head: 'optimal' },
    { key: 'optimalOf', head: 'of' },
    { key: 'check', head: 'behaviour' },
    { key: 'checkOf', head: 'of' },
  ],
  drawn: 'required',
  seconds: 32,
  run,
};
