/** What the head of a request, or of a response, may be: as much as Node.js itself takes, and bounded by its bytes. */
import { logs } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';

let pod: Pod;
beforeAll(async () => {
  // With X-Break HAProxy gets a name that only its parser can refuse: nginx does not look at those that it sets itself.
  const edit = (_file: string, text: string) =>
    text.replace('  proxy_set_header Forwarded "";\n', '$&  proxy_set_header "X(Y" $http_x_break;\n');
  pod = await Pod.start({ workersPerPod: 1, pooling: { enabled: false } }, { edit });
});
afterAll(() => pod?.stop());

interface Told {
  status: number;
  error?: string;
  body: string;
}

/** What nginx answers to what it refuses. */
const refusal = (status: number, error: string): Told => ({ status, error, body: `{"error":"${error}"}` });
const BAD_REQUEST = refusal(400, 'bad-request');
const TOO_LARGE = refusal(431, 'head-too-large');

/** The answer to these bytes, of Latin-1. */
async function answerToBytes(bytes: string): Promise<Told> {
  const socket = await rawConnection(pod.port(PORTS.http));
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
  });
  socket.write(bytes, 'latin1');
  await until('an answer', () => socket.destroyed);
  const [head = '', body = ''] = text.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), error: /^x-corelane-error: (.*)$/im.exec(head)?.[1], body };
}

/** The answer to a request with these bytes, of Latin-1, in its head. */
function answerTo(target: string, ...lines: string[]): Promise<Told> {
  return answerToBytes([`GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close', ...lines, '', ''].join('\r\n'));
}

/** Headers that the worker got. */
function headersIn({ body }: Told): Record<string, string> {
  return JSON.parse(/\{.*\}/s.exec(body)?.[0] ?? '').headers;
}

/** The line of the access log whose URI begins so. */
function logged(uri: string): Promise<Record<string, unknown>> {
  return until(`${uri} is logged`, async () =>
    (await pod.accessLog()).find((line) => String(line.uri).startsWith(uri)),
  );
}

const numbered = (count: number, value = 'a') => Array.from({ length: count }, (_unused, n) => `X-${n}: ${value}`);

test('200 headers reach the worker, each as it was sent', async () => {
  const answer = await answerTo('/?id=many', ...numbered(200));
  expect(answer.status).toBe(200);
  expect(Object.keys(headersIn(answer)).filter((name) => /^x-\d+$/.test(name))).toHaveLength(200);
});

test.each([
  ['lines that cost more memory than bytes', numbered(300)],
  ['bytes', numbered(200, 'a'.repeat(70))],
  ['bytes of one line', [`Cookie: ${'a'.repeat(9_000)}`]],
])('too many %s are 431, and no worker sees them', async (what, lines) => {
  expect(await answerTo(`/?id=beyond-${what.length}`, ...lines)).toEqual(TOO_LARGE);
  expect(await logged(`/?id=beyond-${what.length}`)).toMatchObject({ status: 431, error: 'head-too-large' });
  expect(pod.events({ id: `beyond-${what.length}` })).toEqual([]);
});

test.each([0x01, 0x08, 0x0b, 0x1b, 0x1f, 0x7f])(
  'control character %i in a value is 400, and no worker sees it',
  async (code) => {
    const line = `Accept: a${String.fromCharCode(code)}b`;
    expect(await answerTo(`/?id=control-${code}`, line)).toMatchObject({ status: 400, error: 'bad-request' });
    expect(pod.events({ id: `control-${code}` })).toEqual([]);
  },
);

test('a tab in a value, and bytes beyond ASCII, are ordinary', async () => {
  expect((await answerTo('/?id=tab', 'Accept: a\tb', 'X-A: caf\xc3\xa9 \xff')).status).toBe(200);
});

test.each([
  ['UTF-8', '/caf\xc3\xa9', '/caf%C3%A9'],
  ['Latin-1', '/caf\xe9', '/caf%E9'],
  ['the last byte there is', '/\xff', '/%FF'],
  ['beside what is encoded', '/a%2fb%C3\xa9', '/a%2fb%C3%A9'],
  ['a query', '/?id=caf\xc3\xa9', 'café'],
  ['after an authority', 'http://a/caf\xc3\xa9', '/caf%C3%A9'],
  ['a query without a path', 'http://a?id=caf\xc3\xa9', 'café'],
])('bytes beyond ASCII in a target: %s', async (_what, target, id) => {
  const { status, body } = await answerTo(target);
  expect([status, JSON.parse(Buffer.from(/\{.*\}/s.exec(body)?.[0] ?? '{}', 'latin1').toString()).id]).toEqual([
    200,
    id,
  ]);
});

test.each([
  ['a blank', '/a b'],
  ['DEL', '/a\x7f'],
  ['a control character', '/a\x01'],
  ['NUL', '/a\0\xe9'],
])('%s in a target is refused as it was', async (_what, target) => {
  expect((await answerTo(target)).status).toBe(400);
});

test('what becomes longer than HAProxy reads is 431, and says so', async () => {
  const answer = await answerTo(`/?id=longer&q=${'\xe9'.repeat(6_000)}`);
  expect(answer).toMatchObject({ status: 431, error: 'head-too-large' });
  // It has taken no memory for that.
  expect((await logged('/?id=longer')).uri).not.toContain('%E9');
  expect((await answerTo(`/?id=as-long&q=${'\xe9'.repeat(4_000)}`)).status).toBe(200);
});

test('codes that a terminal obeys are in no log, whatever becomes of the request', async () => {
  const codes = '\xc2\x9b2J';
  const refused = [`GET /refused${codes} HTTP/1.1`, '', ''];
  const large = [`POST /large${codes} HTTP/1.1`, 'Host: a', 'Content-Length: 99999999999', '', ''];
  const referer = ['POST /referer HTTP/1.1', 'Host: a', `Referer: ${codes}`, 'Content-Length: 99999999999', '', ''];
  const broken = [`Referer: ${codes}`, 'Transfer-Encoding: chunked', '', 'zz', ''];
  const host = ['POST /host HTTP/1.1', `Host: a${codes}`, ...broken];
  const trace = [`TRACE /trace${codes} HTTP/1.1`, 'Host: a', ...broken];
  for (const lines of [refused, large, referer, host, trace]) {
    const socket = await rawConnection(pod.port(PORTS.http));
    socket.resume().end(lines.join('\r\n'), 'latin1');
    await until('an answer', () => socket.destroyed);
  }
  expect((await answerTo(`/?id=after-codes&q=${codes}`)).status).toBe(200);
  const said = await until('they are logged', async () => {
    const text = await logs(pod.nginx);
    const uris = ['/refused', '/large', '/referer', '/host', '/trace', '/?id=after-codes'];
    return uris.every((uri) => text.includes(`"uri":"${uri}`)) && text;
  });
  expect(said).toContain('too large body');
  expect(said).toContain('invalid chunked body');
  expect(said).not.toContain('\u009b');
});

