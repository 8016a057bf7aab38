/**
 * The suite http-cache-tests (cache-tests.fyi):
 *   cache-tests.mjs server      its origin, on $PORT
 *   cache-tests.mjs client URL  its client; prints one JSON line: id, kind and outcome of each test
 */
import { appendFileSync } from 'node:fs';

const [mode, url] = process.argv.slice(2);

async function serve() {
  const { PORT, EVENTS, WORKER_INDEX = '0' } = process.env;
  Object.assign(process.env, { npm_config_protocol: 'http', npm_config_port: PORT, npm_config_pidfile: '/tmp/pid' });
  await import('http-cache-tests/server/server.mjs');
  const up = { worker: Number(WORKER_INDEX), pid: process.pid, at: Date.now(), event: 'up' };
  appendFileSync(EVENTS, `${JSON.stringify(up)}\n`);
}

async function run() {
  const { default: suites } = await import('http-cache-tests/tests/index.mjs');
  const { default: surrogate } = await import('http-cache-tests/tests/surrogate-control.mjs');
  const { runTests, getResults } = await import('http-cache-tests/client/runner.mjs');
  // Of Node.js' own it may not set all headers.
  const { default: fetch } = await import('node-fetch');
  const all = [...suites, surrogate];
  console.log = () => {}; // it tells of some tests
  await runTests(all, fetch, false, url);
  const results = getResults();
  const tests = all.flatMap((suite) => suite.tests.map((test) => ({ ...test, suite: suite.name })));
  const told = tests
    .filter(({ id }) => results[id] !== undefined)
    .map(({ id, suite, kind = 'required' }) => ({ id, suite, kind, passed: results[id] === true }));
  process.stdout.write(`${JSON.stringify(told)}\n`, () => process.exit(0));
}

await (mode === 'server' ? serve() : run());
