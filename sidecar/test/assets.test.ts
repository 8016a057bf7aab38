/** Files of the application that nginx serves: no worker is asked for them, and whoever asks for others gets a page. */
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { APP_FILES, AppFiles, BUILT } from '../../e2e/harness/engine/app-files.ts';
import { docker, logs } from '../../e2e/harness/engine/docker.ts';
import { type Call, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { rawConnection } from './raw.ts';

const YEAR = 'public, max-age=31536000, immutable';
const SCRIPT = `export const text = '${'a chunk '.repeat(500)}';\n`;
const LARGE = Buffer.alloc(4 * 1024 * 1024, 'large ');
const CHUNKS = Array.from({ length: 25 }, (_unused, n) => `static/chunks/${n}-0a1b2c.js`);

const files = new AppFiles({
  ...Object.fromEntries(CHUNKS.map((path) => [path, SCRIPT])),
  'static/app.js': SCRIPT,
  'static/app.js.gz': gzipSync(SCRIPT),
  'static/app.js.br': brotliCompressSync(SCRIPT),
  'static/only-gzip.css': SCRIPT,
  'static/only-gzip.css.gz': gzipSync(SCRIPT),
  'static/[slug]/(group)/@slot/page é.js': SCRIPT,
  'static/folder/in-folder.js': SCRIPT,
  'static/.env': 'SECRET=1',
  'static/.well-known/security.txt': 'Contact: a',
  'static/large.bin': LARGE,
  'static/builds/latest.json': '{}',
  'static/link.js': '-> app.js',
  'static/linked': '-> folder',
  'static/passwd.js': '-> /etc/passwd',
  'static/up.js': '-> ../secret.txt',
  'static/loop': '-> ../static',
  'static/gone.js': '-> nowhere',
  ...Object.fromEntries(
    ['mjs', 'css', 'map', 'json', 'webmanifest', 'ttf', 'otf', 'woff2', 'md', 'svg', 'wasm', 'txt', 'unknown'].map(
      (end) => [`static/types/a.${end}`, '{}'],
    ),
  ),
  'secret.txt': 'not for everybody',
  'static-other/x.js': SCRIPT,
  'public/robots.txt': 'User-agent: *',
  'public/index.html': '<p>not the page</p>',
  'public/main-5Q3ZTXKB.js': SCRIPT,
  'public/report-20240115.txt': 'x',
});

const SPEC: Partial<RenderServiceSpecInput> = {
  workersPerPod: 1,
  limits: { perClient: {} },
  assets: [
    {
      path: '/_next/static/',
      from: `${APP_FILES}/static`,
      immutable: true,
      mutable: ['/_next/static/builds/latest.json'],
      headers: { 'Access-Control-Allow-Origin': '*' },
    },
    { path: '/closed/', from: `${APP_FILES}/static`, immutable: true, missing: 'NotFound' },
    { path: '/fonts/', from: `${APP_FILES}/static-other`, maxAge: '1h' },
    { path: '/', from: '/srv/*/public', hashedNames: true, immutable: true },
  ],
};

const worker = { options: files.options };
let pod: Pod;
let twin: Pod;
beforeAll(async () => {
  [pod, twin] = await Promise.all([Pod.start(SPEC, worker), Pod.start(SPEC, worker)]);
});
afterAll(async () => {
  await Promise.all([pod?.stop(), twin?.stop()]);
  files.remove();
});

interface Bytes {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: Buffer;
}

/** One request with its body as bytes. */
function fetch(path: string, headers: Record<string, string> = {}, method = 'GET', from = pod): Promise<Bytes> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: from.port(PORTS.http), path, headers, method, agent: false };
    http
      .request(options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
        });
      })
      .on('error', reject)
      .end();
  });
}

/** How many renders there were for an id, which is the path unless the query has one. */
const renders = (id: string, from = pod) => from.events({ event: 'begin', id }).length;

/** Asks as a page, and gives what the worker saw. */
async function rendered(path: string, call: Call = {}) {
  const { status, headers, body } = await pod.get(path, call);
  expect(headers['server-timing']).toMatch(/^queue;dur=/);
  return { status, headers, seen: JSON.parse(body) as { method: string; headers: Record<string, string> } };
}

test('a page with 25 chunks takes one slot', async () => {
  const before = pod.events({ event: 'begin' }).length;
  await rendered('/?id=page-with-chunks');
  const answers = await Promise.all(CHUNKS.map((path) => fetch(path.replace('static/', '/_next/static/'))));
  expect(answers.map(({ status }) => status)).toEqual(CHUNKS.map(() => 200));
  expect(pod.events({ event: 'begin' })).toHaveLength(before + 1);
});

