/**
 * A rollout: pages of the old and of the new revision come to clients, and their files are asked of pods of either.
 * One that has not got a file asks one of another revision, once; then comes a worker.
 */

import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { NEW, newFiles, OLD, oldFiles, SPEC } from './assets-revisions.ts';
import { rawConnection } from './raw.ts';

let fleet: Fleet;
let older: Pod;
let newer: Pod;
beforeAll(async () => {
  fleet = await Fleet.start(0, SPEC);
  older = await fleet.add(SPEC, { ...PATIENT_PEERS, options: oldFiles.options, revision: OLD });
  newer = await fleet.add(SPEC, { ...PATIENT_PEERS, options: newFiles.options, revision: NEW });
  await fleet.add(SPEC, { ...PATIENT_PEERS, options: newFiles.options, revision: NEW });
  await fleet.untilAllKnown();
});
afterAll(async () => {
  await fleet?.stop();
  oldFiles.remove();
  newFiles.remove();
});

const begun = () => fleet.pods.reduce((sum, pod) => sum + pod.events({ event: 'begin' }).length, 0);

test('each has the files of the other, and no worker is asked', async () => {
  const before = begun();
  for (const [pod, name] of [
    [newer, 'old'],
    [older, 'new'],
  ] as const) {
    // A pod that has just come to know another one may have to wait for the key.
    const answer = await until('it is there', async () => {
      const got = await pod.get(`/_next/static/${name}.js`);
      return got.status === 200 && !got.body.startsWith('{') ? got : undefined;
    });
    expect([answer.body, answer.headers['content-type'], answer.headers['cache-control']]).toEqual([
      ...[name, 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
    ]);
    expect(Object.keys(answer.headers).filter((header) => /^x-(corelane|accel)/.test(header))).toEqual([]);
  }
  expect((await newer.get('/only/old.js')).body).toBe('old');
  const spent = begun() - before;
  expect(spent).toBeLessThanOrEqual(2); // of the first try, before the pods knew each other
});

test('conditions, parts and heads are as if the file were here', async () => {
  const { headers } = await newer.get('/_next/static/large.js');
  const etag = headers.etag as string;
  expect((await newer.get('/_next/static/large.js', { headers: { 'if-none-match': etag } })).status).toBe(304);
  const part = await newer.get('/_next/static/large.js', { headers: { range: 'bytes=4-6' } });
  expect([part.status, part.body]).toEqual([206, 'old']);
  const behind = await newer.get('/_next/static/large.js', { headers: { range: 'bytes=2000000-' } });
  expect([behind.status, behind.headers['content-range']]).toEqual([416, 'bytes */2000000']);
  const head = await newer.get('/_next/static/large.js', { method: 'HEAD' });
  expect([head.status, head.headers['content-length'], head.body]).toEqual([200, '2000000', '']);
});

test('its own files come first', async () => {
  expect((await newer.get('/_next/static/both.js')).body).toBe('of the new one');
  expect((await older.get('/_next/static/both.js')).body).toBe('of the old one');
});

test('what nobody has goes to one worker of this pod, and to no worker of the other revision', async () => {
  const others = () => older.events({ event: 'begin' }).length;
  const before = others();
  const missing = await newer.get('/_next/static/nobody.js?status=404');
  expect([missing.status, missing.headers['cache-control']]).toEqual([404, 'no-store']);
  expect(newer.events({ event: 'begin', id: '/_next/static/nobody.js' })).toHaveLength(1);
  const none = await newer.get('/only/nobody.js');
  expect([none.status, none.headers['x-corelane-error']]).toEqual([404, 'asset-not-found']);
  expect(others()).toBe(before);
});

test.each([
  ['a folder that is not immutable', 'GET', '/public/old.js'],
  ['another method', 'POST', '/_next/static/old.js'],
])('is not asked for elsewhere: %s', async (_what, method, path) => {
  const { body } = await newer.get(`${path}?id=here-${method}`, { method });
  expect(JSON.parse(body)).toMatchObject({ id: `here-${method}`, method });
});

test('a request for a file whose body is broken reaches no worker', async () => {
  const before = begun();
  const socket = await rawConnection(newer.port(PORTS.http));
  socket.write('GET /_next/static/broken.js HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n');
  let received = '';
  for await (const chunk of socket) received += chunk.toString('latin1');
  expect(received).toMatch(/^HTTP\/1\.1 400 .*"bad-request"/s);
  expect(begun()).toBe(before);
});

test('a URL cannot lead a peer out of its folders', async () => {
  const before = begun();
  const socket = await rawConnection(newer.port(PORTS.http));
  socket.write(
    'GET /_next/static/x/../../_next/static/..%2f..%2fpage HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  );
  let received = '';
  for await (const chunk of socket) received += chunk.toString('latin1');
  expect(received).toMatch(/^HTTP\/1\.1 200 /);
  expect(begun()).toBe(before + 1);
});

test('a frozen pod of the other revision costs a moment, and then nothing', async () => {
  await fleet.engine.run('pause', older.haproxy);
  try {
    expect((await newer.get('/_next/static/frozen.js')).status).toBe(200); // the worker's answer
    const again = await newer.get('/_next/static/frozen-again.js');
    expect(again.status).toBe(200);
    expect(newer.events({ event: 'begin', id: '/_next/static/frozen.js' })).toHaveLength(1);
  } finally {
    await fleet.engine.run('unpause', older.haproxy);
  }
  await until('it is asked again', async () => (await newer.get('/_next/static/old.js')).body === 'old');
});
