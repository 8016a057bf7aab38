/**
 * A worker that sends requests to its own port while it renders. Notes as worker.mjs makes them. Query parameters:
 *   id=X      name of the request
 *   ask=PATH  ask for this before the end, and say what came
 *   by=http   by node:http over connections that are kept; by=expect over a new one, with "Expect: 100-continue";
 *             by=child by a child process, by=thread by a worker thread; by fetch unless given
 *   at=HOST   ask there; the own port unless given
 *   times=N   so many times, all at once
 *   deep=N    ask for itself with N - 1, until it is 0; deep=endless without an end
 *   later=PATH  ask for this, and answer as soon as it has begun
 *   timer=PATH  ask for this when the test releases "timer", not for any request
 *   hold=1    do not end until the test releases this id
 *   copy=1    with the headers of its client, by fetch
 *   body=N    POST a body of N pieces, each of which waits a moment
 *   when=X    ask when the test releases X
 *   to=URL    answer with a redirect to that
 *   raw=1     answer with the headers as they came
 *   host=NAME with this Host, by node:http; list=1 with the headers as a list
 * With GATEWAY="PORT TO" it leads connections to PORT to the port TO.
 * With ECHO_PORT it has another server there, which says what headers a request has; its path /full is a queue of
 * Corelane that has no place.
 */
import { execFile } from 'node:child_process';
import { appendFileSync, existsSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';

const { PORT, WORKER_INDEX, EVENTS, ECHO_PORT, GATEWAY } = process.env;
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

function send(options, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(options, async (answer) => {
      let text = '';
      for await (const chunk of answer) text += chunk;
      resolve(`${answer.statusCode} ${text}`);
    });
    request.on('error', reject);
    Readable.from(pieces(body)).pipe(request);
  });
}

/** Of `at`, as options of node:http. */
function addressOf(at) {
  const [, host, port] = /^\[?(.*?)\]?:([0-9]+)$/.exec(at);
  return { host, port };
}

const FETCHES = `fetch(process.env.URL).then(async (answer) => console.log(answer.status, await answer.text()))`;

const ASK = {
  async fetch(path, _body, headers, at = `localhost:${PORT}`) {
    const answer = await fetch(`http://${at}${path}`, { headers });
    return `${answer.status} ${await answer.text()}`;
  },
  http(path, body, headers, at = `127.0.0.1:${PORT}`) {
    return send({ ...addressOf(at), path, headers, agent, method: body > 0 ? 'POST' : 'GET' }, body);
  },
  expect(path, _body, _headers, at = `127.0.0.1:${PORT}`) {
    const headers = { Host: at, Expect: '100-continue' };
    return send({ ...addressOf(at), path, headers, method: 'POST' }, 1);
  },
  async child(path, _body, _headers, at = `127.0.0.1:${PORT}`) {
    const env = { ...process.env, URL: `http://${at}${path}` };
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', FETCHES], { env });
    return stdout.trim();
  },
  thread(path, _body, _headers, at = `127.0.0.1:${PORT}`) {
    const code = `const { parentPort, workerData } = require('node:worker_threads');
      fetch(workerData).then(async (answer) => parentPort.postMessage(answer.status + ' ' + (await answer.text())))`;
    return new Promise((resolve, reject) => {
      const thread = new Worker(code, { eval: true, workerData: `http://${at}${path}` });
      thread.once('message', resolve);
      thread.once('error', reject);
    });
  },
};

/** What is to be asked for while `url` is rendered. */
function questions({ pathname, searchParams }) {
  const deep = searchParams.get('deep');
  const at = searchParams.has('at') ? `&at=${searchParams.get('at')}` : '';
  if (deep === 'endless') return [`${pathname}?id=deep&deep=endless`];
  if (Number(deep) > 0) return [`${pathname}?id=deep&deep=${Number(deep) - 1}${at}`];
  const ask = searchParams.get('ask');
  return ask ? Array(Number(searchParams.get('times') ?? 1)).fill(ask) : [];
}

/** Headers to ask with. */
function headersFor({ headers: { connection, host: _host, ...copied } }, { searchParams }) {
  if (searchParams.has('copy')) return copied;
  const host = searchParams.get('host');
  if (host === null) return {};
  return searchParams.has('list') ? ['Host', host] : { host };
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
    if (parameter('to')) return response.writeHead(302, { location: parameter('to') }).end();
    if (parameter('when')) await released(parameter('when'));
    const ask = ASK[parameter('by') ?? 'fetch'];
    const headers = headersFor(request, url);
    const at = parameter('at') ?? undefined;
    const answers = await Promise.all(questions(url).map((path) => ask(path, Number(parameter('body')), headers, at)));
    if (parameter('raw')) answers.push(JSON.stringify([request.rawHeaders, request.headersDistinct ?? {}]));
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

if (GATEWAY) {
  const [port, to] = GATEWAY.split(' ').map(Number);
  const server = net.createServer((client) => {
    const pod = net.connect(to, '127.0.0.1');
    for (const socket of [client, pod]) socket.on('error', () => [client, pod].map((one) => one.destroy()));
    client.pipe(pod).pipe(client);
  });
  server.listen(port, '0.0.0.0');
}

if (ECHO_PORT)
  http
    .createServer(async ({ url, rawHeaders }, response) => {
      if (url === '/held') await released('echo');
      if (url === '/full') response.writeHead(503, { 'X-Corelane-Error': 'queue-timeout' });
      response.end(JSON.stringify(rawHeaders));
    })
    .listen(Number(ECHO_PORT), '0.0.0.0');
