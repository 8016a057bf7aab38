/** http-cache-tests: what RFC 9111 asks of a cache. */
import { TRIES_EACH_PAGE } from '../../e2e/harness/engine/haproxy-modules.ts';
import { heldAgainstList } from '../../sidecar/test/http-cache-tests/required.ts';
import { client, ORIGIN, outcomes, theSuite } from '../../sidecar/test/http-cache-tests/suite.ts';
import { Corelane } from '../systems/corelane.ts';
import { passedOf } from './compute.ts';
import { CACHED, type Reachable, runNode, startCachingNginxBefore, startVarnish, untilServes } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { atOnce, turn } from './turns.ts';

/** As the image of the suite has it. */
const VARNISH = ['-p', 'default_ttl=0', '-p', 'default_grace=0', '-p', 'default_keep=3600'];

/** @param mount the option by which a container gets the suite */
async function measure(system: string, running: Reachable, mount: string[]): Promise<Row & { unexpected: string[] }> {
  await untilServes(running, '/config/hello', 405); // as the origin answers whatever is no PUT
  const [target] = running.targets;
  const tests = outcomes(await runNode(running, mount, ...client(`http://${target?.host}:${target?.port}`)));
  const values = ['required', 'optimal', 'check'].flatMap((kind) => {
    const { passed, of } = passedOf(tests, kind);
    return [
      [kind, passed],
      [`${kind}Of`, of],
    ];
  });
  const { failing, unexpected } = heldAgainstList(tests);
  return { system, values: { ...Object.fromEntries(values), failing: failing.join(' ') }, unexpected };
}

async function run(): Promise<Result> {
  // The suite sends a hundred tests at a time, each of some requests, and wants none of them refused.
  const spec = { workersPerPod: 1, concurrency: 100, ...CACHED };
  const { mount } = await theSuite();
  const worker = { command: ORIGIN, options: mount };
  const nginx = startCachingNginxBefore(ORIGIN, mount, 'proxy_cache_revalidate on;');
  // What counts is what they do, not how long it takes.
  const rows = await atOnce(
    turn(Corelane.start(spec, 'corelane', { ...worker, ...TRIES_EACH_PAGE }), (system) =>
      measure('Corelane', system, mount),
    ),
    turn(nginx, (system) => measure("nginx' own cache", system, mount)),
    turn(startVarnish(ORIGIN, mount, VARNISH), (system) => measure('Varnish', system, mount)),
  );
  const [corelane] = rows;
  return {
    rows: rows.map(({ system, values }) => ({ system, values })),
    figures: { cache_tests_required: Number(corelane?.values.required) },
    failed: corelane?.unexpected.length ?? 1,
  };
}

export const cacheTests: Scenario = {
  key: 'cache-tests',
  title: 'What a cache must do',
  text: 'http-cache-tests (cache-tests.fyi): how many of its tests pass. "Required" is what RFC 9111 demands, "optimal" what it allows, "behaviour" says only how a cache does something. edge.json names the required ones that fail; [the burst cache](../cache.md#limits) says why, and what fails beside these counts as failed.',
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
