/**
 * A worker that sends requests to its own port while it renders. Notes as worker.mjs makes them. Query parameters:
 *   id=X      name of the request
 *   ask=PATH  ask for this before the end, and say what came
 *   by=http   by node:http over connections that are kept; by fetch unless given
 *   times=N   so many times, all at once
 *   deep=N    ask for itself with N - 1, until it is 0; deep=endless without an end
 *   later=PATH  ask for this, and answer as soon as it has begun
 *   timer=PATH  ask for this when the test releases "timer", not for any request
 *   hold=1    do not end until the test releases this id
 *   copy=1    with the headers of its client, by fetch
 *   body=N    POST a body of N pieces, each of which waits a moment
 */
import { appendFileSync, existsSync } from 'node:fs';
import http from 'node:http';
import { Readable } from 'node:stream';

const { PORT, WORKER_INDEX, EVENTS } = process.env;
const HOLD_MS_MAX = 600_000;
const agent = new http.Agent({ keepAlive: true });

function note(event) {
  const at = performance.timeOrigin + performance.now();
  appendFileSync(EVENTS, `${JSON.stringify({ worker: Number(WORKER_INDEX), pid: process.pid, at, ...event })}\n`);
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function released(id) {
  const end = performance.now() + HOLD_MS_MAX;
  while (!existsSync(`${EVENTS}.${id}`) && performance.now() < end) await wait(10);
}

async function* pieces(count) {
  for (let n = 0; n < count; n += 1) {
    yield 'piece';
    await wait(5);
  }
}

const ASK = {
  async fetch(path, _body, headers) {
    const answer = await fetch(`http://localhost:${PORT}${path}`, { headers });
    return `${answer.status} ${await answer.text()}`;
  },
  http(path, body) {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: PORT, path, agent, method: body > 0 ? 'POST' : 'GET' };
      const request = http.request(options, async (answer) => {
        let text = '';
        for await (const chunk of answer) text += chunk;
        resolve(`${answer.statusCode} ${text}`);
      });
      request.on('error', reject);
      Readable.from(pieces(body)).pipe(request);
    });
  },
};

/** What is to be asked for while `url` is rendered. */
function questions({ pathname, searchParams }) {
  const deep = searchParams.get('deep');
  if (deep === 'endless') return [`${pathname}?id=deep&deep=endless`];
  if (Number(deep) > 0) return [`${pathname}?id=deep&deep=${Number(deep) - 1}`];
  const ask = searchParams.get('ask');
  return ask ? Array(Number(searchParams.get('times') ?? 1)).fill(ask) : [];
}

/** Ids of what has begun. */
const begun = new Set();
/** Asked for outside of any request. */
let timer;
setInterval(() => {
  if (timer === undefined || !existsSync(`${EVENTS}.timer`)) return;
  ASK.http(timer, 0).catch(() => {});
  timer = undefined;
}, 10);

http
  .createServer(async (request, response) => {
    const url = new URL(request.url, 'http://worker');
    const parameter = (name) => url.searchParams.get(name);
    const id = parameter('id') ?? url.pathname;
    begun.add(id);
    note({ event: 'begin', id, method: request.method, port: request.socket.remotePort });
    for await (const _chunk of request);
    const ask = ASK[parameter('by') ?? 'fetch'];
    const { connection, host, ...copied } = request.headers;
    const headers = parameter('copy') ? copied : {};
    const answers = await Promise.all(questions(url).map((path) => ask(path, Number(parameter('body')), headers)));
    if (parameter('later')) {
      ask(parameter('later'), 0).catch(() => {});
      const { searchParams } = new URL(parameter('later'), 'http://worker');
      while (!begun.has(searchParams.get('id'))) await wait(5);
    }
    timer = parameter('timer') ?? timer;
    if (parameter('hold')) await released(id);
    note({ event: 'end', id });
    response.end([id, ...answers].join('\n'));
  })
  // As SvelteKit's adapter-node does it.
  .listen({ path: false, port: Number(PORT), host: '0.0.0.0' });
