import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';

const STOREFRONT = fileURLToPath(new URL('..', import.meta.url));
const PRODUCT = {
  id: 'sku-1',
  name: 'Light Canvas Boots',
  brand: 'Cairn',
  category: 'Boots',
  priceCents: 9_900,
  rating: 4.5,
  reviewCount: 12,
  stock: 3,
  badges: ['New'],
  hues: [120],
  addedOn: '2026-01-15',
};

// Renders are CPU-bound: on a machine that compiles beside, they take their time.
import.meta.jest.setTimeout(60_000);

let server;

beforeAll(async () => {
  if (!existsSync(`${STOREFRONT}/node_modules/react`)) throw new Error('run "npm ci" in examples/storefront first');
  server = await startServer();
});

afterAll(() => server.stop());

describe('the page', () => {
  test('GET / shows every built-in product once, and tells who rendered it and for how long', async () => {
    const { status, headers, text } = await send({ path: '/' });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(text).toMatch(/^<!doctype html><html lang="en-US">.*<\/html>$/s);
    const ids = [...text.matchAll(/href="\/products\/(sku-\d+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(900);
    expect(ids).toHaveLength(900);
    expect(headers['x-served-by']).toMatch(new RegExp(`^.+:${server.port}$`));
    expect(Number(headers['x-render-ms'])).toBeGreaterThan(0);
  });

  test('the same seed gives the same page, another seed another one', async () => {
    const other = await startServer({ SEED: '2', PRODUCTS: '5' });
    try {
      const [first, again] = [await send({ path: '/?products=5' }), await send({ path: '/?products=5' })];
      expect(again.text).toBe(first.text);
      expect((await send({ path: '/', port: other.port })).text).not.toBe(first.text);
    } finally {
      await other.stop();
    }
  });

  test('POST /render shows the given props, formatted for their locale', async () => {
    const body = { locale: 'de-DE', currency: 'EUR', products: [{ ...PRODUCT, listPriceCents: 123_456 }] };
    const { status, text } = await send({ path: '/render', body });
    expect(status).toBe(200);
    expect(text).toContain('Light Canvas Boots');
    expect(text).toContain('1.234,56\u00a0€');
  });

  test('text from outside cannot become markup', async () => {
    const hostile = '</script><script>alert(1)</script>"\'<img src=x onerror=alert(1)>';
    const product = { ...PRODUCT, id: hostile, name: hostile, brand: hostile, category: hostile, badges: [hostile] };
    const { status, text } = await send({ path: '/render', body: { storeName: hostile, products: [product] } });
    expect(status).toBe(200);
    expect(text).not.toContain('<script>');
    expect(text).not.toContain('<img');
    expect(text.match(/<\/script>/g)).toHaveLength(1);
    const linked = JSON.parse(text.match(/<script type="application\/ld\+json">(.*?)<\/script>/s)[1]);
    expect(linked.itemListElement[0].item.name).toBe(hostile);
  });
});

describe('refusals', () => {
  const cases = [
    ['a body that is not JSON', { path: '/render', body: '{"products":' }, 400, /^the body is not valid JSON: /],
    ['a body that is not an object', { path: '/render', body: '[]' }, 400, /^the body must be a JSON object/],
    ['missing products', { path: '/render', body: {} }, 400, /^products must be a list$/m],
    [
      'a null among the products',
      { path: '/render', body: { products: [null] } },
      400,
      /^products\[0\] must be an object$/m,
    ],
    [
      'a wrong field, named with its path',
      { path: '/render', body: { products: [PRODUCT, { ...PRODUCT, priceCents: '1' }] } },
      400,
      /^products\[1\]\.priceCents must be a whole number/,
    ],
    [
      'half a character',
      { path: '/render', body: { products: [{ ...PRODUCT, id: '\ud83d' }] } },
      400,
      /^products\[0\]\.id must be a string/,
    ],
    [
      'an unknown currency',
      { path: '/render', body: { currency: 'E', products: [] } },
      400,
      /^locale and currency must be/,
    ],
    [
      'too many products',
      { path: '/render', body: { products: Array(5_001).fill(0) } },
      400,
      /5001 entries, at most 5000/,
    ],
    [
      'too many products in the query',
      { path: '/?products=5001' },
      400,
      /^products must be a whole number from 0 to 5000$/m,
    ],
    ['a body above the limit', { path: '/render', body: 'x'.repeat(5_000_001) }, 413, /5000000 bytes/],
    ['an unknown path', { path: '/favicon.ico' }, 404, /GET \/ and POST \/render/],
    ['a wrong method', { path: '/render' }, 405, /^use POST$/m],
    ['a URL that cannot be parsed', { path: '//' }, 400, /^the URL is not valid$/m],
  ];
  test.each(cases)('%s', async (_name, sent, status, message) => {
    const answer = await send(sent);
    expect({ status: answer.status, text: answer.text }).toEqual({ status, text: expect.stringMatching(message) });
  });

  test('a refused request is no longer in progress', async () => {
    await send({ path: '/nowhere' });
    expect((await send({ path: '/?products=1' })).headers['x-in-progress']).toBe('1');
  });
});

describe('requests in progress', () => {
  test('one at a time: 1', async () => {
    for (let index = 0; index < 3; index += 1) {
      expect((await send({ path: '/?products=1' })).headers['x-in-progress']).toBe('1');
    }
  });

  test('a render beside a body that is still arriving: both say 2', async () => {
    const slow = await startPost(JSON.stringify({ products: [PRODUCT] }));
    expect((await send({ path: '/?products=1' })).headers['x-in-progress']).toBe('2');
    expect((await slow.finish()).headers['x-in-progress']).toBe('2');
    expect((await send({ path: '/?products=1' })).headers['x-in-progress']).toBe('1');
  });

  // A render of 5000 products takes long enough for another connection to be made and used meanwhile, however busy the
  // machine is.
  test('a request that arrives during a render: both say 2', async () => {
    const first = await openConnection();
    first.get('/?products=5000');
    const second = await openConnection();
    second.get('/?products=1');
    expect(await first.inProgress()).toBe('2');
    expect(await second.inProgress()).toBe('2');
  });

  test('a render goes on without its client, so the next request overlaps with it', async () => {
    const abandoned = await openConnection();
    abandoned.get('/?products=5000');
    abandoned.leave();
    const next = await openConnection();
    next.get('/?products=1');
    expect(await next.inProgress()).toBe('2');
    expect((await send({ path: '/?products=1' })).headers['x-in-progress']).toBe('1');
  });

  test('a client that leaves in the middle of its body is no longer counted', async () => {
    const slow = await startPost(JSON.stringify({ products: [PRODUCT] }));
    await slow.abort();
    // The server learns of it by itself; from then on the count is 1 again.
    let inProgress;
    do inProgress = (await send({ path: '/?products=1' })).headers['x-in-progress'];
    while (inProgress !== '1');
  });
});

describe('start and stop', () => {
  test('SIGTERM: the request in progress is answered, then the process ends with 0', async () => {
    const own = await startServer();
    try {
      const slow = await startPost(JSON.stringify({ products: [PRODUCT] }), own.port);
      own.child.kill('SIGTERM');
      await own.waitForOutput(/SIGTERM, finishing/);
      await expect(send({ path: '/', port: own.port })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
      const answer = await slow.finish();
      expect(answer.status).toBe(200);
      expect(answer.headers.connection).toBe('close');
      expect(await own.exited).toEqual([0, null]);
    } finally {
      own.child.kill('SIGKILL');
    }
  });

  test('a wrong PORT ends the process with 1 and says why', async () => {
    const child = spawn(process.execPath, ['server.mjs'], { cwd: STOREFRONT, env: { ...process.env, PORT: '80a' } });
    const [[code], [message]] = await Promise.all([
      once(child, 'close'),
      once(child.stderr.setEncoding('utf8'), 'data'),
    ]);
    expect(code).toBe(1);
    expect(message).toContain('PORT must be a whole number from 0 to 65535, not "80a"');
  });
});

/** Starts the real server as a child process on a free port of the loopback; resolves when it listens. */
async function startServer(env = {}) {
  const child = spawn(process.execPath, ['server.mjs'], {
    cwd: STOREFRONT,
    env: { ...process.env, NODE_OPTIONS: '', NODE_ENV: 'production', HOST: '127.0.0.1', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  const waitForOutput = async (pattern) => {
    while (!pattern.test(output)) await once(child.stdout, 'data');
    return output.match(pattern);
  };
  const [, port] = await waitForOutput(/listening on http:\/\/127\.0\.0\.1:(\d+)/);
  const stop = () => {
    child.kill('SIGTERM');
    return exited;
  };
  return { child, port: Number(port), exited, waitForOutput, stop };
}

const send = (options) => startRequest(options).answer;

/** Sends a request over a connection of its own; `sent` resolves when it has left this process. */
function startRequest({ path, body, port = server.port }) {
  const request = httpRequest({
    port,
    path,
    method: body === undefined ? 'GET' : 'POST',
    host: '127.0.0.1',
    agent: false,
  });
  const sent = new Promise((resolve) => request.once('finish', resolve));
  const answer = readAnswer(request);
  request.end(typeof body === 'object' ? JSON.stringify(body) : body);
  return { sent, answer };
}

/**
 * Starts a POST on a kept connection and holds its body back; resolves when the server has begun to handle it, which
 * its "100 Continue" tells.
 */
async function startPost(body, port = server.port) {
  const agent = new Agent({ keepAlive: true });
  const headers = { 'content-length': Buffer.byteLength(body), expect: '100-continue' };
  const request = httpRequest({ host: '127.0.0.1', port, path: '/render', method: 'POST', headers, agent });
  const answer = readAnswer(request);
  request.flushHeaders();
  await once(request, 'continue');
  return {
    finish: () => {
      request.end(body);
      return answer.finally(() => agent.destroy());
    },
    abort: () => {
      request.destroy();
      return answer.catch(() => {});
    },
  };
}

/** A bare connection: what is written to it goes to the kernel at once, in this turn of the event loop. */
async function openConnection() {
  const socket = connect(server.port, '127.0.0.1');
  await once(socket, 'connect');
  return {
    get: (path) => socket.write(`GET ${path} HTTP/1.1\r\nHost: storefront\r\nConnection: close\r\n\r\n`),
    leave: () => socket.destroy(),
    inProgress: async () => (await readText(socket)).match(/^x-in-progress: (\d+)\r$/m)[1],
  };
}

async function readAnswer(request) {
  const [response] = await once(request, 'response');
  return { status: response.statusCode, headers: response.headers, text: await readText(response) };
}

async function readText(stream) {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += chunk;
  return text;
}
