/** What is made of nginx' word of a request: records, spans, batches. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { parseRecord, type Record } from '../../spans/record.ts';
import { type Count, headersOf, LIMITS, Sender, tracesUrl } from '../../spans/sender.ts';
import { spansOf } from '../../spans/spans.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const RENDER = 'b7ad6b7169203330';
const CLIENT = 'c7ad6b7169203331';
const NOW = 1_700_000_000_123;
const LINES = [
  '1 request 7',
  `00-${TRACE}-${RENDER}-01`,
  CLIENT,
  `${NOW} 100 95`,
  '200:90:85',
  '20',
  '60',
  'worker-0',
  '',
  '200',
  '',
  '',
  '',
  'GET',
  'http',
  'HTTP/1.1',
  'shop.example:8080',
  '/shop/1',
];
const text = (changes: { [index: number]: string } = {}) =>
  `${LINES.map((line, i) => changes[i] ?? line).join('\n')}\n`;
const record = (changes: { [index: number]: string } = {}) => parseRecord(text(changes), NOW) as Record;
const origin = { resource: resourceFromAttributes({}), scope: { name: 'corelane', version: '0' }, pod: 'here' };

describe('a record', () => {
  test('has what nginx says', () => {
    expect(record()).toEqual({
      ...{ kind: 'request', number: 7, traceId: TRACE, spanId: RENDER, parentId: CLIENT },
      ...{ atMs: NOW, totalMs: 100, firstByteMs: 95, queueMs: 20, renderMs: 60 },
      ...{ tries: [{ status: 200, ms: 90, headMs: 85 }], status: 200, error: '', worker: 'worker-0', pod: '' },
      ...{ cache: '', servedAs: '', method: 'GET', scheme: 'http', protocol: '1.1' },
      ...{ host: 'shop.example:8080', path: '/shop/1' },
    });
    expect(record({ 4: '502:3:-1,200:4:4' }).tries).toEqual([
      { status: 502, ms: 3, headMs: undefined },
      { status: 200, ms: 4, headMs: 4 },
    ]);
  });

  test.each<[string, string]>([
    ['nothing', ''],
    ['one line', 'hello\n'],
    ['a line too many', `${text()}more\n`],
    ['a line too few', text().split('\n').slice(1).join('\n')],
    ['no end', text().slice(0, -1)],
    ['another version', text({ 0: '2 request 7' })],
    ['a trace of zeros', text({ 1: `00-${'0'.repeat(32)}-${RENDER}-01` })],
    ['what is not sampled', text({ 1: `00-${TRACE}-${RENDER}-00` })],
    ['a parent of zeros', text({ 2: '0'.repeat(16) })],
    ['a year that is not now', text({ 3: '9999999999999 1 1' })],
    ['a time below none', text({ 3: `${NOW} -7 1` })],
    ['no total', text({ 3: `${NOW} -1 1` })],
    ['a month of rendering', text({ 6: '2678400000' })],
    ['a try without its time', text({ 4: '200' })],
    ['hundreds of tries', text({ 4: Array(400).fill('200:1:x').join(',') })],
  ])('is none with %s', (_what, datagram) => {
    expect(parseRecord(datagram, NOW)).toBeUndefined();
  });

  test.each<[string, number, string, keyof Record]>([
    ['digits without end', 5, '9'.repeat(400), 'queueMs'],
    ['a time below none', 6, '-1', 'renderMs'],
    ['a worker that there is not', 7, 'worker-100', 'worker'],
    ['a pod in capitals', 8, 'POD', 'pod'],
    ['a status of letters', 9, 'abc', 'status'],
    ['a reason in quotes', 10, '"x"', 'error'],
    ['a method with a blank', 13, 'GET /', 'method'],
    ['another scheme', 14, 'javascript', 'scheme'],
    ['another protocol', 15, 'SMTP/1.1', 'protocol'],
    ['a host with a blank', 16, 'no host', 'host'],
    ['a path with a query', 17, '/shop?token=secret', 'path'],
  ])('has nothing in place of %s', (_what, line, value, field) => {
    const { [field]: found, ...rest } = record({ [line]: value });
    const { [field]: _there, ...expected } = record();
    expect([found || undefined, rest]).toEqual([undefined, expected]);
  });
});

/** Name, parent, begin and end in milliseconds since the request came. */
const shapes = (changes: { [index: number]: string }) => {
  const spans = spansOf(record(changes), origin);
  const names = new Map(spans.map((span) => [span.spanContext().spanId, span.name]));
  const ms = ([s, ns]: [number, number]) => Math.round(s * 1000 + ns / 1e6 - NOW);
  return spans.map((span) => {
    const parent = span.parentSpanContext?.spanId ?? '';
    return [span.name, names.get(parent) ?? parent, ms(span.startTime), ms(span.endTime)];
  });
};