test('200: whole, with type, length, validators, and for a year', async () => {
  const { status, headers, body } = await fetch('/_next/static/app.js');
  expect([status, body.toString()]).toEqual([200, SCRIPT]);
  expect(headers).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'content-length': String(SCRIPT.length),
    'last-modified': BUILT.toUTCString(),
    etag: expect.stringMatching(/^"[0-9a-f]+-[0-9a-f]+"$/),
    'cache-control': YEAR,
    'accept-ranges': 'bytes',
    'access-control-allow-origin': '*',
    vary: 'Accept-Encoding',
    connection: 'close',
  });
  expect(headers['server-timing']).toBeUndefined();
});

test('HEAD has the same head and no body', async () => {
  const [get, head] = [await fetch('/_next/static/app.js'), await fetch('/_next/static/app.js', {}, 'HEAD')];
  const { date: _one, ...expected } = get.headers;
  const { date: _other, ...headers } = head.headers;
  expect([head.status, headers, head.body.length]).toEqual([200, expected, 0]);
});

test('304 for who has it, by tag or by time; two pods have the same tags', async () => {
  for (const encoding of ['identity', 'gzip', 'br']) {
    const accept = { 'accept-encoding': encoding };
    const { headers } = await fetch('/_next/static/app.js', accept);
    const etag = headers.etag as string;
    expect((await fetch('/_next/static/app.js', accept, 'GET', twin)).headers.etag).toBe(etag);
    const again = await fetch('/_next/static/app.js', { ...accept, 'if-none-match': etag }, 'GET', twin);
    expect([again.status, again.body.length, again.headers['cache-control']]).toEqual([304, 0, YEAR]);
  }
  expect((await fetch('/_next/static/app.js', { 'if-modified-since': BUILT.toUTCString() })).status).toBe(304);
});

test.each<[string, string | undefined, (body: Buffer) => Buffer]>([
  ['gzip', 'gzip', gunzipSync],
  ['br', 'br', brotliDecompressSync],
  ['gzip, deflate, br', 'br', brotliDecompressSync],
  ['br;q=0, gzip', 'gzip', gunzipSync],
  ['gzip;q=0, br;q=0', undefined, (body) => body],
  ['identity', undefined, (body) => body],
])('Accept-Encoding: %s', async (accept, encoding, decode) => {
  // Via: nginx itself would keep the compressed ones from whoever comes through a proxy.
  const { headers, body } = await fetch('/_next/static/app.js', { 'accept-encoding': accept, via: '1.1 cdn' });
  expect([headers['content-encoding'], headers.vary]).toEqual([encoding, 'Accept-Encoding']);
  expect(headers['content-type']).toBe('text/javascript; charset=utf-8');
  expect(decode(body).toString()).toBe(SCRIPT);
});

test('with one variant alone caches are told of it, too', async () => {
  const get = (accept: string) => fetch('/_next/static/only-gzip.css', { 'accept-encoding': accept });
  const [compressed, plain] = [await get('br, gzip'), await get('identity')];
  expect([compressed.headers['content-encoding'], compressed.headers.vary]).toEqual(['gzip', 'Accept-Encoding']);
  expect(plain.headers['content-encoding']).toBeUndefined();
});

test('206 for a part, all of it for a part of another version', async () => {
  const part = await fetch('/_next/static/large.bin', { range: 'bytes=1000-1999' });
  expect([part.status, part.headers['content-range']]).toEqual([206, `bytes 1000-1999/${LARGE.length}`]);
  expect(part.body.equals(LARGE.subarray(1000, 2000))).toBe(true);
  const etag = part.headers.etag as string;
  const resumed = await fetch('/_next/static/large.bin', { range: 'bytes=10-', 'if-range': etag }, 'GET', twin);
  expect(resumed.status).toBe(206);
  expect((await fetch('/_next/static/large.bin', { range: 'bytes=10-', 'if-range': '"0-0"' })).status).toBe(200);
});

