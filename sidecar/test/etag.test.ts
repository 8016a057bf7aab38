/** ETags and 304 through both proxies (cache.etag). */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { has, page, tagOf } from './etag.ts';
import { inSteps, STREAMS } from './stream.ts';

let pod: Pod;
let gzip: Pod;
let streams: Pod;
beforeAll(async () => {
  const quick = { workersPerPod: 1 } as const;
  [pod, gzip, streams] = await Promise.all([
    Pod.start(quick),
    Pod.start({ ...quick, compression: { enabled: true } }),
    Pod.start(quick, STREAMS),
  ]);
});
afterAll(() => Promise.all([pod, gzip, streams].map((one) => one?.stop())));

test('who has a page gets 304 without it, with what caches need, and the log says so', async () => {
  const path = page(
    'whole',
    50_000,
    '&header=cache-control:private, max-age=5&header=vary:cookie'.replaceAll(' ', '%20'),
  );
  const tag = await tagOf(pod, path);
  const { status, headers, body } = await pod.get(path, has(tag));
  expect([status, body]).toEqual([304, '']);
  expect(headers).toMatchObject({ etag: tag, 'cache-control': 'private, max-age=5', vary: 'cookie' });
  expect(headers.date).toBeDefined();
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) expect(headers).not.toHaveProperty(name);
  expect(
    await until('it is in the log', async () => (await pod.accessLog()).find((line) => line.status === 304)),
  ).toMatchObject({ worker: 'worker-0' });
});

test('another page is sent, with a tag of its own', async () => {
  const tag = await tagOf(pod, page('one', 1_000));
  const { status, headers, body } = await pod.get(page('two', 1_001), has(tag));
  expect([status, body.length]).toEqual([200, 1_001]);
  expect(headers.etag).not.toBe(tag);
});

test('HEAD has the tag of GET, and 304', async () => {
  const path = page('head');
  const tag = await tagOf(pod, path);
  const head = await pod.get(path, { method: 'HEAD' });
  expect([head.status, head.headers.etag, head.body]).toEqual([200, tag, '']);
  expect((await pod.get(path, { method: 'HEAD', ...has(tag) })).status).toBe(304);
});

test('thousands of tags, and what is none, get a page; the right one among them gets 304', async () => {
  const path = page('many', 100);
  const tag = await tagOf(pod, path);
  for (const value of ['W/"a",'.repeat(1_300), '"'.repeat(8_000), 'W/'.repeat(4_000), '\\"'.repeat(4_000), ' ', '"*"'])
    expect(await pod.get(path, has(value))).toMatchObject({ status: 200, body: 'x'.repeat(100) });
  for (const value of [`${'W/"a",'.repeat(1_300)}${tag}`, tag.slice(2), `"a",${tag} , "b"`, '*'])
    expect((await pod.get(path, has(value))).status).toBe(304);
});

test('a tag is good with gzip and without', async () => {
  const path = page('gzip');
  const tag = await tagOf(gzip, path);
  const accepts = { 'accept-encoding': 'gzip' };
  const compressed = await gzip.get(path, { headers: accepts });
  expect(compressed.headers).toMatchObject({ etag: tag, 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
  const { status, headers, body } = await gzip.get(path, { headers: { ...accepts, 'if-none-match': tag } });
  expect([status, headers.etag, headers['content-encoding'], body]).toEqual([304, tag, undefined, '']);
});

test.each([
  ['no-store', page('no-store', 100, '&header=cache-control:no-store')],
  ['another status', page('404', 100, '&status=404')],
  ['a picture', '/?id=picture&size=100&header=content-type:image/png'],
  ['a tag of the program', page('own', 100, '&header=etag:"own"')],
])('not for %s', async (_name, path) => {
  const { status, headers, body } = await pod.get(path, has('*'));
  expect(status).not.toBe(304);
  expect(body.length).toBe(100);
  expect(headers.etag).toBe(path.includes('own') ? '"own"' : undefined);
});

test('not for a POST, nor for a stream', async () => {
  const { status, headers } = await pod.get(page('post'), { method: 'POST', ...has('*') });
  expect([status, headers.etag]).toEqual([200, undefined]);
  for (const steps of [['write:300', 'write:300'], ['last:599']]) {
    const path = inSteps(`stream-${steps[0]}`, steps, '&header=Content-Type:text/html');
    const stream = await streams.get(path, has('*'));
    expect([stream.status, stream.headers.etag, stream.body.length]).toEqual([200, undefined, 600]);
  }
});
