import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseProps } from '../../examples/storefront/src/props.mjs';
import { readyTargets } from './endpoints.mjs';
import { LIMITS, parseOptions, UsageError } from './options.mjs';
import { arrivalTimesMs, createBody, runLoad } from './run.mjs';
import { createStats, formatTable, percentile, summarize } from './stats.mjs';

// Some tests start processes: on a busy machine that takes its time.
import.meta.jest.setTimeout(60_000);

const LOAD = fileURLToPath(new URL('load.mjs', import.meta.url));
const URL_ARGUMENTS = ['--url', 'http://127.0.0.1:1/'];

describe('percentiles', () => {
  const oneToHundred = Array.from({ length: 100 }, (_, index) => index + 1);

  test.each([
    [50, 50],
    [95, 95],
    [99, 99],
    [99.1, 100],
    [100, 100],
    [0.1, 1],
  ])('of 1 to 100: p%d is %d', (percent, expected) => {
    expect(percentile(oneToHundred, percent)).toBe(expected);
  });

  test('every whole percent of 1 to 100 is its own rank', () => {
    for (const percent of oneToHundred) expect(percentile(oneToHundred, percent)).toBe(percent);
  });

  test('a summary sorts by number, not by text', () => {
    const shuffled = [...oneToHundred].sort((a, b) => ((a * 37) % 101) - ((b * 37) % 101));
    expect(summarize(shuffled)).toEqual({ count: 100, mean: 50.5, p50: 50, p95: 95, p99: 99, max: 100 });
    expect(summarize([9, 10, 100])).toMatchObject({ p50: 10, max: 100 });
  });

  test('one value is every percentile, no value is null', () => {
    expect(summarize([7.26])).toEqual({ count: 1, mean: 7.3, p50: 7.3, p95: 7.3, p99: 7.3, max: 7.3 });
    expect(summarize([])).toEqual({ count: 0, mean: null, p50: null, p95: null, p99: null, max: null });
  });
});

describe('stats', () => {
  const add = (stats, outcome) => {
    stats.started();
    stats.add({ bytes: 0, latencyMs: 1, ...outcome });
  };

  test('every request ends in exactly one of responses, errors, not started', () => {
    const stats = createStats({ requests: 10, concurrencyLimit: 1 });
    add(stats, { status: 200, servedBy: 'a:1', inProgress: 1, latencyMs: 5 });
    add(stats, { status: 503, latencyMs: 900 });
    add(stats, { errorCode: 'ECONNRESET', isReusedConnection: true });
    add(stats, { errorCode: 'ECONNRESET' });
    add(stats, { status: 200, servedBy: 'a:1', inProgress: 3, errorCode: 'TIMEOUT' });
    const summary = stats.summary();
    expect(summary).toMatchObject({
      requests: 10,
      notStarted: 5,
      responses: 2,
      ok: 1,
      failed: 9,
      statuses: { 200: 1, 503: 1 },
      errors: { ECONNRESET: 2, TIMEOUT: 1 },
      errorsOnReusedConnection: 1,
      overlaps: 1,
      workers: {
        'a:1': { requests: 2, maxInProgress: 3, overlaps: 1 },
        '(no X-Served-By)': { requests: 1, maxInProgress: 0, overlaps: 0 },
      },
    });
    // A quick 503 or a time-out says nothing about how long a page takes.
    expect(summary.latencyMs).toMatchObject({ count: 1, max: 5 });
  });

  test('the limit decides what an overlap is', () => {
    const stats = createStats({ requests: 3, concurrencyLimit: 2 });
    for (const inProgress of [1, 2, 3]) add(stats, { status: 200, servedBy: 'a:1', inProgress });
    expect(stats.summary().overlaps).toBe(1);
  });
});

