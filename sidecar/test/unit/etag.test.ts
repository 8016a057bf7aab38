/** ETags of responses, whatever a program does to them: with node:http, and read as bytes. */
import { once } from 'node:events';
import http from 'node:http';
import { createRequire } from 'node:module';
import net, { type AddressInfo } from 'node:net';
import { runInNewContext } from 'node:vm';

type Hook = (request: http.IncomingMessage, response: http.ServerResponse) => void;
type Render = (response: http.ServerResponse) => void;
const require = createRequire(import.meta.url);
const { keepLength }: { keepLength: Hook } = require('../../runtime/length.cjs');
const { giveTag, matches, BYTES_MAX } = require('../../runtime/etag.cjs') as {
  giveTag: Hook;
  matches(condition: unknown, tag: string): boolean;
  BYTES_MAX: number;
};

let render: Render;
let failure: unknown;
const server = http.createServer((request, response) => {
  keepLength(request, response);
  if (request.url === '/next') return response.end('next');
  giveTag(request, response);
  try {
    render(response);
  } catch (error) {
    failure = error;
    request.socket.destroy();
  }
});
beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

interface Seen {
  status: number;
  /** In small letters. */
  head: string;
  tag: string | undefined;
  body: string;
  next: 'next' | 'closed';
}

/** A request, and another one behind it on the same connection. */
async function ask(program: Render, lines: string[] = [], method = 'GET', version = '1.1'): Promise<Seen> {
  render = program;
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  let received = '';
  socket.setEncoding('latin1').on('data', (text) => {
    received += text;
  });
  socket.once('data', () => socket.write('GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'));
  socket.on('error', () => {}); // a reset is an end, too
  socket.write(`${[`${method} / HTTP/${version}`, 'Host: a', ...lines].join('\r\n')}\r\n\r\n`);
  await once(socket, 'close');
  const found = /^HTTP\/1\.1 ([0-9]{3})[\s\S]*?\r\n\r\n/.exec(received);
  const head = found?.[0] ?? '';
  const [body = '', next = ''] = received.slice(head.length).split(/HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)*\r\n/);
  const tag = /^etag: (.*)$/im.exec(head)?.[1];
  return {
    ...{ status: Number(found?.[1]), head: head.toLowerCase(), tag, body },
    next: next === 'next' ? 'next' : 'closed',
  };
}

const TAG = /^W\/"[\w-]{32}"$/;
const HTML = { 'Content-Type': 'text/html; charset=utf-8' };
const whole: Render = (response) => response.writeHead(200, HTML).end('<p>page</p>');
const tagOf = async (program: Render) => (await ask(program)).tag ?? '';

const tagged: [name: string, program: Render][] = [
  ['writeHead with an object', whole],
  [
    'writeHead with a raw list',
    (response) => response.writeHead(200, ['Content-Type', 'text/html']).end('<p>page</p>'),
  ],
  [
    'writeHead with a reason and pairs',
    (response) => response.writeHead(200, 'Fine', [['content-type', 'text/html']] as never).end('<p>page</p>'),
  ],
  ['setHeader', (response) => response.setHeader('content-type', 'text/html').end('<p>page</p>')],
  ['both', (response) => response.setHeader('content-type', 'text/plain').writeHead(200, HTML).end('<p>page</p>')],
  ['a length', (response) => response.writeHead(200, { ...HTML, 'Content-Length': 11 }).end('<p>page</p>')],
  ['bytes', (response) => response.writeHead(200, HTML).end(Buffer.from('<p>page</p>'))],
  [
    'bytes that are no Buffer',
    (response) => response.writeHead(200, HTML).end(new TextEncoder().encode('<p>page</p>')),
  ],
  ['base64', (response) => response.writeHead(200, HTML).end('PHA+cGFnZTwvcD4=', 'base64')],
  ['latin1', (response) => response.writeHead(200, HTML).end('<p>page</p>', 'latin1')],
  ['a callback', (response) => response.writeHead(200, HTML).end('<p>page</p>', () => {})],
  ['an encoding and a callback', (response) => response.writeHead(200, HTML).end('<p>page</p>', 'utf8', () => {})],
  [
    'a length in writeHead, and chunks',
    (response) => response.writeHead(200, { ...HTML, 'Transfer-Encoding': 'chunked' }).end('<p>page</p>'),
  ],
  [
    'a library that says headers at the last moment',
    (response) => {
      const { writeHead } = response;
      response.writeHead = ((...args: [number]) => {
        response.setHeader('content-type', 'text/html');
        return writeHead.apply(response, args);
      }) as never;
      response.end('<p>page</p>');
    },
  ],
  [
    'a library that wraps write and end, and compresses nothing',
    (response) => {
      const { end } = response;
      response.end = ((text: string) => end.call(response, text, 'utf8')) as never;
      response.setHeader('content-type', 'text/html').end('<p>page</p>');
    },
  ],
  [
    'a second end',
    (response) => {
      response.on('error', () => {});
      response.writeHead(200, HTML).end('<p>page</p>');
      response.end('more');
    },
  ],
];