test('a head of 14 kB reaches the worker, one of 15 kB is told what is wrong with it', async () => {
  expect((await answerTo('/?id=fourteen', `X: ${'a'.repeat(7_000)}`, `Y: ${'a'.repeat(7_000)}`)).status).toBe(200);
  const beyond = await answerTo('/?id=fifteen', `X: ${'a'.repeat(7_500)}`, `Y: ${'a'.repeat(7_500)}`);
  expect(beyond).toMatchObject({ status: 431, error: 'head-too-large' });
});

describe('names of headers', () => {
  test('any token reaches the worker', async () => {
    const names = ['api_key', 'x.trace', "a!#$%&'*+.^_`|~9", 'a'.repeat(255)];
    const answer = await answerTo('/?id=tokens', ...names.map((name, n) => `${name}: ${n}`));
    expect(answer.status).toBe(200);
    expect(headersIn(answer)).toMatchObject(Object.fromEntries(names.map((name, n) => [name, `${n}`])));
    expect(await logged('/?id=tokens')).toMatchObject({ removedHeaders: '' });
  });

  test('one that reads like a header of the proxies does not, and the log has its name', async () => {
    const names = [
      'X_Forwarded_For',
      'X-Forwarded_Proto',
      'x.real~ip',
      'Content_Length',
      'X_Corelane_Ask',
      'X_Request-ID',
    ];
    const answer = await answerTo('/?id=alike', ...names.map((name) => `${name}: forged`), 'X-Corelane-Removed: own');
    expect(answer.status).toBe(200);
    expect(answer.body).not.toMatch(/forged|removed/i);
    expect(await logged('/?id=alike')).toMatchObject({ removedHeaders: names.join(', ') });
  });

  test.each([
    ['no token', 'X(Y)'],
    ['beyond ASCII', 'X-\xe4'],
    ['longer than HAProxy takes', 'a'.repeat(256)],
  ])('one that is %s is 400, and says so', async (what, name) => {
    const id = `named-${what.length}`;
    expect(await answerTo(`/?id=${id}`, `${name}: 1`)).toEqual(BAD_REQUEST);
    expect(await logged(`/?id=${id}`)).toMatchObject({ status: 400, error: 'bad-request' });
    expect(pod.events({ id })).toEqual([]);
  });
});

