/**
 * The client of the benches. Reads a plan (see lib/load.ts) from the first line of standard input, sends its requests,
 * prints a line `phase N` when each phase begins and at the end one JSON line with what has become of every request.
 * Each further line of standard input has the endpoints from now on, for groups with `perSecond`, which end with it.
 *
 * Plain sockets and bodies that are made once: on a machine that runs the servers as well the client must not be what
 * is measured.
 */
import net from 'node:net';
import { createInterface } from 'node:readline';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const plan = JSON.parse((await lines.next()).value);
const records = [];
const body = Buffer.alloc(plan.bodyBytes, 'x');
/** Parts of a slow body. */
const TRICKLE_PARTS = 50;
/** What is asked for first is waited for so long. */
const HELLO_MS = 10_000;

function nowMs() {
  return performance.timeOrigin + performance.now();
}

function targetOf({ target = 0, to = plan.targets[target] }) {
  return to;
}

function headOf(id, request, group) {
  const { path } = request;
  const { host, port } = targetOf(request);
  const method = body.length > 0 ? `POST` : `GET`;
  const length = body.length > 0 ? `Content-Length: ${body.length}\r\n` : '';
  const connection = group.keepAlive ? 'keep-alive' : 'close';
  const more = Object.entries(group.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path.replace('{id}', id)} HTTP/1.1\r\nHost: ${plan.host ?? `${host}:${port}`}\r\nConnection: ${connection}\r\n${more.join('')}${length}\r\n`;
}

/** Ends a body that comes in chunks; no body of the benches has these bytes. */
const LAST_CHUNK = '\r\n0\r\n\r\n';

/** Reads one response. */
class Response {
  #head = '';
  #isChunked = false;
  /** The last bytes of the body. */
  #end = '\r\n';
  #left = Number.POSITIVE_INFINITY;
  status = 0;
  /** Bytes behind the head. */
  bytes = 0;

  /** Whether the response is whole. */
  take(chunk) {
    if (this.status > 0) this.#takeBody(chunk.length, chunk.subarray(-LAST_CHUNK.length).toString('latin1'));
    else this.#takeHead(chunk);
    return this.#left <= 0;
  }

  /** Values of some headers. */
  headers(names) {
    const value = (name) => new RegExp(`\\r\\n${name}: *(.*?)\\r\\n`, 'i').exec(this.#head)?.[1];
    return Object.fromEntries(names.map((name) => [name, value(name)]));
  }

  #takeHead(chunk) {
    this.#head += chunk.toString('latin1');
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) return;
    const body = this.#head.slice(end + 4);
    this.#head = this.#head.slice(0, end + 2);
    this.status = Number(this.#head.slice(9, 12));
    this.#isChunked = /\r\ntransfer-encoding: *chunked\r\n/i.test(this.#head);
    const length = /\r\ncontent-length: *([0-9]+)/i.exec(this.#head);
    if (length) this.#left = Number(length[1]);
    this.#takeBody(body.length, body);
  }

  #takeBody(length, end) {
    this.bytes += length;
    this.#left -= length;
    if (!this.#isChunked) return;
    this.#end = (this.#end + end).slice(-LAST_CHUNK.length);
    if (this.#end === LAST_CHUNK) this.#left = 0;
  }

  /** Whether the server closes the connection behind it. */
  get isLast() {
    return /\r\nconnection: *close\r\n/i.test(this.#head);
  }

  /** A response without a length ends with its connection. */
  get isWholeAtEnd() {
    return this.status > 0 && this.#left === Number.POSITIVE_INFINITY && !this.#isChunked;
  }
}

function trickle(socket, overMs) {
  const part = Math.ceil(body.length / TRICKLE_PARTS);
  let sent = 0;
  const timer = setInterval(() => {
    socket.write(body.subarray(sent, sent + part));
    sent += part;
    if (sent >= body.length) clearInterval(timer);
  }, overMs / TRICKLE_PARTS);
  return timer;
}

/** Notes when the first byte of a body came, and when `wanted` of them were there. */
function mark(bytes, wanted, marks, ms) {
  if (bytes > 0) marks.firstMs ??= ms;
  if (bytes >= wanted) marks.markMs ??= ms;
}

/** One request over `kept` or a new connection; gives what became of it. It was due at `began`. */
function exchange(id, request, group, { kept, began = nowMs() } = {}) {
  return new Promise((resolve) => {
    const response = new Response();
    const socket = kept ?? net.connect(targetOf(request));
    socket.setNoDelay(true);
    const timers = [];
    const marks = {};
    const finish = (error, isReusable = false) => {
      for (const timer of timers) clearTimeout(timer);
      for (const event of ['data', 'end', 'error', 'close']) socket.removeAllListeners(event);
      socket.on('error', () => {});
      if (!isReusable) socket.destroy();
      const { status } = response;
      const told = {
        ...(group.keeps && { headers: response.headers(group.keeps) }),
        ...(request.to && { to: request.to.host }),
      };
      const ms = nowMs() - began;
      const record = { group: group.name, id, at: began, ms, status, ...(error && { error }), ...told, ...marks };
      resolve({ record, socket: isReusable ? socket : undefined });
    };
    const ended = (error) => finish(response.isWholeAtEnd ? undefined : error);
    socket.on('data', (chunk) => {
      const isWhole = response.take(chunk);
      if (group.markBytes) mark(response.bytes, group.markBytes, marks, nowMs() - began);
      if (isWhole) finish(undefined, group.keepAlive && !response.isLast);
    });
    socket.on('end', () => ended('closed'));
    socket.on('error', ({ code }) => ended(code));
    socket.on('close', () => ended('closed'));
    timers.push(setTimeout(finish, plan.timeoutMs, 'timeout'));
    if (request.abortAfterMs) timers.push(setTimeout(finish, request.abortAfterMs, 'aborted'));
    socket.cork();
    socket.write(headOf(id, request, group), 'latin1');
    if (request.bodyOverMs) timers.push(trickle(socket, request.bodyOverMs));
    else if (body.length > 0) socket.write(body);
    socket.uncork();
  });
}

/** Targets, each of which is given to one at a time; who comes first is served first. */
class FreeTargets {
  #free = [...plan.targets.keys()];
  #waiting = [];

  async take() {
    return this.#free.shift() ?? (await new Promise((resolve) => this.#waiting.push(resolve)));
  }

  giveBack(target) {
    const next = this.#waiting.shift();
    if (next) next(target);
    else this.#free.push(target);
  }
}

/** Closed loop: `concurrency` clients, each of which waits for its answer before it asks again. */
async function runClosed(group) {
  const endMs = nowMs() + group.seconds * 1_000;
  let next = 0;
  const targets = group.deal ? new FreeTargets() : undefined;
  const client = async () => {
    let kept;
    while (next < group.count && nowMs() < endMs) {
      const number = next++;
      const request = { ...group.requests[number % group.requests.length] };
      const began = nowMs();
      if (targets) request.target = await targets.take();
      const result = await exchange(`${group.name}-${number}`, request, group, { kept, began });
      targets?.giveBack(request.target);
      kept = result.socket;
      records.push(result.record);
    }
    kept?.destroy();
  };
  await Promise.all(Array.from({ length: group.concurrency }, client));
}

/** Targets that are ready, by number; looked at every so often. */
class ReadyTargets {
  #ready = [...plan.targets.keys()];
  #timer;

  constructor({ port, queueLengthMax, everyMs }) {
    const look = async () => {
      const checks = plan.targets.map(async ({ host }) => {
        const page = await fetch(`http://${host}:${port}/metrics?metrics=haproxy_backend_current_queue`);
        const [, length] = /^haproxy_backend_current_queue\{proxy="line"\} ([0-9]+)$/m.exec(await page.text()) ?? [];
        return Number(length) < queueLengthMax;
      });
      const isReady = await Promise.all(checks);
      this.#ready = [...plan.targets.keys()].filter((target) => isReady[target]);
    };
    this.#timer = setInterval(look, everyMs);
  }

  /** Undefined when a Service would have no endpoints. */
  pick(choice) {
    return this.#ready[Math.floor(choice * this.#ready.length)];
  }

  stop() {
    clearInterval(this.#timer);
  }
}

