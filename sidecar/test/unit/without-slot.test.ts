/** Requests that go on without a render slot: which do, how many, and who has the slot then. */
import { once } from 'node:events';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { jest } from '@jest/globals';

interface Limiter {
  limit: number;
  isBlocked: boolean;
  isIdle: boolean;
  isOverdue: boolean;
  runsHandler: boolean;
  hasWaiting: boolean;
  withoutSlot: number;
  beat(): void;
  giveUp(id: string): void;
  guard(server: http.Server): void;
}
const require = createRequire(import.meta.url);
const { ConcurrencyLimiter } = require('../../runtime/concurrency-limiter.cjs') as {
  ConcurrencyLimiter: new (metrics: object, notes: object, own: object, options: object) => Limiter;
};
const { WithoutSlot } = require('../../runtime/without-slot.cjs') as {
  WithoutSlot: new (
    metrics: object,
    max: number,
    onChange: (count: number) => void,
  ) => { count: number; isDue(render: object): boolean; add(render: object): void; delete(render: object): void };
};
const { allocate, views } = require('../../runtime/shared-metrics.cjs');

const { now } = performance;
let laterMs = 0;
beforeEach(() => {
  laterMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + laterMs);
});
afterEach(() => jest.restoreAllMocks());

/** A render as the limiter has it. */
const render = (head: string | undefined, { parts = [] as number[], unread = 0 } = {}) => ({
  response: {
    headersSent: head !== undefined,
    _header: `HTTP/1.1 200 OK\r\n${head}\r\n\r\n`,
    writableLength: unread,
  },
  parts: new Set(parts),
});
const EVENTS = 'Content-Type: text/event-stream; charset=utf-8';
const TEXT = 'Content-Type: text/plain';

/** Whether one is due when it is seen, and when so much time has passed, of which the event loop was so long idle. */
function due(one: object, ms: number, idleMs: number, max = 1): boolean[] {
  const metrics = views(allocate());
  const without = new WithoutSlot(metrics, max, () => {});
  const first = without.isDue(one);
  laterMs += ms;
  metrics.idleMs[0] += idleMs;
  return [first, without.isDue(one)];
}

test.each([
  ['an event stream', render(EVENTS), [true, true]],
  ['an event stream, however it is written', render('content-type:TEXT/Event-Stream'), [true, true]],
  ['a response that is no event stream', render('X-Content-Type: text/event-stream\r\n'), [false, true]],
  ['another response that is open', render(TEXT), [false, true]],
  ['one that has not begun to answer', render(undefined), [false, false]],
  ['one that waits for its own program', render(TEXT, { parts: [1] }), [false, false]],
])('with an idle event loop: %s', (_what, one, expected) => {
  expect(due(one, 1_500, 1_400)).toEqual(expected);
});

test.each([
  ['one that has just begun', 900, 900, false],
  ['one that computes', 60_000, 20_000, false],
  ['one that waits for half of the time', 60_000, 31_000, true],
])('another response: %s', (_what, ms, idleMs, expected) => {
  expect(due(render(TEXT), ms, idleMs)).toEqual([false, expected]);
});

test('with a busy event loop: another response whose client has not taken what there is, for a second', () => {
  expect(due(render(TEXT, { unread: 1 }), 900, 0)).toEqual([false, false]);
  expect(due(render(TEXT, { unread: 1 }), 1_500, 0)).toEqual([false, true]);
  const reads = render(TEXT, { unread: 1 });
  const without = new WithoutSlot(views(allocate()), 1, () => {});
  const seen = [1, 0, 1].map((unread) => {
    reads.response.writableLength = unread;
    laterMs += 1_500;
    return without.isDue(reads);
  });
  expect(seen).toEqual([false, false, false]);
});

test('no more than there may be, and none in a process that has nearly all memory of its container', () => {
  expect(due(render(EVENTS), 0, 0, 0)).toEqual([false, false]);
  const counts: number[] = [];
  const metrics = views(allocate());
  const without = new WithoutSlot(metrics, 1, (count) => counts.push(count));
  const [one, other] = [render(EVENTS), render(EVENTS)];
  without.add(one);
  expect([without.isDue(other), metrics.withoutSlot[0]]).toEqual([false, 1]);
  without.delete(other);
  without.delete(one);
  expect([without.isDue(other), metrics.withoutSlot[0], counts]).toEqual([true, 0, [1, 0]]);
  jest.spyOn(process, 'constrainedMemory').mockReturnValue(1.05 * process.memoryUsage.rss());
  expect(without.isDue(other)).toBe(false);
});