describe('spans', () => {
  test.each<[string, { [index: number]: string }, unknown[][]]>([
    [
      'a render',
      {},
      [
        ['GET', CLIENT, 0, 100],
        ['queue', 'GET', 10, 30],
        ['render', 'GET', 35, 100],
      ],
    ],
    [
      'no parent',
      { 2: '' },
      [
        ['GET', '', 0, 100],
        ['queue', 'GET', 10, 30],
        ['render', 'GET', 35, 100],
      ],
    ],
    ['a kept page', { 3: `${NOW} 3 -1`, 4: '', 5: '', 6: '', 7: '', 11: 'hit' }, [['GET', CLIENT, 0, 3]]],
    [
      'two tries',
      { 3: `${NOW} 100 95`, 4: '502:30:30,200:60:55', 5: '5', 6: '40' },
      [
        ['GET', CLIENT, 0, 100],
        ['try', 'GET', 10, 40],
        ['queue', 'GET', 40, 45],
        ['render', 'GET', 55, 100],
      ],
    ],
    [
      'another pod',
      { 8: 'other' },
      [
        ['GET', CLIENT, 0, 100],
        ['queue', 'GET', 10, 30],
        ['hand-over', 'GET', 30, 100],
        ['render', 'hand-over', 35, 100],
      ],
    ],
    [
      'nobody had time',
      { 3: `${NOW} 1003 1002`, 4: '503:1001:1001', 5: '', 6: '', 7: '', 9: '503', 10: 'queue-timeout' },
      [
        ['GET', CLIENT, 0, 1003],
        ['queue', 'GET', 1, 1002],
      ],
    ],
    [
      'times that do not fit together stay inside',
      { 5: '900', 6: '900' },
      [
        ['GET', CLIENT, 0, 100],
        ['queue', 'GET', 10, 10],
        ['render', 'GET', 10, 100],
      ],
    ],
    [
      'a page for others',
      { 0: '1 render 7', 3: `${NOW} 95 95` },
      [
        ['queue', 'b7ad6b7169203331', 10, 30],
        ['render', 'b7ad6b7169203331', 35, 100],
      ],
    ],
  ])('of %s', (_what, changes, expected) => {
    expect(shapes(changes)).toEqual(expected);
  });

  test('the render is what the worker has got as its parent, and the request has another id', () => {
    const [whole, , render] = spansOf(record(), origin) as ReadableSpan[];
    expect([render?.spanContext().spanId, whole?.spanContext().spanId]).toEqual([RENDER, 'b7ad6b7169203331']);
  });

  test('a method of nobody is no name', () => {
    const [whole] = spansOf(record({ 13: 'BREW' }), origin);
    expect(whole?.name).toBe('HTTP');
    expect(whole?.attributes).toMatchObject({
      'http.request.method': '_OTHER',
      'http.request.method_original': 'BREW',
    });
  });
});

test.each([
  ['x-honeycomb-team=abc', { 'x-honeycomb-team': 'abc' }],
  ['a=b, c=d%20e ,f=g=h', { a: 'b', c: 'd e', f: 'g=h' }],
  ['Authorization=Basic%20abc%3D%3D', { Authorization: 'Basic abc==' }],
  ['', {}],
  ['=b,a b=c,d', {}],
  ['a=b%0d%0aX: y', {}],
  ['a=%zz', { a: '%zz' }],
])('headers of the Secret: %j', (value, expected) => {
  expect(headersOf(value)).toEqual(expected);
});