describe.each(tagged)('with %s', (_name, program) => {
  test('there is a tag of the bytes, and the next request is answered', async () => {
    const seen = await ask(program);
    expect(seen.tag).toMatch(TAG);
    expect(seen.tag).toBe(await tagOf(whole));
    expect([seen.status, seen.next]).toEqual([200, 'next']);
    expect(seen.body).toMatch(/^(?:b\r\n)?<p>page<\/p>(?:\r\n0\r\n\r\n)?$/);
    expect(seen.head.match(/^(content-length|transfer-encoding):/gm)).toHaveLength(1);
  });

  test('who has it gets 304, no body, nothing that is about one, and the next request is answered', async () => {
    const seen = await ask(program, [`If-None-Match: ${await tagOf(whole)}`]);
    expect([seen.status, seen.body, seen.next, seen.tag]).toEqual([304, '', 'next', await tagOf(whole)]);
    expect(seen.head).toMatch(/^http\/1.1 304 not modified\r\n/);
    expect(seen.head).not.toMatch(/^(content-|transfer-encoding)/m);
    expect(seen.head).toMatch(/^date: /m);
  });

  test('HEAD has the tag of GET, and 304', async () => {
    const seen = await ask(program, [], 'HEAD');
    expect([seen.status, seen.body, seen.next, seen.tag]).toEqual([200, '', 'next', await tagOf(whole)]);
    const again = await ask(program, [`If-None-Match: ${seen.tag}`], 'HEAD');
    expect([again.status, again.body, again.next]).toEqual([304, '', 'next']);
  });
});

test('a 304 keeps what caches need, and what is about the page and not its bytes', async () => {
  const kept = [
    ...['Cache-Control: max-age=1, private', 'Content-Location: /a', 'Expires: 0', 'Vary: Cookie', 'Vary: Accept'],
    ...["Content-Security-Policy: default-src 'self'", 'Set-Cookie: a=1', 'Set-Cookie: b=2', 'Link: </x>; rel=preload'],
  ];
  const dropped = ['Content-Type: text/html', 'Content-Language: de', 'Content-Encoding: br', 'Content-Length: 1'];
  const program: Render = (response) =>
    response
      .writeHead(
        200,
        [...kept, ...dropped].flatMap((line) => line.split(/: (.*)/s).slice(0, 2)),
      )
      .end('x');
  const { tag } = await ask(program);
  const { status, head } = await ask(program, [`If-None-Match: ${tag}`]);
  expect(status).toBe(304);
  for (const line of kept) expect(head).toContain(`\r\n${line.toLowerCase()}\r\n`);
  for (const line of dropped) expect(head).not.toContain(`\r\n${line.toLowerCase().split(':')[0]}:`);
});

test('another page has another tag, and all are equally long', async () => {
  const page =
    (text: string): Render =>
    (response) =>
      response.writeHead(200, HTML).end(text);
  const tags: string[] = [];
  for (const text of ['a', 'b', 'x'.repeat(100_000)]) tags.push(await tagOf(page(text)));
  expect(new Set(tags).size).toBe(3);
  for (const tag of tags) expect(tag).toMatch(TAG);
  expect((await ask(page('a'), [`If-None-Match: ${tags[1]}`])).status).toBe(200);
});

test.each([
  ...['text/html', 'TEXT/HTML ;charset=x', 'text/x-component', 'application/json', 'application/ld+json'],
  ...['application/xhtml+xml', 'image/svg+xml'],
])('%s has a tag', async (type) => {
  expect(await tagOf((response) => response.writeHead(200, { 'Content-Type': type }).end('x'))).toMatch(TAG);
});

