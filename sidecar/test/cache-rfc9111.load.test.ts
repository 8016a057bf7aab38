/**
 * The cache against RFC 9111, as http-cache-tests has it: what is required, but for a list that docs/cache.md explains.
 * A load test: the suite is long, and its pages end within seconds, so it needs a free core.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { TRIES_EACH_PAGE } from '../../e2e/harness/engine/haproxy-modules.ts';
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { heldAgainstList } from './http-cache-tests/required.ts';
import { type CacheTest, client, ORIGIN, outcomes, theSuite } from './http-cache-tests/suite.ts';

let tests: CacheTest[];
beforeAll(async () => {
  const { mount, program } = await theSuite();
  // A hundred tests run at a time, and none of their requests may be refused.
  const spec = { workersPerPod: 1, concurrency: 100, cache: { enabled: true } };
  const pod = await Pod.start(spec, { command: ORIGIN, options: mount, ...TRIES_EACH_PAGE });
  try {
    const args = client(`http://127.0.0.1:${pod.port(PORTS.http)}`, 'required', program);
    tests = outcomes((await promisify(execFile)(process.execPath, args)).stdout);
  } finally {
    await pod.stop();
  }
}, 300_000);

test('what is required of a shared cache, but for what is explained', () => {
  const reasons = new Map(tests.map(({ id, why }) => [id, why ?? 'passed']));
  expect(heldAgainstList(tests).unexpected.map((id) => [id, reasons.get(id)])).toEqual([]);
});

test('nothing that must not come from the cache does, whatever the suite takes for a kept page', () => {
  const taken = tests.filter(({ why }) => why?.endsWith('comes from cache'));
  expect(taken.filter(({ said }) => said?.at(-1)?.includes('; hit'))).toEqual([]);
});