const CHUNKED = 'Host: a\r\nTransfer-Encoding: chunked';
/** Requests as bytes, each with what is to be logged of it: method, and the beginning of the URI. */
const REFUSED: [what: string, bytes: string, method: string, uri: string][] = [
  ['a percent sign at the end', 'GET /search/100% HTTP/1.1\r\nHost: a', 'GET', '/search/100%'],
  ['a percent sign before letters', 'GET /a%zz HTTP/1.1\r\nHost: a', 'GET', '/a%zz'],
  ['an encoded NUL', 'GET /a%00b HTTP/1.1\r\nHost: a', 'GET', '/a%00b'],
  ['a path above the root', 'GET /.. HTTP/1.1\r\nHost: a', 'GET', '/..'],
  ['a blank', 'GET /a b HTTP/1.1\r\nHost: a', 'GET', '/a b'],
  ['a fragment', 'GET /a#b HTTP/1.1\r\nHost: a\r\nConnection: close', 'GET', '/a#b'],
  ['no path', 'OPTIONS * HTTP/1.1\r\nHost: a', 'OPTIONS', '*'],
  ['small letters in a method', 'get /small HTTP/1.1\r\nHost: a', 'get', '/small'],
  ['another version', 'GET /version HTTP/9.9\r\nHost: a', 'GET', '/version'],
  ['CONNECT', 'CONNECT a:443 HTTP/1.1\r\nHost: a', 'CONNECT', 'a:443'],
  ['TRACE', 'TRACE /traced HTTP/1.1\r\nHost: a', 'TRACE', '/traced'],
  ['an encoding of the body', 'POST /gzip HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip', 'POST', '/gzip'],
  [
    'a body that is still to come',
    'POST /expects HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: gzip',
    'POST',
    '/expects',
  ],
  ['a folded line', 'GET /folded HTTP/1.1\r\nHost: a\r\nX: a\r\n b', 'GET', '/folded'],
  ['a broken chunk', `POST /?id=refused-chunk HTTP/1.1\r\n${CHUNKED}\r\n\r\nzz`, 'POST', '/?id=refused-chunk'],
  [
    'a broken chunk behind a name that is none',
    `POST /?id=refused-both HTTP/1.1\r\n${CHUNKED}\r\nX(Y): 1\r\n\r\nzz`,
    'POST',
    '/?id=refused-both',
  ],
];
test.each(REFUSED)('what nginx refuses has a reason, and a line in the log: %s', async (_what, bytes, method, uri) => {
  const before = pod.events({ event: 'begin' }).length;
  expect(await answerToBytes(`${bytes}\r\n\r\n`)).toEqual(BAD_REQUEST);
  expect(await logged(uri)).toMatchObject({ status: 400, error: 'bad-request', method, uri });
  expect(pod.events({ event: 'begin' })).toHaveLength(before);
});

test('a line that is too long is 431', async () => {
  const bytes = `GET /long-line/${'a'.repeat(9_000)} HTTP/1.1\r\nHost: a\r\n\r\n`;
  expect(await answerToBytes(bytes)).toEqual(TOO_LARGE);
  expect(await logged('/long-line/')).toMatchObject({ status: 431, error: 'head-too-large', method: 'GET' });
});

test('what HAProxy refuses before any rule sees it has a reason', async () => {
  expect(await answerTo('/?id=parser', 'X-Break: 1')).toMatchObject({ status: 400, error: 'bad-request' });
  // An application's own 400 is its own.
  const own = await answerTo('/?id=parser-own&status=400');
  expect([own.status, own.error]).toEqual([400, undefined]);
});

test('a response may have 300 headers; its bytes are what counts', async () => {
  const named = (count: number, value: string) =>
    Array.from({ length: count }, (_unused, n) => `&header=y${n}:${value}`).join('');
  const { status, headers } = await pod.get(`/?id=response${named(300, 'a')}`);
  expect(status).toBe(200);
  expect(Object.keys(headers).filter((name) => /^y\d+$/.test(name))).toHaveLength(300);
  expect(await pod.get(`/?id=response-beyond&head=14000${named(200, 'a')}`)).toMatchObject({
    status: 502,
    headers: { 'x-corelane-error': 'bad-response' },
  });
});

describe('a redirect of the program', () => {
  const OWN = `localhost:${PORTS.firstWorker}`;
  const redirect = async (location: string) => {
    const header = encodeURIComponent(`location:${location}`);
    const { status, headers } = await pod.get(`/?id=redirect&status=307&header=${header}`);
    return [status, headers.location];
  };

  test.each([
    [`http://${OWN}/a?b=//c#d`, '/a?b=//c#d'],
    [`https://127.0.0.1:${PORTS.firstWorker}`, '/'],
  ])('to the address on which the program listens leads to the path on the site: %s', async (location, expected) => {
    expect(await redirect(location)).toEqual([307, expected]);
  });

  test.each([
    // A program of the client's own machine (RFC 8252).
    `http://localhost:${PORTS.firstWorker + 1}/callback?code=1`,
    `http://shop.example:${PORTS.firstWorker}/`,
    `http://${OWN}//evil.example/`,
    `http://${OWN}@evil.example/`,
    '/a',
  ])('to somewhere else stays as it is: %s', async (location) => {
    expect(await redirect(location)).toEqual([307, location]);
  });
});
