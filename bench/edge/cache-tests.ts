/** http-cache-tests: what RFC 9111 asks of a cache. */
import { Corelane } from '../systems/corelane.ts';
import { CACHED } from './cached-spec.ts';
import { type CacheTest, passedOf } from './compute.ts';
import {
  PEERS_MOUNT,
  type Reachable,
  runPeer,
  startCachingNginxBefore,
  startVarnish,
  untilServes,
  withSystem,
} from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { unknownFields } from './version.ts';

/** As the image of the suite has it. */
const VARNISH = ['-p', 'default_ttl=0', '-p', 'default_grace=0', '-p', 'default_keep=3600'];
const ORIGIN = ['node', '/peers/cache-tests.mjs', 'server'];

async function measure(system: string, start: Promise<Reachable & { stop(): Promise<void> }>): Promise<Row> {
  return withSystem(start, async (running) => {
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
  });
}

async function run(): Promise<Result> {
  const missing = unknownFields(CACHED);
  // What counts is what they do, not how long it takes: all at once.
  const started = [
    measure("nginx' own cache", startCachingNginxBefore(ORIGIN, PEERS_MOUNT, 'proxy_cache_revalidate on;')),
    measure('Varnish', startVarnish(ORIGIN, PEERS_MOUNT, VARNISH)),
  ];
  // The suite sends a hundred tests at a time, each of some requests, and wants none of them refused.
  const spec = { workersPerPod: 1, concurrency: 100, ...CACHED };
  const worker = { command: ORIGIN, options: PEERS_MOUNT };
  if (missing.length === 0) started.unshift(measure('Corelane', Corelane.start(spec, 'corelane', worker)));
  const rows = await Promise.all(started);
  const own = rows.find(({ system }) => system === 'Corelane')?.values;
  const figures = own ? { cache_tests_required: Number(own.required) } : {};
  return { rows, figures, failed: 0, ...(own ? {} : { missing }) };
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
  seconds: 45,
  run,
};