describe('the schedule of the open loop', () => {
  const options = { requests: 20_000, ratePerS: 20, seed: 7 };

  test('the same seed gives the same times, another seed other ones', () => {
    expect(arrivalTimesMs(options)).toEqual(arrivalTimesMs(options));
    expect(arrivalTimesMs({ ...options, seed: 8 })).not.toEqual(arrivalTimesMs(options));
  });

  test('times ascend; the gaps have the mean and the spread of an exponential distribution', () => {
    const gapsMs = arrivalTimesMs(options).map((time, index, times) => time - (times[index - 1] ?? 0));
    expect(Math.min(...gapsMs)).toBeGreaterThan(0);
    const meanMs = gapsMs.reduce((sum, gap) => sum + gap, 0) / gapsMs.length;
    const deviationMs = Math.sqrt(gapsMs.reduce((sum, gap) => sum + (gap - meanMs) ** 2, 0) / gapsMs.length);
    expect(Math.abs(meanMs / 50 - 1)).toBeLessThan(0.02);
    expect(Math.abs(deviationMs / meanMs - 1)).toBeLessThan(0.02);
  });
});

describe('the body', () => {
  test.each([15, 16, 200, 239, 1_000, 100_000])('of %d bytes has that length and suits the storefront', (bytes) => {
    const body = createBody(bytes);
    expect(Buffer.byteLength(body)).toBe(bytes);
    expect(parseProps(body).products).toBeInstanceOf(Array);
  });

  test('is filled with products', () => {
    expect(parseProps(createBody(100_000)).products.length).toBeGreaterThan(400);
  });
});

describe('options', () => {
  test('defaults', () => {
    expect(parseOptions(['--url', 'http://storefront.shop.svc/'])).toMatchObject({
      requests: 100,
      concurrency: 1,
      ratePerS: undefined,
      method: 'GET',
      keepAlive: false,
      timeoutMs: 60_000,
      maxSeconds: 300,
      concurrencyLimit: 1,
      json: false,
    });
  });

  test('all of them', () => {
    const line =
      '--requests 200 --rate 20.5 --seed 3 --body-bytes 5000 --keep-alive --timeout 1.5s --max-seconds 20 --json';
    const options = parseOptions([...URL_ARGUMENTS, ...line.split(' '), '--header', 'X-Priority: low']);
    expect(options).toMatchObject({
      requests: 200,
      concurrency: LIMITS.concurrency,
      ratePerS: 20.5,
      seed: 3,
      method: 'POST',
      bodyBytes: 5_000,
      headers: { 'x-priority': 'low' },
      keepAlive: true,
      timeoutMs: 1_500,
      maxSeconds: 20,
      json: true,
    });
  });

  test.each([
    ['', '--url is missing'],
    ['--url nowhere', '--url: "nowhere" is not a URL'],
    ['--url https://a/', '--url must begin with http://'],
    ['--url http://a/ --requests 200001', '--requests must be a whole number from 1 to 200000, not "200001"'],
    ['--url http://a/ --requests 1.5', '--requests must be a whole number'],
    ['--url http://a/ --concurrency 513', '--concurrency must be a whole number from 1 to 512, not "513"'],
    ['--url http://a/ --concurrency 0', '--concurrency must be'],
    ['--url http://a/ --rate 0', '--rate must be a number from 0.01 to 10000'],
    ['--url http://a/ --rate 1e9', '--rate must be'],
    ['--url http://a/ --requests 1000 --rate 1', 'take about 1000 s: raise --max-seconds (300)'],
    ['--url http://a/ --body-bytes 14', '--body-bytes must be a whole number from 15'],
    ['--url http://a/ --timeout 5h', '--timeout must be a time from 1ms to 3600s'],
    ['--url http://a/ --timeout 2000m', '--timeout must be a time'],
    ['--url http://a/ --max-seconds 3601', '--max-seconds must be'],
    ['--url http://a/ --method TRACE', '--method must be one of'],
    ['--url http://a/ --header nothing', "--header must look like 'Name: value'"],
    ['--url http://a/ --conurrency 5', "Unknown option '--conurrency'"],
    ['--url http://a/ stray', 'stray'],
  ])('refuses "%s"', (line, message) => {
    const parse = () => parseOptions(line.split(' ').filter(Boolean));
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(message);
  });
});