/** Connections of a group that wait for their next request. */
class KeptSockets {
  #byTarget = plan.targets.map(() => []);

  /** The one that was used last; undefined when there is none that the server has left open. */
  take({ target = 0 }) {
    const idle = this.#byTarget[target];
    while (idle.at(-1)?.destroyed) idle.pop();
    return idle.pop();
  }

  giveBack({ target = 0 }, socket) {
    if (socket) this.#byTarget[target].push(socket);
  }

  close() {
    for (const socket of this.#byTarget.flat()) socket.destroy();
  }
}

/** Open loop: each request at its time, whatever has become of the others. */
async function runOpen(group) {
  const beganMs = nowMs();
  const running = [];
  const targets = group.readiness && new ReadyTargets(group.readiness);
  const sockets = new KeptSockets();
  const send = async (id, request) => {
    const { record, socket } = await exchange(id, request, group, { kept: sockets.take(request) });
    sockets.giveBack(request, socket);
    records.push(record);
  };
  for (const [number, request] of group.requests.entries()) {
    const waitMs = beganMs + request.atMs - nowMs();
    if (waitMs > 1) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const id = `${group.name}-${number}`;
    if (targets) request.target = targets.pick(request.choice);
    if (targets && request.target === undefined) {
      records.push({ group: group.name, id, at: nowMs(), ms: 0, status: 0, error: 'no endpoints' });
      continue;
    }
    running.push(send(id, request));
  }
  await Promise.all(running);
  targets?.stop();
  sockets.close();
}

/** Where a Service leads to: the targets, until other endpoints are told. */
class Endpoints {
  #now = plan.targets;
  #next = 0;
  isOver = false;

