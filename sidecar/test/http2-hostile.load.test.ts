/**
 * Floods of streams and frames, and clients that hold all places: whoever holds them makes room, and others are served.
 * Here because all of them are floods with a margin.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { budget } from '../../operator/src/render/model/budget.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { type Came, data, END_HEADERS, END_STREAM, headers, ping, request, settings, TYPE } from './apps/frames.mjs';
import { hostileClients, STREAMS, start } from './http2-hostile.ts';
import { program, received } from './neighbours.ts';

const KIB = 1024;

let pod: Pod;
let clients: Pod;
const { client, closeAll, expectUnharmed, remember } = hostileClients(() => pod);
beforeAll(async () => {
  [pod, clients] = await Promise.all([start(), Pod.start({ workersPerPod: 1 })]);
  await remember();
});
afterAll(() => Promise.all([pod, clients].map((one) => one?.stop())));

let stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  closeAll();
  for (const stop of stops) await stop();
  stops = [];
});

/** Connections that nginx has. */
async function connected(): Promise<number> {
  const pattern = `^ *[0-9]+: [^ ]+:${PORTS.http.toString(16).toUpperCase()} [^ ]+ 01 `;
  return Number(await docker('exec', pod.nginx, 'sh', '-c', `grep -cE '${pattern}' /proc/net/tcp || true`));
}

/** Runs a program beside the pod's workers, with what apps/frames.mjs has. */
async function attack(script: string, from = clients): Promise<void> {
  const at = `host: '${await pod.address()}', port: ${PORTS.http}`;
  stops.push(program(from, `import('/app/frames.mjs').then((h) => { const at = { ${at} }; ${script} });`));
}

/** `count` streams over as few connections as nginx lets them have. */
async function streams(count: number, of: (id: number) => Buffer, options = {}): Promise<Came[]> {
  const opened: Came[] = [];
  for (let left = count; left > 0; left -= STREAMS) {
    const came = client(options);
    opened.push(came);
    await until('it is open', () => came.of(TYPE.settings).length > 0);
    came.send(...Array.from({ length: Math.min(left, STREAMS) }, (_unused, n) => of(1 + 2 * n)));
  }
  return opened;
}

const refused = (opened: Came[]) =>
  opened.flatMap(({ frames }) => frames).filter(({ payload }) => `${payload}`.includes('body-too-slow'));

test.each<[string, [string, string][]]>([
  ['have no length', []],
  ['are in memory', [['content-length', '1000']]],
  ['are said to be none', [['content-length', '0']]],
])('bodies that do not come, and %s, make room for others', async (_what, fields) => {
  const { bodies } = budget(pod.spec);
  const before = pod.events({ event: 'begin', id: 'stalled' }).length;
  const count = bodies + STREAMS;
  const opened = await streams(count, (id) => headers(id, request('/?id=stalled', 'POST', fields), END_HEADERS));
  await until('the slowest have gone', () => refused(opened).length >= STREAMS);
  const answer = await pod.get('/?id=upload', { method: 'POST', body: 'x'.repeat(10_000) });
  expect(answer.status).toBe(200);
  await expectUnharmed();
  // What is sent after that makes no request of them.
  for (const came of opened)
    for (let n = 0; n < STREAMS; n += 1)
      came.send(Buffer.concat([Buffer.from([0, 0, 0, TYPE.data, 1]), id(1 + 2 * n)]));
  const answers = () => opened.flatMap((came) => came.of(TYPE.headers));
  await until('all have been answered', () => answers().length === count);
  await expectUnharmed();
  const statuses = opened.flatMap((came) => came.of(TYPE.headers).map((one) => came.status(one.id)));
  const rendered = statuses.filter((status) => status === 200).length;
  expect(pod.events({ event: 'begin', id: 'stalled' }).length - before).toBe(rendered);
});

const NO_WINDOW: [number, number][] = [[4, 0]];

test('what comes for a stream that has made room makes no request of it, even before its client has the answer', async () => {
  const count = budget(pod.spec).bodies + STREAMS;
  const of = (n: number) => headers(n, request('/?id=evicted', 'POST'), END_HEADERS);
  const opened = await streams(count, of, { first: [settings(NO_WINDOW)] });
  const refusedOf = (came: Came) => came.of(TYPE.headers).filter((one) => came.status(one.id) === 503);
  await until('the slowest have made room', () => opened.flatMap(refusedOf).length >= STREAMS);
  for (const came of opened) came.send(...refusedOf(came).map((one) => data(one.id, '', END_STREAM)), ping());
  await until('nginx has read it', () => opened.every((came) => came.of(TYPE.ping).length === 1));
  await expectUnharmed();
  expect(pod.events({ id: 'evicted' })).toEqual([]);
});