describe('a run', () => {
  test('sends every request once, at most `concurrency` at a time, and names the workers', async () => {
    const server = await startServer((_request, response) => response.end('page'));
    const result = await server.run({ requests: 40, concurrency: 4 });
    expect(result).toMatchObject({ requests: 40, ok: 40, failed: 0, notStarted: 0, errors: {}, statuses: { 200: 40 } });
    expect(result).toMatchObject({ mode: 'closed', stoppedBy: null, bytesReceived: 160 });
    expect(result.latencyMs.count).toBe(40);
    expect(result.workers).toEqual({ 'test:1': expect.objectContaining({ requests: 40 }) });
    expect(server.seen()).toMatchObject({ requests: 40 });
    expect(server.seen().maxInProgress).toBeLessThanOrEqual(4);
  });

  test('counts overlaps as the worker reports them', async () => {
    const held = [];
    // Answers only when three requests are in progress together.
    const server = await startServer((_request, response) => {
      if (held.push(response) === 3)
        for (const each of held.splice(0)) each.writeHead(200, { 'x-in-progress': 3 }).end();
    });
    const result = await server.run({ requests: 6, concurrency: 3 });
    expect(result).toMatchObject({ ok: 6, overlaps: 6 });
    expect(result.workers['test:1'].maxInProgress).toBe(3);
    expect(await server.run({ requests: 3, concurrency: 3, concurrencyLimit: 3 })).toMatchObject({ overlaps: 0 });
  });

  test('keeps connections only when asked to', async () => {
    const server = await startServer((_request, response) => response.end());
    await server.run({ requests: 10, concurrency: 2, keepAlive: true });
    expect(server.seen().connections).toBeLessThanOrEqual(2);
    await server.run({ requests: 10, concurrency: 2 });
    expect(server.seen().connections).toBeGreaterThanOrEqual(10);
  });

  test('sends method, headers and body', async () => {
    const server = await startServer(async (request, response) => {
      let lengthBytes = 0;
      for await (const chunk of request) lengthBytes += chunk.length;
      const isRight = request.method === 'POST' && request.headers['x-priority'] === 'low' && lengthBytes === 100_000;
      response.writeHead(isRight ? 200 : 400).end();
    });
    const result = await server.run({
      requests: 3,
      method: 'POST',
      bodyBytes: 100_000,
      headers: { 'x-priority': 'low' },
    });
    expect(result.statuses).toEqual({ 200: 3 });
  });

  test('open loop: starts all, even those that wait for a free place', async () => {
    const server = await startServer((_request, response) => response.end());
    const result = await server.run({ requests: 30, ratePerS: 10_000, concurrency: 2 });
    expect(result).toMatchObject({ mode: 'open', ok: 30, ratePerS: 10_000 });
    expect(server.seen().maxInProgress).toBeLessThanOrEqual(2);
  });

  test('refused connections are failures', async () => {
    const server = await startServer(() => {});
    await server.close();
    const result = await server.run({ requests: 5, concurrency: 2 });
    expect(result).toMatchObject({ ok: 0, failed: 5, responses: 0, errors: { ECONNREFUSED: 5 }, workers: {} });
  });

  test('a response that breaks off is a failure, and its overlap counts', async () => {
    const server = await startServer((_request, response) => {
      response.writeHead(200, { 'content-length': 1_000, 'x-in-progress': 2 }).write('half', () => response.destroy());
    });
    const result = await server.run({ requests: 2 });
    expect(result).toMatchObject({ ok: 0, failed: 2, responses: 0, errors: { ECONNRESET: 2 }, overlaps: 2 });
  });

  test('no answer, or no end of it, within the time-out is a failure', async () => {
    const server = await startServer((request, response) => {
      if (request.url === '/head') response.writeHead(200).flushHeaders();
    });
    expect(await server.run({ requests: 2, timeoutMs: 20 })).toMatchObject({ failed: 2, errors: { TIMEOUT: 2 } });
    const broken = await server.run({ requests: 2, timeoutMs: 20, path: '/head' });
    expect(broken).toMatchObject({ failed: 2, errors: { TIMEOUT: 2 } });
  });

  test('a signal ends it: what is in flight has failed, the rest was not started', async () => {
    const stopping = new AbortController();
    const server = await startServer(() => {
      if (server.seen().inProgress === 3) stopping.abort('SIGTERM');
    });
    const result = await server.run({ requests: 10, concurrency: 3 }, { signal: stopping.signal });
    expect(result).toMatchObject({ stoppedBy: 'SIGTERM', notStarted: 7, errors: { STOPPED: 3 }, failed: 10 });
  });

  test.each([
    ['closed', undefined],
    ['open', 1_000],
  ])('the %s loop ends after maxSeconds', async (_name, ratePerS) => {
    const server = await startServer(() => {});
    const result = await server.run({ requests: 10, concurrency: 2, maxSeconds: 0.05, ratePerS });
    expect(result).toMatchObject({ stoppedBy: 'max-seconds', ok: 0, failed: 10 });
  });
});

