/** The port of `corelane dashboard`: what it gives to whom, and what stands in its answers. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Listener } from '../../../cli/dashboard/listener.ts';
import type { PageFrame } from '../../../live/page-frame.ts';
import { request } from '../../../local/http.ts';
import { figures, fleet, pod, worker } from '../live/fleet.ts';
import { cpuProfile, type MadeUp, madeUp } from './sources.ts';

const FILES = { html: '<!doctype html>', script: Buffer.from('script'), style: Buffer.from('style') };
const HOSTILE = '/<script>alert(1)</script>?"\u202e\u0007&';
const BUSY = figures({ workers: [worker(0, { busy: 1 }), worker(1)] });

let listener: Listener | undefined;
const streams: AbortController[] = [];
afterEach(() => {
  for (const stream of streams.splice(0)) stream.abort();
  listener?.close();
});

async function start(service: Partial<MadeUp> = {}): Promise<{ url: URL; port: number; path: string }> {
  const source = madeUp({ look: () => fleet({ pods: [pod(0, { figures: BUSY })] }), ...service });
  listener = await Listener.start({ source, files: FILES, intervalMs: 50, askedMax: 10, port: 0 });
  const url = new URL(listener.url);
  return { url, port: Number(url.port), path: url.pathname };
}

/** Events of the stream until `isEnough`, by name. */
async function told(url: URL, isEnough: (name: string, data: unknown) => boolean): Promise<[string, unknown][]> {
  const stream = new AbortController();
  streams.push(stream);
  const response = await fetch(new URL('told', url), { signal: stream.signal });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const events: [string, unknown][] = [];
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const [, name = '', data = ''] = /^event: (.*)\ndata: (.*)$/s.exec(part) ?? [];
      events.push([name, JSON.parse(data)]);
      if (isEnough(name, JSON.parse(data))) return events;
    }
  }
  return events;
}

test('the page, its script and its style; nothing else', async () => {
  const { port, path } = await start();
  expect(await request(port, path)).toMatchObject({ status: 200, body: FILES.html });
  expect(await request(port, `${path}page.js`)).toMatchObject({ status: 200, body: 'script' });
  expect(await request(port, `${path}page.css`)).toMatchObject({ status: 200, body: 'style' });
  expect(await request(port, path.slice(0, -1))).toMatchObject({ status: 308, headers: { location: path } });
  for (const other of ['..', 'package.json', '%2e%2e/', 'profiles/', 'profiles/00.html'])
    expect(await request(port, `${path}${other}`)).toMatchObject({ status: 404 });
});

test('each answer says what a browser may do with it', async () => {
  const { port, path } = await start();
  for (const one of [path, `${path}page.js`, '/', `${path}told?none`, `${path}nothing`]) {
    const abort = AbortSignal.timeout(5_000);
    const { headers } = await fetch(`http://127.0.0.1:${port}${one}`, { signal: abort });
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-security-policy': expect.stringContaining("default-src 'none'; script-src 'self'; style-src 'self'"),
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    expect(headers.get('content-security-policy')).not.toMatch(/unsafe/);
    expect(headers.get('access-control-allow-origin')).toBeNull();
  }
});

test('two processes have two keys', async () => {
  const { path } = await start();
  listener?.close();
  expect((await start()).path).not.toBe(path);
  expect(path).toMatch(/^\/[\w-]{43}\/$/);
});

test('another page, and a name of its own that leads here, get nothing', async () => {
  const { port, path } = await start();
  const strange: Record<string, string>[] = [
    { host: 'evil.example' },
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
  ];
  for (const headers of strange) {
    const { status, body } = await request(port, `${path}told`, { headers });
    expect([403, 421]).toContain(status);
    expect(body).not.toContain(path);
  }
});

test('a page gets what was before, then each look', async () => {
  const { url } = await start({ requests: () => [{ id: 'a', what: 'GET /p/shoes', ms: 80 }] });
  const events = await told(url, (_name, data) => ((data as PageFrame).lanes?.[0]?.marks.length ?? 0) > 1);
  expect(events[0]).toEqual(['history', { points: [], entries: [] }]);
  const [, frame] = events.at(-1) as [string, PageFrame];
  expect(frame).toMatchObject({
    name: 'storefront',
    pods: [{ name: 'storefront-7f9c-0', workers: '▇·' }],
    lanes: [{ marks: '▇▇', requests: [{ what: 'GET /p/shoes', ms: 80 }] }, { marks: '··' }],
  });
  expect(frame.lines[2]).toMatch(/^Now: /);
  // One that comes later has the curves of the looks before.
  const [[, history]] = (await told(url, () => true)) as [[string, { points: unknown[] }]];
  expect(history.points.length).toBeGreaterThan(1);
});