function id(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

test('pages of which no byte may be sent make room, stream by stream', async () => {
  const { requests } = budget(pod.spec);
  const opened: Came[] = [];
  // In parts: who waits for a worker keeps his place.
  const part = 32;
  for (let sent = 0; sent < requests + STREAMS; sent += part) {
    if (sent % STREAMS === 0) opened.push(client({ first: [settings(NO_WINDOW)] }));
    const ids = Array.from({ length: part }, (_unused, n) => 1 + 2 * ((sent % STREAMS) + n));
    opened.at(-1)?.send(...ids.map((n) => headers(n, request('/?id=unread&size=1000'))));
    await until('they have been rendered', () => pod.events({ event: 'end', id: 'unread' }).length === sent + part);
  }
  await expectUnharmed();
  expect(opened.some(({ ended }) => ended)).toBe(false);
  await until('others have gone', () => opened.flatMap((came) => came.of(TYPE.reset)).length >= STREAMS);
});

test('connections that take nothing from the network make room with all of their streams', async () => {
  const { requests } = budget(pod.spec);
  const [size, count] = [300 * KIB, Math.ceil((1.3 * requests) / 16)];
  await attack(`
    for (let n = 0; n < ${count}; n += 1) {
      const c = h.open({ ...at, first: [h.settings([[4, 2 ** 30]]), h.windowUpdate(0, 2 ** 30)] });
      c.socket.pause();
      for (let s = 0; s < 16; s += 1) c.send(h.headers(1 + 2 * s, h.request('/?id=untaken&size=${size}')));
    }`);
  await until('all have been rendered', () => pod.events({ event: 'end', id: 'untaken' }).length >= requests);
  // More at once than streams could go of which nothing waits for the network. Until half a second has passed nobody is
  // slow, and what waits for a worker goes when it has been rendered.
  const many = () => Promise.all(Array.from({ length: requests - 16 }, () => pod.get('/?ms=20&id=many')));
  await until('many at once are served', async () => (await many()).every(({ status }) => status === 200));
  for (let n = 0; n < 3; n += 1) await expectUnharmed();
});

test('100,000 requests that are given up: others are served meanwhile, and after it', async () => {
  await attack(`
    const N = 25_000;
    const run = async () => {
      let left = N;
      while (left > 0) {
        const c = h.open(at);
        for (let id = 1; left > 0 && !c.ended; ) {
          const parts = [];
          for (let n = 0; n < 200; n += 1, id += 2, left -= 1) parts.push(h.headers(id, h.request('/?id=given-up&n=' + id)), h.reset(id));
          const isFull = !c.send(...parts);
          await new Promise((resolve) => { if (isFull && !c.ended) c.socket.once('drain', resolve).once('close', resolve); else setImmediate(resolve); });
        }
        c.socket.destroy();
      }
    };
    Promise.all([1, 2, 3, 4].map(run)).then(() => h.open(at).send(h.headers(1, h.request('/?id=storm-is-over'))));`);
  const before = await received(pod);
  await until('it has begun', async () => (await received(pod)) > before + 100_000);
  const statuses: number[] = [];
  const isOver = () => pod.events({ event: 'end', id: 'storm-is-over' }).length > 0;
  const ask = async () => statuses.push((await pod.get(`/?id=beside-${statuses.length}`)).status) && isOver();
  await until('the storm is over', ask, 60_000);
  const failed = statuses.filter((status) => status !== 200).length;
  figure(
    'requests of others that fail beside 100,000 requests that are given up',
    failed,
    `of ${statuses.length}`,
    '0',
  );
  expect(new Set(statuses)).toEqual(new Set([200]));
  for (let n = 0; n < 20; n += 1) expect((await pod.get(`/?id=after-${n}`)).status).toBe(200);
  await expectUnharmed();
});

test.each([
  ['pings', 'h.ping()'],
  ['settings', 'h.settings()'],
  ['settings that change windows', 'h.settings([[4, 1], [4, 65535]])'],
  ['window updates', 'h.windowUpdate(0, 1)'],
  ['frames of an unknown type', 'h.frame(77, 0, 0)'],
  ['empty data', "h.data(1, '')"],
  ['heads that are given up', "Buffer.concat([h.headers(id, h.request('/?id=flood')), h.reset(id)])"],
  ['pings of HTTP', "h.headers(id, h.request('/ping'))"],
  ['hosts that are none', "h.headers(id, [...h.request('/').slice(0, 3), [':authority', 'a b']])"],
])('clients that send %s faster than nginx reads keep nobody waiting', async (what, one) => {
  await attack(`
    const open = () => {
      let id = 1;
      const c = h.open(at);
      const write = () => {
        if (!c.socket.writable || id > 2 ** 30) return;
        const parts = [];
        for (let n = 0; n < 500; n += 1, id += 2) parts.push(${one});
        if (c.socket.write(Buffer.concat(parts))) setImmediate(write);
      };
      c.socket.on('connect', write).on('drain', write).on('close', open);
    };
    for (let n = 0; n < 20; n += 1) open();`);
  const before = await received(pod);
  await until('they ask', async () => (await received(pod)) > before + 1_000_000);
  let served = 0;
  const began = performance.now();
  for (let n = 0; n < 20; n += 1)
    void pod.get(`/?id=beside-${n}`).then(
      ({ status }) => (served += status === 200 ? 1 : 0),
      () => {},
    );
  await until('others are served', () => served === 20, 15_000);
  figure(`time of 20 other requests during a flood of ${what}`, (performance.now() - began) / 1000, 's', '< 15 s');
  const now = await received(pod);
  await until('they still ask', async () => (await received(pod)) > now + 1_000_000);
});

test('more connections than memory is for, each as large as it can be', async () => {
  const { http2Connections } = budget(pod.spec);
  await attack(`
    const cookies = [h.field('cookie', '', true), ...Array.from({ length: 2500 }, () => h.indexed(62))];
    const next = (n) => {
      if (n >= ${4 * http2Connections}) return;
      const c = h.open(at);
      c.socket.once('data', () => next(n + 20));
      let id = 1;
      for (; id < 256; id += 2) c.send(h.headers(id, h.request('/?id=large', 'POST'), h.END_HEADERS));
      for (let each = 1; each < id; each += 2) c.send(h.reset(each));
      if (n % 3 === 0) c.send(h.headers(id, [...h.request('/?id=half'), ...cookies], 0));
      if (n % 3 === 1) c.send(Buffer.from([0, 0, 8]));
      if (n % 3 === 2) c.send(h.headers(id, [...h.request('/?id=half'), ...Array.from({ length: 15 }, (_, k) => ['a' + k, 'x'.repeat(1000)])], 0));
    };
    for (let n = 0; n < 20; n += 1) next(n);`);
  await until('nginx has as many as it takes', async () => (await connected()) >= http2Connections);
  for (let n = 0; n < 10; n += 1) await expectUnharmed();
  const kept = await connected();
  figure('HTTP/2 connections that nginx keeps', kept, `of ${4 * http2Connections}`, `< ${http2Connections + 50}`);
  expect(kept).toBeLessThan(http2Connections + 50);
});

/** Beside what the kernel has room for nginx itself would keep 10,000 answers for each: more than its memory limit. */
test('what answers pings is not kept for those who do not read it', async () => {
  const before = await connected();
  await attack(`
    let open = 100;
    const pings = Buffer.concat(Array.from({ length: 250 }, () => h.ping()));
    for (let n = 0; n < 100; n += 1) {
      const c = h.open(at);
      c.socket.pause();
      // More than both kernels have room for.
      let left = 4000;
      const write = () => { if (left-- > 0 && c.socket.writable) c.socket.write(pings, () => setTimeout(write, 20)); else done(); };
      const done = () => { if ((open -= 1) === 0) h.open(at).send(h.headers(1, h.request('/?id=all-written'))); };
      write();
    }`);
  await until('all have been closed, or have written all', () => pod.events({ id: 'all-written' }).length > 0, 60_000);
  await until('nearly all have been closed', async () => (await connected()) <= before + 20);
  await expectUnharmed();
});

test('a head without end, in 100,000 frames, is refused', async () => {
  const h = await import('./apps/frames.mjs');
  const came = client();
  came.send(headers(1, request('/?id=endless'), 0));
  for (let n = 0; n < 1000 && !came.ended; n += 1) {
    const part = h.frame(TYPE.continuation, 0, 1, h.block([['a', 'x'.repeat(50)]]));
    if (!came.send(...Array(100).fill(part)))
      await new Promise<void>((resolve) => came.socket.once('drain', resolve).once('close', resolve));
  }
  await until('it is closed', () => came.ended);
  expect(pod.events({ id: 'endless' })).toEqual([]);
  await expectUnharmed();
});