const untouched: [name: string, program: Render][] = [
  ['no type', (response) => response.end('x')],
  ['a picture', (response) => response.writeHead(200, { 'Content-Type': 'image/png' }).end('x')],
  ['Server-Sent Events', (response) => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('x')],
  ['another status', (response) => response.writeHead(404, HTML).end('x')],
  ['a status of its own', (response) => response.writeHead(203, HTML).end('x')],
  ['a part', (response) => response.writeHead(200, { ...HTML, 'Content-Range': 'bytes 0-0/1' }).end('x')],
  ['no-store', (response) => response.writeHead(200, { ...HTML, 'Cache-Control': 'private,No-Store' }).end('x')],
  [
    'no-store in a second line',
    (response) => response.writeHead(200, { ...HTML, 'Cache-Control': ['private', 'no-store , a'] }).end('x'),
  ],
  ['a stream', (response) => response.writeHead(200, HTML).write('x') && response.end('y')],
  ['a stream without an end of its own', (response) => response.writeHead(200, HTML).write('x') && response.end()],
  [
    'pieces that wait together, head and all',
    (response) => {
      response.cork();
      response.writeHead(200, HTML).write('x');
      response.end('y');
    },
  ],
  [
    'the same, by a library that wraps write',
    (response) => {
      const { write } = response;
      response.write = ((text: string) => write.call(response, text, 'utf8')) as never;
      response.cork();
      response.writeHead(200, HTML).write('x');
      response.end('y');
    },
  ],
  ['a head that has gone', (response) => response.writeHead(200, HTML).flushHeaders() ?? response.end('x')],
  ['nothing', (response) => response.writeHead(200, HTML).end()],
  ['an empty text', (response) => response.writeHead(200, HTML).end('')],
  [
    'a trailer',
    (response) => response.writeHead(200, { ...HTML, Trailer: 'a' }).addTrailers({ a: 'b' }) ?? response.end('x'),
  ],
  ['what is too large', (response) => response.writeHead(200, HTML).end(Buffer.alloc(BYTES_MAX + 1, 'x'))],
  ['a text that is too large in bytes', (response) => response.writeHead(200, HTML).end('ü'.repeat(BYTES_MAX / 2 + 1))],
  ['a length that is too small', (response) => response.writeHead(200, { ...HTML, 'Content-Length': 1 }).end('xyz')],
];
test.each(untouched)('no tag, and no 304, for %s', async (_name, program) => {
  const plain = await ask(program, ['If-None-Match: *']);
  expect(plain.tag).toBeUndefined();
  expect(plain.status).not.toBe(304);
  expect(plain.next).toBe('next');
});

test.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('nor for a %s', async (method) => {
  const { status, tag } = await ask(whole, ['If-None-Match: *', 'Content-Length: 0'], method);
  expect([status, tag]).toEqual([200, undefined]);
});

test('what is as large as can be has one', async () => {
  expect(await tagOf((response) => response.writeHead(200, HTML).end(Buffer.alloc(BYTES_MAX, 'x')))).toMatch(TAG);
});

test('a tag of the program stays, and so does its answer', async () => {
  const own: Render = (response) => response.writeHead(200, { ...HTML, ETag: '"own"' }).end('x');
  const { status, tag, body } = await ask(own, ['If-None-Match: "own"']);
  expect([status, tag]).toEqual([200, '"own"']);
  expect(body).toContain('x');
  const its304 = await ask((response) => response.writeHead(304, { ETag: '"own"' }).end(), ['If-None-Match: "own"']);
  expect([its304.status, its304.tag, its304.next]).toEqual([304, '"own"', 'next']);
});