  constructor() {
    void this.#listen();
  }

  async #listen() {
    for await (const line of lines) this.#now = JSON.parse(line);
    this.isOver = true;
  }

  /** In turn; undefined when there are none. */
  take() {
    this.#next += 1;
    return this.#now[this.#next % this.#now.length];
  }
}

/** Open loop, evenly, until standard input ends. */
async function runSteady(group) {
  const beganMs = nowMs();
  const running = new Set();
  const endpoints = new Endpoints();
  for (let number = 0; !endpoints.isOver; number += 1) {
    const waitMs = beganMs + (number * 1_000) / group.perSecond - nowMs();
    if (waitMs > 1) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const id = `${group.name}-${number}`;
    const to = endpoints.take();
    if (!to) {
      records.push({ group: group.name, id, at: nowMs(), ms: 0, status: 0, error: 'no endpoints' });
      continue;
    }
    const request = { ...group.requests[number % group.requests.length], to };
    const sent = exchange(id, request, group).then(({ record }) => {
      records.push(record);
      running.delete(sent);
    });
    running.add(sent);
  }
  await Promise.all(running);
}

function run(group) {
  if (group.perSecond) return runSteady(group);
  return group.concurrency ? runClosed(group) : runOpen(group);
}

/** A system that is set up wrongly must not look like a bad one. */
async function untilServes({ path, status }) {
  const endMs = nowMs() + HELLO_MS;
  let last = 0;
  while (nowMs() < endMs) {
    const { record } = await exchange('hello', { path }, { name: 'hello' });
    last = record.status;
    if (last === status) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${path} is not answered ${status} in ${HELLO_MS} ms, but ${last}`);
}

if (plan.hello) await untilServes(plan.hello);

for (const [number, groups] of plan.phases.entries()) {
  console.log(`phase ${number}`);
  await Promise.all(groups.map(run));
}
console.log(JSON.stringify(records));