/** A server behind a limiter that lets one request through at a time. */
class Worker {
  readonly metrics = views(allocate());
  readonly told: number[] = [];
  /** Whether requests come from the program itself. */
  asksItself = false;
  readonly limiter: Limiter;
  readonly #server = http.createServer((request, response) => this.#responses.set(request.url as string, response));
  readonly #responses = new Map<string, http.ServerResponse>();
  readonly #clients: http.ClientRequest[] = [];

  constructor(withoutSlotMax: number, childWaits?: object) {
    const notes = { begin: () => 0, end: () => {} };
    const own = {
      isOwn: () => this.asksItself,
      isRelative: () => false,
      senderOf: () => undefined,
      run: (_render: object, work: () => boolean) => work(),
    };
    const tellWithoutSlot = (count: number) => this.told.push(count);
    const times = { renderMs: 30_000, handlerMs: 300_000, abandonedMs: 30_000 };
    const options = { ...times, withoutSlotMax, tellWithoutSlot, childWaits };
    this.limiter = new ConcurrencyLimiter(this.metrics, notes, own, options);
    this.limiter.limit = 1;
    this.limiter.guard(this.#server);
  }

  async start(): Promise<void> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
  }

  /** Begins with a request; gives what ends its client. */
  send(path: string, id = path, method = 'GET'): () => void {
    const { port } = this.#server.address() as AddressInfo;
    const headers = { 'x-request-id': id };
    const request = http.request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      response.on('error', () => {}); // it was cut off
      response.resume();
    });
    request.on('error', () => {}); // it has gone
    request.end();
    this.#clients.push(request);
    return () => request.destroy();
  }

  /** The response to a request, when the program has got it. */
  async begun(path: string): Promise<http.ServerResponse> {
    await until(`${path} has begun`, () => this.#responses.has(path));
    return this.#responses.get(path) as http.ServerResponse;
  }

  hasBegun(path: string): boolean {
    return this.#responses.has(path);
  }

  stop(): void {
    for (const client of this.#clients) client.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries += 1) {
    if (tries === 300) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

let worker: Worker;
afterEach(() => worker?.stop());

async function startWorker(withoutSlotMax: number, childWaits?: object): Promise<void> {
  worker = new Worker(withoutSlotMax, childWaits);
  await worker.start();
}

/** Begins with an event stream. */
async function openEvents(path: string): Promise<http.ServerResponse> {
  worker.send(path);
  const response = await worker.begun(path);
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  return response;
}

test('the next request has the slot of a stream, and the one after it waits for that', async () => {
  await startWorker(2);
  const stream = await openEvents('/stream');
  worker.send('/next');
  await until('it waits', () => worker.metrics.overlaps[0] === 1);
  worker.limiter.beat();
  const next = await worker.begun('/next');
  worker.send('/later');
  await until('it waits', () => worker.metrics.overlaps[0] === 2);
  worker.limiter.beat();
  expect([worker.told, worker.metrics.inFlight[0], worker.limiter.isBlocked]).toEqual([[1], 1, false]);
  stream.end();
  await until('the stream has ended', () => worker.told.length === 2);
  expect([worker.told, worker.metrics.inFlight[0], worker.hasBegun('/later')]).toEqual([[1, 0], 1, false]);
  next.end();
  (await worker.begun('/later')).end();
  await until('all have ended', () => worker.metrics.inFlight[0] === 0);
  expect(worker.told).toEqual([1, 0]);
});

test('beyond the bound a stream keeps its slot, and has it given back by one that ends', async () => {
  await startWorker(1);
  const first = await openEvents('/first');
  worker.limiter.beat();
  await openEvents('/second');
  worker.send('/page');
  await until('it waits', () => worker.metrics.overlaps[0] === 1);
  worker.limiter.beat();
  expect([worker.limiter.withoutSlot, worker.metrics.inFlight[0]]).toEqual([1, 1]);
  first.end();
  await until('the first one has ended', () => worker.limiter.withoutSlot === 0);
  worker.limiter.beat();
  (await worker.begun('/page')).end();
});

test('a stream whose client has gone is over, though the program never ends it', async () => {
  await startWorker(1);
  const leave = worker.send('/stream');
  (await worker.begun('/stream')).writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  worker.limiter.beat();
  expect(worker.told).toEqual([1]);
  leave();
  await until('nobody counts it', () => worker.told.length === 2);
  expect([worker.told, worker.limiter.isBlocked, worker.metrics.abandoned[0]]).toEqual([[1, 0], false, 0]);
});

test('a stream whose client has gone before it was seen is none that HAProxy counts', async () => {
  await startWorker(1);
  const leave = worker.send('/stream');
  const stream = await worker.begun('/stream');
  stream.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  leave();
  await once(stream, 'close');
  worker.limiter.beat();
  expect([worker.told, worker.limiter.isBlocked]).toEqual([[], true]);
  stream.end();
  expect(worker.limiter.isBlocked).toBe(false);
});

test('what a program asks itself is a part of the render that has a slot, and not of a stream before it', async () => {
  await startWorker(1);
  await openEvents('/stream');
  worker.limiter.beat();
  worker.send('/page');
  await worker.begun('/page');
  worker.asksItself = true;
  worker.send('/part');
  await worker.begun('/part');
  expect([worker.metrics.own[0], worker.metrics.overlaps[0]]).toEqual([1, 0]);
});

test('a client that reads slowly is cut after 30 s where its slot is needed and cannot be given back', async () => {
  await startWorker(0);
  worker.limiter.limit = 2;
  worker.send('/download');
  const download = await worker.begun('/download');
  download.writeHead(200, { 'content-length': 1_000 }).flushHeaders();
  Object.defineProperty(download, 'writableLength', { get: () => 1 });
  worker.limiter.beat();
  laterMs = 60_000;
  worker.limiter.beat();
  // There is another slot.
  expect(download.destroyed).toBe(false);
  worker.limiter.limit = 1;
  worker.limiter.beat();
  expect(download.destroyed).toBe(true);
});

test('a worker that is to be replaced waits for a download, and not for a stream that has been open for a while', async () => {
  await startWorker(2);
  await openEvents('/stream');
  worker.limiter.beat();
  expect(worker.limiter.isIdle).toBe(false);
  laterMs = 10_000;
  expect(worker.limiter.isIdle).toBe(true);
  worker.send('/download');
  (await worker.begun('/download')).writeHead(200, { 'content-length': 1_000 }).write('x');
  worker.limiter.beat();
  laterMs += 2_000;
  worker.metrics.idleMs[0] += 2_000;
  worker.limiter.beat();
  expect([worker.limiter.withoutSlot, worker.metrics.inFlight[0], worker.limiter.isIdle]).toEqual([2, 0, false]);
  laterMs += 40_000;
  expect(worker.limiter.isIdle).toBe(true);
});

test('a worker that is to be replaced waits for a handler that has begun to answer, for as long as it may take', async () => {
  await startWorker(2);
  worker.send('/export', 'export', 'POST');
  const answer = await worker.begun('/export');
  answer.writeHead(200, { 'content-type': 'text/csv' }).write('x');
  for (const ms of [2_000, 60_000, 200_000]) {
    worker.limiter.beat();
    laterMs += ms;
    worker.metrics.idleMs[0] += ms;
    expect([worker.limiter.isIdle, worker.limiter.runsHandler]).toEqual([false, true]);
  }
  expect([worker.limiter.isOverdue, answer.destroyed, worker.limiter.withoutSlot]).toEqual([false, false, 1]);
  laterMs += 40_000;
  expect([worker.limiter.isIdle, worker.limiter.runsHandler]).toEqual([true, false]);
});

test('a handler whose client has gone is in progress until the program ends it; a page is none', async () => {
  await startWorker(2);
  const leave = worker.send('/pay', 'pay', 'POST');
  const answer = await worker.begun('/pay');
  leave();
  await once(answer, 'close');
  laterMs = 60_000;
  expect(worker.limiter.runsHandler).toBe(true);
  answer.end();
  expect(worker.limiter.runsHandler).toBe(false);
  worker.send('/page');
  await worker.begun('/page');
  expect(worker.limiter.runsHandler).toBe(false);
});

test('a handler whose client reads slowly is not cut after 30 s', async () => {
  await startWorker(0);
  worker.send('/export', 'export', 'POST');
  const answer = await worker.begun('/export');
  answer.writeHead(200, { 'content-length': 1_000 }).flushHeaders();
  Object.defineProperty(answer, 'writableLength', { get: () => 1 });
  const cutAfter = (ms: number) => {
    worker.limiter.beat();
    laterMs += ms;
    worker.limiter.beat();
    return answer.destroyed;
  };
  expect([cutAfter(60_000), cutAfter(250_000)]).toEqual([false, true]);
});

test('a render that waits beside a child process is looked at while all places are taken', async () => {
  const seen: object[] = [];
  await startWorker(0, { look: (render: object) => seen.push(render) });
  worker.limiter.limit = 2;
  worker.send('/page');
  await worker.begun('/page');
  worker.limiter.beat();
  expect(seen).toHaveLength(0);
  worker.limiter.limit = 1;
  worker.limiter.beat();
  expect(seen).toHaveLength(1);
});

describe('a render whose client has gone', () => {
  /** Lets so much time pass, of which the event loop is idle for this part. */
  function pass(ms: number, idleShare: number): void {
    laterMs += ms;
    worker.metrics.idleMs[0] += idleShare * ms;
  }

  test('gives its slot back if it waits, and to its program it goes on', async () => {
    await startWorker(9);
    worker.send('/left', 'left');
    const left = await worker.begun('/left');
    worker.send('/next');
    await until('it waits', () => worker.metrics.overlaps[0] === 1);
    worker.limiter.beat();
    worker.limiter.giveUp('left');
    expect([worker.limiter.hasWaiting, worker.told]).toEqual([false, []]);
    pass(1_500, 0.9);
    worker.limiter.giveUp('other');
    expect([worker.limiter.hasWaiting, worker.told]).toEqual([true, []]);
    worker.limiter.giveUp('left');
    const next = await worker.begun('/next');
    expect([worker.told, worker.limiter.isBlocked, worker.limiter.isIdle]).toEqual([[1], false, false]);
    left.end();
    await until('it has ended', () => worker.told.length === 2);
    expect(worker.metrics.inFlight[0]).toBe(1);
    next.end();
  });

  test('keeps it if it computes', async () => {
    await startWorker(9);
    worker.send('/computes', 'computes');
    const computes = await worker.begun('/computes');
    worker.limiter.beat();
    pass(60_000, 0.3);
    worker.limiter.giveUp('computes');
    expect([worker.limiter.hasWaiting, worker.told]).toEqual([false, []]);
    computes.end();
  });

  test('ends if it has begun to answer and keeps its slot', async () => {
    await startWorker(0);
    worker.send('/answers', 'answers');
    const answers = await worker.begun('/answers');
    worker.limiter.beat();
    pass(1_500, 0.9);
    answers.flushHeaders();
    worker.limiter.giveUp('answers');
    expect([worker.limiter.hasWaiting, answers.destroyed]).toEqual([false, false]);
    worker.limiter.beat();
    pass(1_500, 0.9);
    expect(worker.limiter.hasWaiting).toBe(true);
    worker.limiter.giveUp('answers');
    expect([answers.destroyed, worker.told]).toEqual([true, []]);
  });

  test('as many as there may be, together with streams', async () => {
    await startWorker(32);
    for (let n = 0; n < 33; n += 1) {
      worker.send(`/left-${n}`, `left-${n}`);
      await worker.begun(`/left-${n}`);
      worker.limiter.beat();
      pass(2_000, 0.9);
      worker.limiter.giveUp(`left-${n}`);
    }
    expect([worker.limiter.withoutSlot, worker.limiter.hasWaiting, worker.metrics.inFlight[0]]).toEqual([32, false, 1]);
    (await worker.begun('/left-32')).writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    worker.limiter.beat();
    expect([worker.limiter.withoutSlot, worker.metrics.inFlight[0]]).toEqual([32, 1]);
    (await worker.begun('/left-0')).end();
    await until('one has ended', () => worker.limiter.withoutSlot === 31);
    worker.limiter.beat();
    expect([worker.limiter.withoutSlot, worker.metrics.inFlight[0]]).toEqual([32, 0]);
  });

  test('is counted no more when HAProxy gives it up, and its worker is replaced as for any other one', async () => {
    await startWorker(9);
    const cut = worker.send('/left', 'left');
    await worker.begun('/left');
    worker.limiter.beat();
    pass(5_000, 0.9);
    worker.limiter.giveUp('left');
    expect(worker.told).toEqual([1]);
    pass(26_000, 0.9);
    cut();
    await until('its connection has ended', () => worker.told.length === 2);
    expect([worker.told, worker.limiter.isBlocked, worker.limiter.isOverdue]).toEqual([[1, 0], false, false]);
    pass(3_000, 0.9);
    expect([worker.limiter.isOverdue, worker.limiter.isIdle]).toEqual([true, true]);
  });
});