test('what strangers have chosen is text of one line, and of a bounded length', async () => {
  const { url } = await start({ requests: () => [{ id: HOSTILE, what: `GET ${HOSTILE}${'x'.repeat(9_000)}`, ms: 1 }] });
  const [name, frame] = (await told(url, (one) => one === 'frame')).at(-1) as [string, PageFrame];
  expect(name).toBe('frame');
  const what = frame.lanes[0]?.requests[0]?.what ?? '';
  expect(what).toMatch(/^GET \/<script>alert\(1\)<\/script>\?" &x/);
  expect(what.length).toBeLessThanOrEqual(300);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: there are none
  expect(JSON.stringify(frame)).not.toMatch(/[\u0000-\u001f\u202e]|\\u00|\\u202e/);
});

test('a look that fails is said, and the next one is told again', async () => {
  let looks = 0;
  const { url } = await start({
    look: () => {
      looks += 1;
      if (looks === 2) throw new Error('the API server is away');
      return fleet();
    },
  });
  const events = await told(url, (name) => name === 'frame' && looks > 2);
  expect(events.map(([name]) => name)).toEqual(['history', 'frame', 'trouble', 'frame']);
  expect(events[2]?.[1]).toEqual({ message: 'the API server is away' });
});

test('who may not list Events is told so, and has the rest', async () => {
  const { url } = await start({
    events: () => undefined,
  });
  const [, frame] = (await told(url, (name) => name === 'frame')).at(-1) as [string, PageFrame];
  expect(frame.notes).toEqual(['Events are not shown: listing them is not allowed']);
});

test('Events that cannot be read take nothing from the rest', async () => {
  const events = () => {
    throw new Error('events of namespace default cannot be listed: the answer is longer than 33554432 bytes');
  };
  const { url } = await start({ events });
  const [name, frame] = (await told(url, (one) => one !== 'history')).at(-1) as [string, PageFrame];
  expect([name, frame.notes]).toEqual([
    'frame',
    ['Events are not shown: events of namespace default cannot be listed: the answer is longer than 33554432 bytes'],
  ]);
});

describe('of a worker', () => {
  const post = (port: number, path: string) =>
    request(port, path, { method: 'POST', headers: { origin: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}` } });
  const POD = 'storefront-7f9c-0';

  test('a profile becomes a flame graph with an origin of its own, and a file', async () => {
    const { url, port, path } = await start({ profile: cpuProfile('</script><img src=x>') });
    await told(url, (name) => name === 'frame');
    const { status, body } = await post(port, `${path}profiles?pod=${POD}&worker=0`);
    expect(status).toBe(200);
    const { id, title } = JSON.parse(body);
    expect(title).toBe(`worker-0 of ${POD}`);
    const page = await request(port, `${path}profiles/${id}.html`);
    const policy = String(page.headers['content-security-policy']);
    expect(policy).toMatch(/^sandbox allow-scripts; default-src 'none'; script-src 'nonce-([^']+)'/);
    const [, nonce] = /nonce-([^']+)/.exec(policy) ?? [];
    expect(page.body.match(/<(script|style)[^>]*>/g)).toEqual([
      `<style nonce="${nonce}">`,
      `<script nonce="${nonce}">`,
    ]);
    expect(page.body).not.toContain('</script><img');
    // One is for one answer.
    expect((await request(port, `${path}profiles/${id}.html`)).body).not.toContain(String(nonce));
    const file = await request(port, `${path}profiles/${id}.cpuprofile`);
    expect(file.headers['content-disposition']).toBe(`attachment; filename="worker-0-of-${POD}.cpuprofile"`);
  });

  test('that is not there, nothing is asked', async () => {
    const { url, port, path } = await start({ profile: cpuProfile('render') });
    await told(url, (name) => name === 'frame');
    for (const query of [
      '',
      '?pod=..%2F..&worker=0',
      `?pod=${POD}&worker=2`,
      `?pod=${POD}&worker=0x0`,
      `?pod=${POD}&worker=0.5`,
    ]) {
      expect(await post(port, `${path}profiles${query}`)).toMatchObject({
        status: 502,
        body: 'there is no such worker\n',
      });
      expect(await request(port, `${path}stalls${query}`)).toMatchObject({ status: 502 });
    }
  });

  test('the last stack', async () => {
    const stall = {
      time: '2026-11-25T12:00:00Z',
      seconds: 8,
      in: 'render /app/a.js:3',
      requests: ['a'],
      stack: ['render /app/a.js:3'],
    };
    const { url, port, path } = await start({ stalls: [stall] });
    await told(url, (name) => name === 'frame');
    const { body } = await request(port, `${path}stalls?pod=${POD}&worker=1`);
    expect(JSON.parse(body)).toEqual([stall]);
  });

  test('a program that makes its own profile is told, not passed on', async () => {
    const { url, port, path } = await start({ profile: '{"nodes":[]}' });
    await told(url, (name) => name === 'frame');
    expect(await post(port, `${path}profiles?pod=${POD}&worker=0`)).toMatchObject({ status: 502 });
  });
});

test('no more pages than it says', async () => {
  const { url } = await start();
  for (let page = 0; page < 8; page += 1) void told(url, () => false).catch(() => {});
  for (;;) {
    const stream = new AbortController();
    streams.push(stream);
    const { status } = await fetch(new URL('told', url), { signal: stream.signal });
    if (status === 503) break;
    stream.abort();
  }
});

test('connections of others keep nobody from the page, nor a page from what it is told', async () => {
  const { url, port, path } = await start();
  const watched = told(url, (_name, data) => ((data as PageFrame).lanes?.[0]?.marks.length ?? 0) > 5);
  watched.catch(() => {}); // aborted, where another expectation fails first
  for (let made = 0; made < 100; made += 1) {
    const other = connect({ host: '127.0.0.1', port });
    other.on('error', () => {});
    await once(other, 'connect');
    other.write('GET / HTTP/1.1\r\nX-Slow: ');
  }
  expect(await request(port, path)).toMatchObject({ status: 200 });
  expect((await watched).at(-1)?.[0]).toBe('frame');
});