test.each([
  ['http://collector:4318', 'http://collector:4318/v1/traces'],
  ['https://otlp.example/otlp/', 'https://otlp.example/otlp/v1/traces'],
])('the path of the signal is appended: %s', (endpoint, url) => {
  expect(tracesUrl(endpoint)).toBe(url);
});

describe('an endpoint', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  async function serve(answer: (response: ServerResponse, bytes: number, headers: object) => void): Promise<string> {
    const server = createServer((request, response) => {
      let bytes = 0;
      request.on('data', (chunk) => {
        bytes += chunk.length;
      });
      request.on('end', () => answer(response, bytes, request.headers));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  function sender(endpoint: string, limits = {}) {
    const counts: { [what in Count]?: number } = {};
    const count = (what: Count, spans: number) => {
      counts[what] = (counts[what] ?? 0) + spans;
    };
    const made = new Sender(endpoint, { 'x-key': 'k' }, count, { ...LIMITS, delayMs: 5, exportMs: 400, ...limits });
    return { made, counts };
  }
  const three = () => spansOf(record(), origin);

  test('gets spans in batches, with the headers of the Secret', async () => {
    const seen: unknown[] = [];
    const { made, counts } = sender(
      await serve((response, bytes, headers) => {
        seen.push([bytes > 100, headers]);
        response.end();
      }),
    );
    made.add(three());
    made.add(three());
    await made.flush();
    expect(counts).toEqual({ exported: 6 });
    expect(seen).toEqual([[true, expect.objectContaining({ 'x-key': 'k', 'content-type': 'application/x-protobuf' })]]);
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ['refuses', (response) => response.writeHead(401).end('no key')],
    ['hangs up', (response) => response.destroy()],
    ['never answers', () => {}],
    ['says that there is no end', (response) => response.end('x'.repeat(5 * 2 ** 20))],
  ])('that %s costs its spans, and says why', async (_what, answer) => {
    const { made, counts } = sender(await serve(answer), { connectionMs: 600 });
    const failures: string[] = [];
    const failed = new Promise<void>((resolve) => {
      made.onFailure = (why) => {
        failures.push(why);
        resolve();
      };
    });
    made.add(three());
    await failed;
    expect(counts).toEqual({ failed: 3 });
    expect(failures[0]).toMatch(/./);
  });

  test('writes nothing into a log that a terminal obeys', async () => {
    const { made } = sender(await serve((response) => response.writeHead(401, 'no\u009b2J key').end()));
    const { promise, resolve } = Promise.withResolvers<string>();
    made.onFailure = resolve;
    made.add(three());
    expect(await promise).toBe('no?2J key');
  });

  test('that answers nonsense has got them', async () => {
    const { made, counts } = sender(await serve((response) => response.end('\xff'.repeat(999))));
    made.add(three());
    await made.flush();
    expect(counts).toEqual({ exported: 3 });
  });

  test('that answers a byte at a time has got them, and loses its connection', async () => {
    let cut = false;
    const { made, counts } = sender(
      await serve((response) => {
        const timer = setInterval(() => response.write('x'), 20);
        response.on('close', () => {
          clearInterval(timer);
          cut = true;
        });
      }),
      { connectionMs: 600 },
    );
    made.add(three());
    while (counts.exported === undefined || !cut) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(counts).toEqual({ exported: 3 });
  });

  test('that is not there fills the queue, which has an end', async () => {
    const { made, counts } = sender('http://127.0.0.1:9', { queueMax: 7 });
    for (let i = 0; i < 100; i += 1) made.add(three());
    expect(counts).toEqual({ full: 294 });
    await made.flush();
    made.add(three());
    expect(counts).toEqual({ full: 294, failed: 6 });
  });
});