describe('the command', () => {
  test('prints one line of JSON and ends with 0, although requests failed', async () => {
    const server = await startServer((_request, response) => response.writeHead(503).end());
    const { code, stdout } = await runCommand(['--url', server.url, '--requests', '3', '--json']);
    expect(code).toBe(0);
    expect(stdout.trim().split('\n')).toHaveLength(1);
    expect(JSON.parse(stdout)).toMatchObject({ url: server.url, requests: 3, failed: 3, statuses: { 503: 3 } });
  });

  test('prints a table of at most 80 columns', async () => {
    const name = `storefront-with-quite-a-long-name-7d9f8c6b5d-abcde-and-more-of-it-${'x'.repeat(40)}:9002`;
    const server = await startServer((_request, response) => response.setHeader('x-served-by', name).end());
    const { code, stdout } = await runCommand(['--url', `${server.url}${'long/'.repeat(20)}`, '--requests', '2']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^requests +2: 2 ok, 0 failed/m);
    expect(stdout).toMatch(/^storefront-with.*\.\.\..*:9002 +2 +1 +0$/m);
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  test('a table without a single answer', async () => {
    const server = await startServer(() => {});
    await server.close();
    expect(formatTable(await server.run({ requests: 1 }))).toMatch(/^errors +ECONNREFUSED: 1$/m);
  });

  test('wrong usage: 2, the reason and the usage', async () => {
    const { code, stderr, stdout } = await runCommand([...URL_ARGUMENTS, '--requests', '200001']);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^load: --requests must be a whole number from 1 to 200000, not "200001"\n\nUsage: /);
  });

  test('endpoints that are not ready are left out', () => {
    const slice = {
      ports: [{ port: 9000 }],
      endpoints: [
        { addresses: ['10.0.0.1'], conditions: { ready: true } },
        { addresses: ['10.0.0.2'], conditions: { ready: false } },
        { addresses: ['10.0.0.3'], conditions: {} },
      ],
    };
    expect(readyTargets(slice).map(String)).toEqual(['http://10.0.0.1:9000/', 'http://10.0.0.3:9000/']);
    expect(readyTargets({ ports: [], endpoints: null })).toEqual([]);
  });

  test('--help fits 80 columns', async () => {
    const { code, stdout } = await runCommand(['--help']);
    expect(code).toBe(0);
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});

const opened = [];

afterEach(() => Promise.all(opened.splice(0).map((close) => close())));

/**
 * Starts an HTTP server on loopback that reports the requests in progress as the storefront does, and closes it after
 * the test. `run` sends load to it.
 */
async function startServer(handle) {
  const seen = { requests: 0, inProgress: 0, maxInProgress: 0, connections: 0 };
  const server = createServer((request, response) => {
    seen.requests += 1;
    seen.inProgress += 1;
    seen.maxInProgress = Math.max(seen.maxInProgress, seen.inProgress);
    response.once('close', () => {
      seen.inProgress -= 1;
    });
    response.setHeader('x-in-progress', seen.inProgress);
    response.setHeader('x-served-by', 'test:1');
    handle(request, response);
  });
  server.on('connection', () => {
    seen.connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}/`;
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  opened.push(close);
  const run = ({ path = '/', ...options }, hooks) =>
    runLoad({ ...parseOptions(['--url', url]), url: new URL(path, url), ...options }, hooks);
  return { url, close, run, seen: () => ({ ...seen }) };
}

/** Runs load.mjs as a process of its own. */
function runCommand(args) {
  return new Promise((resolve) => {
    const env = { ...process.env, NODE_OPTIONS: '' };
    execFile(process.execPath, [LOAD, ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}