describe('If-None-Match', () => {
  const status = async (...lines: string[]) => (await ask(whole, lines)).status;
  test.each([
    [304, (tag: string) => [`If-None-Match: ${tag}`]],
    [304, (tag: string) => [`If-None-Match: ${tag.slice(2)}`]],
    [304, (tag: string) => [`If-None-Match: "a", W/"b" ,${tag},"c"`]],
    [304, (tag: string) => ['If-None-Match: "a"', `if-none-match: ${tag}`]],
    [304, () => ['If-None-Match: *']],
    [304, () => ['If-None-Match:  \t* ']],
    [304, (tag: string) => [`If-None-Match: ${tag}`, 'If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT']],
    [304, (tag: string) => [`If-None-Match: ${tag}`, 'Cache-Control: no-cache']],
    [200, () => ['If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT']],
    [200, () => ['If-None-Match: "a"', 'If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT']],
    [200, () => ['If-None-Match: "*"']],
    [200, () => ['If-None-Match: "a", *']],
    [200, () => ['If-None-Match:']],
    [200, () => ['If-None-Match: ""']],
    [200, (tag: string) => [`If-None-Match: ${tag.slice(2).replaceAll('"', '')}`]],
    [200, (tag: string) => [`If-None-Match: ${tag.slice(0, -2)}"`]],
    [200, (tag: string) => [`If-None-Match: W/"x${tag.slice(3)}`]],
    [200, (tag: string) => [`If-None-Match: ${tag.toLowerCase()}`]],
    // The program may have more to say to these.
    [200, (tag: string) => [`If-None-Match: ${tag}`, 'If-Match: "a"']],
    [200, (tag: string) => [`If-None-Match: ${tag}`, 'If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT']],
  ])('%d: %#', async (expected, lines) => {
    expect(await status(...lines(await tagOf(whole)))).toBe(expected);
  });

  test('which a program has taken away is not looked at', async () => {
    const program: Render = (response) => {
      delete response.req.headers['if-none-match'];
      whole(response);
    };
    expect((await ask(program, ['If-None-Match: *'])).status).toBe(200);
  });

  /** Milliseconds, and with an expression that backtracks a second each; they come again and again. */
  test.each([
    ['letters of weak tags', 'W/'.repeat(8_000)],
    ['quotes', '"'.repeat(16_000)],
    ['no end', `"${'a'.repeat(16_000)}`],
    ['thousands of tags', 'W/"a",'.repeat(3_000)],
    ['spaces', ' '.repeat(16_000)],
  ])('%s take no time', (_name, value) => {
    const tag = `W/"${'a'.repeat(32)}"`;
    const run = () => {
      for (let n = 0; n < 1_000; n += 1) if (matches(value, tag)) throw new Error('it matches');
    };
    runInNewContext('run()', { run }, { timeout: 10_000 });
    expect(matches(`${value}", ${tag}`, tag)).toBe(true);
  });

  test.each([undefined, null, 5, ['*'], {}])('what is no text: %j', (value) => {
    expect(matches(value, 'W/"a"')).toBe(false);
  });
});

test('HTTP/1.0 has both, and its connection ends', async () => {
  const { tag, status } = await ask(whole, [], 'GET', '1.0');
  expect([status, tag]).toEqual([200, await tagOf(whole)]);
  const again = await ask(whole, [`If-None-Match: ${tag}`], 'GET', '1.0');
  expect([again.status, again.body, again.next]).toEqual([304, '', 'closed']);
});

test.each([
  ['without a callback', (response: http.ServerResponse) => response.end('x')],
  ['with one', (response: http.ServerResponse, done: () => void) => response.end('x', done)],
])('the program hears that a 304 has been sent: %s', async (name, end) => {
  const heard: string[] = [];
  const program: Render = (response) => {
    response.on('finish', () => heard.push(`finish ${response.statusCode} ${response.headersSent}`));
    response.setHeader('Content-Type', 'text/html');
    end(response, () => heard.push('callback'));
    expect(response.writableEnded).toBe(true);
  };
  expect((await ask(program, ['If-None-Match: *'])).status).toBe(304);
  expect(heard).toContain('finish 304 true');
  expect(heard.includes('callback')).toBe(name === 'with one');
});

test.each<[name: string, program: Render, code: string]>([
  ['an encoding that there is not', (response) => response.end('x', 'no-such' as never), 'ERR_UNKNOWN_ENCODING'],
  ['what is no body', (response) => response.end({} as never), 'ERR_INVALID_ARG_TYPE'],
  [
    'a status that there is not',
    (response) => Object.assign(response, { statusCode: 99 }).end('x'),
    'ERR_HTTP_INVALID_STATUS_CODE',
  ],
])('an error of the program is that of Node.js: %s', async (_name, program, code) => {
  await ask(program, ['If-None-Match: *']);
  expect(failure).toMatchObject({ code });
});

test('a response whose strict length is announced is a 304 all the same', async () => {
  const program: Render = (response) => {
    response.strictContentLength = true;
    response.writeHead(200, { ...HTML, 'Content-Length': 1 }).end('x');
  };
  expect((await ask(program, ['If-None-Match: *'])).status).toBe(304);
});

test('the answers to requests that came together keep their order', async () => {
  render = whole;
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  let received = '';
  socket.on('data', (text) => {
    received += text;
  });
  const one = 'GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n';
  socket.write(`${one}\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n${one}Connection: close\r\n\r\n`);
  await once(socket, 'close');
  expect(received.match(/HTTP\/1\.1 ([0-9]+)/g)).toEqual(['HTTP/1.1 304', 'HTTP/1.1 200', 'HTTP/1.1 304']);
});