test.each<[status: number, reason: string, headers: Record<string, string>]>([
  [416, 'range-not-satisfiable', { range: 'bytes=99999999-' }],
  [412, 'precondition-failed', { 'if-match': '"0-0"' }],
  [412, 'precondition-failed', { 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' }],
])('%i of a file has its reason, %s, and nobody keeps it', async (status, reason, headers) => {
  const path = `/_next/static/large.bin?${Object.keys(headers)}`;
  const answer = await fetch(path, { ...headers, connection: 'keep-alive' });
  expect([answer.status, answer.headers['x-corelane-error'], answer.body.toString()]).toEqual([
    ...[status, reason, `{"error":"${reason}"}`],
  ]);
  // nginx closes the connection after a 412, so no client may send another request over it.
  expect(answer.headers.connection).toBe(status === 412 ? 'close' : 'keep-alive');
  expect(answer.headers['cache-control']).toMatch(/(^|, )no-store$/);
  expect(answer.headers['content-range']).toBe(status === 416 ? `bytes */${LARGE.length}` : undefined);
  const line = await until('it is logged', async () => (await pod.accessLog()).find(({ uri }) => uri === path));
  expect(line).toMatchObject({ status, error: reason, worker: '' });
});

test('a list of many ranges is no more work than the file', async () => {
  const many = (count: number) =>
    `bytes=${Array.from({ length: count }, (_unused, n) => `${n * 2}-${n * 2}`).join(',')}`;
  expect((await fetch('/_next/static/large.bin', { range: many(16) })).status).toBe(206);
  const { status, body } = await fetch('/_next/static/large.bin', { range: many(500) });
  expect([status, body.length]).toEqual([200, LARGE.length]);
});

test.each([
  ['mjs', 'text/javascript; charset=utf-8'],
  ['css', 'text/css; charset=utf-8'],
  ['map', 'application/json'],
  ['json', 'application/json'],
  ['webmanifest', 'application/manifest+json'],
  ['ttf', 'font/ttf'],
  ['otf', 'font/otf'],
  ['woff2', 'font/woff2'],
  ['md', 'text/markdown; charset=utf-8'],
  ['svg', 'image/svg+xml; charset=utf-8'],
  ['wasm', 'application/wasm'],
  ['txt', 'text/plain; charset=utf-8'],
  ['unknown', 'application/octet-stream'],
])('type of .%s', async (end, type) => {
  expect((await fetch(`/_next/static/types/a.${end}`)).headers['content-type']).toBe(type);
});

test.each([
  ['brackets and blanks, encoded', '/_next/static/%5Bslug%5D/(group)/@slot/page%20%C3%A9.js'],
  ['all of it encoded', '/%5Fnext/static/%61pp.js'],
  ['with a query', '/_next/static/app.js?dpl=dpl_123'],
  ['over dots that stay below', '/_next/static/folder/../app.js'],
  ['a link to a file beside', '/_next/static/link.js'],
  ['a file in a linked folder', '/_next/static/linked/in-folder.js'],
  ['of the other folder', '/fonts/x.js'],
  ['a name with a hash among others', '/main-5Q3ZTXKB.js'],
])('served: %s', async (_what, path) => {
  const { status, body, headers } = await fetch(path);
  expect([status, body.toString(), headers['server-timing']]).toEqual([200, SCRIPT, undefined]);
});

test('files that change are asked for again; the others of another folder too', async () => {
  const cache = async (path: string) => (await fetch(path)).headers['cache-control'];
  expect(await cache('/_next/static/builds/latest.json')).toBe('public, max-age=0');
  expect(await cache('/fonts/x.js')).toBe('public, max-age=3600');
});

test('a name without a blank of its own: /.well-known/ is for everybody', async () => {
  expect((await fetch('/_next/static/.well-known/security.txt')).body.toString()).toBe('Contact: a');
});

test.each([
  ['a file that is not there', '/_next/static/missing.js'],
  ['a folder', '/_next/static/folder'],
  ['a folder with a slash', '/_next/static/folder/'],
  ['the folder itself', '/_next/static/'],
  ['a name that begins with a dot', '/_next/static/.env'],
  ['a path that leaves the folder', '/_next/static/../secret.txt'],
  ['the same, encoded', '/_next/static/%2e%2e/secret.txt'],
  ['the same, encoded twice', '/_next/static/%252e%252e/secret.txt'],
  ['the same, with a slash that is encoded', '/_next/static/..%2fsecret.txt'],
  ['the folder beside, whose name begins alike', '/_next/static-other/x.js'],
  ['a link to a file of the image', '/_next/static/passwd.js'],
  ['a link that leads up', '/_next/static/up.js'],
  ['a link to a folder that it is in', '/_next/static/loop/app.js'],
  ['a link to nothing', '/_next/static/gone.js'],
  ['a name longer than any', `/_next/static/${'x'.repeat(300)}.js`],
  ['a file as if it were a folder', '/_next/static/app.js/x'],
  ['the site, which has an index', '/'],
  ['a name without a hash', '/robots.txt'],
  ['a name with a date', '/report-20240115.txt'],
])('asked of a worker, once: %s', async (_what, path) => {
  const id = `asked${path.replace(/\W/g, '-')}`;
  const { status, seen } = await rendered(`${path}?id=${id}`);
  expect([status, seen.method, renders(id)]).toEqual([200, 'GET', 1]);
  expect(Object.keys(seen.headers).filter((name) => name.startsWith('x-corelane'))).toEqual(['x-corelane-request']);
});

test('a worker sees the very bytes of the URL', async () => {
  const path = '/_next/static/%5Bslug%5D/(a)/@b/x%20%C3%A9.js';
  await rendered(`${path}?c=%20d`);
  expect(renders(path)).toBe(1);
});

test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('%s of a file goes to a worker', async (method) => {
  const body = method === 'POST' ? 'x'.repeat(100_000) : '';
  const { status, seen } = await rendered('/_next/static/app.js', { method, body });
  expect([status, seen.method]).toEqual([200, method]);
  const closed = await rendered('/closed/app.js', { method });
  expect(closed.seen.method).toBe(method);
});

test('nobody keeps a 404 of a file that may be there in a moment; other answers are as they are', async () => {
  const cache = (path: string) => fetch(`${path}&header=cache-control:${encodeURIComponent('public, max-age=60')}`);
  const missing = await cache('/_next/static/missing.js?status=404');
  expect([missing.status, missing.headers['cache-control']]).toEqual([404, 'no-store']);
  expect((await cache('/_next/static/missing.js?status=200')).headers['cache-control']).toBe('public, max-age=60');
  expect((await cache('/page?status=404')).headers['cache-control']).toBe('public, max-age=60');
  expect((await cache('/fonts/missing.js?status=404')).headers['cache-control']).toBe('public, max-age=60');
});

test('no client says that a file is missing: what may be kept of another 404 is the word of the application', async () => {
  const { status, headers } = await pod.get('/?status=404', { headers: { 'x-corelane-missing': '1' } });
  expect([status, headers['cache-control']]).toEqual([404, undefined]);
});

test('files are served while all workers are busy, and while none is up', async () => {
  const page = pod.get('/?id=busy&hold=1');
  await pod.begun('busy');
  expect((await fetch('/_next/static/app.js')).status).toBe(200);
  pod.release('busy');
  expect((await page).status).toBe(200);
});

test('who reads slowly holds no worker, and has one of the places for requests', async () => {
  const socket = await rawConnection(pod.port(PORTS.http));
  socket.pause();
  socket.write('GET /_next/static/large.bin HTTP/1.1\r\nHost: a\r\n\r\n');
  await rendered('/?id=beside-slow-reader');
  expect((await fetch('/_next/static/app.js')).status).toBe(200);
  socket.destroy();
  const line = await until('it is logged', async () =>
    (await pod.accessLog()).find(({ uri, status }) => uri === '/_next/static/large.bin' && status === 200),
  );
  expect(line).toMatchObject({ method: 'GET', worker: '', error: '' });
});

test('the access log has a line for each, and says that no worker was asked', async () => {
  await fetch('/_next/static/app.js?logged=1');
  const line = await until('it is logged', async () =>
    (await pod.accessLog()).find(({ uri }) => uri === '/_next/static/app.js?logged=1'),
  );
  expect(line).toMatchObject({ status: 200, worker: '', tries: '', queueMs: null, renderMs: null });
});

test('an nginx that is killed serves files again at once, master alone or all of it', async () => {
  for (const withChildren of [false, true]) {
    await twin.killProxy(twin.nginx, 'nginx', { withChildren });
    const isServed = () =>
      fetch('/_next/static/app.js', {}, 'GET', twin).then(
        ({ status }) => status === 200,
        () => false,
      );
    await until('it serves', isServed);
  }
});

test('HTTP/1.0 has its compressed file, too', async () => {
  const socket = await rawConnection(pod.port(PORTS.http));
  socket.write('GET /_next/static/app.js HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n');
  let received = '';
  for await (const chunk of socket) received += chunk.toString('latin1');
  expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\nContent-Encoding: gzip\r\n/);
});

test('a file that nginx may not read is asked of a worker; no terminal obeys what nginx says of it', async () => {
  writeFileSync(join(pod.run, '../assets/0/_next/static/unreadable\x1b[2J.js'), 'x', { mode: 0o600 });
  await rendered('/_next/static/unreadable%1B%5B2J.js?id=unreadable');
  expect(renders('unreadable')).toBe(1);
  const said = await until('nginx says why', async () =>
    (await logs(pod.nginx)).split('\n').find((line) => /unreadable.*13: Permission denied/.test(line)),
  );
  expect(said).toContain('/_next/static/unreadable?[2J.js" failed');
});

test('nginx has no links, and cannot change what it serves', async () => {
  const list = await docker('exec', pod.nginx, 'find', '/corelane-assets/0', '-type', 'l', '-o', '-name', 'passwd.js');
  expect(list).toBe('');
  const written = docker('exec', pod.nginx, 'sh', '-c', 'echo x > /corelane-assets/0/_next/static/app.js');
  await expect(written).rejects.toThrow(/[Rr]ead-only/);
});
