/** What the head of a request, or of a response, may be: more than Node.js itself takes, and bounded by its bytes. */
import http from 'node:http';
import { logs } from '../../e2e/harness/engine/docker.ts';
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';

let pod: Pod;
beforeAll(async () => {
  // With X-Break HAProxy gets a name that only its parser can refuse: nginx does not look at those that it sets itself.
  const edit = (_file: string, text: string) =>
    text
      .replace('  proxy_set_header Forwarded "";\n', '$&  proxy_set_header "X(Y" $http_x_break;\n')
      .replace(/corelane_large_heads [0-9]+/, 'corelane_large_heads 2');
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
  ['bytes', numbered(200, 'a'.repeat(350))],
  ['bytes of one line', [`Cookie: ${'a'.repeat(33_000)}`]],
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

test('a Referer with a control character in UTF-8 is one that Node.js takes', async () => {
  const answer = await answerTo('/?id=referer', 'Referer: http://a/\xc2\x85');
  expect(answer.status).toBe(200);
  expect(headersIn(answer).referer).toBe(Buffer.from('http://a/\u00c2\u0085').toString('latin1'));
});

test('trailers of a request go no further than nginx, and none of them becomes a header', async () => {
  const lines = ['POST /?id=trailers HTTP/1.1', 'Host: a', 'Connection: close', 'Transfer-Encoding: chunked'];
  const trailers = ['X-Sum: 1', 'X-Forwarded-Proto: https', 'Content-Length: 50'];
  const bytes = [...lines, 'Trailer: X-Sum', '', '4', 'body', '0', ...trailers, '', ''].join('\r\n');
  const answer = await answerToBytes(bytes);
  expect(answer.status).toBe(200);
  const headers = headersIn(answer);
  // A body with a length has no trailers.
  expect(headers).toMatchObject({ 'content-length': '4', 'x-forwarded-proto': 'http' });
  expect([headers['transfer-encoding'], headers['x-sum']]).toEqual([undefined, undefined]);
  expect(pod.events({ event: 'begin', id: 'trailers' })).toHaveLength(1);
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
  const answer = await answerTo(`/?id=longer&q=${'\xe9'.repeat(25_000)}`);
  expect(answer).toMatchObject({ status: 431, error: 'head-too-large' });
  // It has taken no memory for that.
  expect((await logged('/?id=longer')).uri).not.toContain('%E9');
  expect((await answerTo(`/?id=as-long&q=${'\xe9'.repeat(20_000)}`)).status).toBe(200);
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

test('a head of 64 KiB reaches the worker, a larger one is told what is wrong with it', async () => {
  const large = (bytes: number) => [30_000, 30_000, bytes].map((each, n) => `X-${n}: ${'a'.repeat(each)}`);
  expect((await answerTo('/?id=largest', ...large(5_000))).status).toBe(200);
  expect(await answerTo('/?id=larger', ...large(5_600))).toEqual(TOO_LARGE);
  expect(await logged('/?id=larger')).toMatchObject({ status: 431, error: 'head-too-large' });
  expect(pod.events({ id: 'larger' })).toEqual([]);
});

const cookies = (count: number, bytes: number) =>
  Array.from({ length: count }, (_unused, n) => `c${n}=${'a'.repeat(bytes)}`).join('; ');
const parameters = (count: number) => Array.from({ length: count }, (_unused, n) => `p${n}=${n}`).join('&');
test.each<[what: string, query: string, headers: Record<string, string>]>([
  ['a Cookie line of 8,190 bytes', '', { cookie: 'a'.repeat(8_182) }],
  ['four cookies of 3,900 bytes', '', { cookie: cookies(4, 3_900) }],
  ['a target of 9,000 bytes', `&q=${'a'.repeat(9_000)}`, {}],
  ['2,800 parameters', `&${parameters(2_800)}`, {}],
  ['a line of 32,000 bytes', '', { authorization: 'a'.repeat(32_000) }],
  ['60 kB in two lines', '', { 'x-a': 'a'.repeat(30_000), 'x-b': 'b'.repeat(30_000) }],
  // nginx moves a line that does not fit: one buffer for two of these would not do.
  ['60 kB in three lines', '', { 'x-a': 'a'.repeat(20_000), 'x-b': 'b'.repeat(20_000), 'x-c': 'c'.repeat(20_000) }],
])('%s: the worker gets it', async (what, query, sent) => {
  const id = what.replaceAll(/\W/g, '-');
  const answer = await pod.get(`/?id=${id}${query}`, { headers: sent });
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.body).headers).toMatchObject(sent);
});

test.each(['GET', 'POST'])('%s: the second try has the whole head', async (method) => {
  const sent = { 'x-a': 'a'.repeat(30_000), 'x-b': 'b'.repeat(30_000) };
  const answer = await pod.get(`/?die=once&id=again-${method}`, { method, headers: sent });
  // A POST that a worker had begun has none.
  expect([answer.status, answer.headers['x-corelane-error']]).toEqual(
    method === 'GET' ? [200, undefined] : [502, 'worker-died'],
  );
  if (method === 'GET') expect(JSON.parse(answer.body).headers).toMatchObject(sent);
  await until('the worker is back', () => pod.isUp(0));
});

test('so many requests have a large head at a time, and the others do not notice', async () => {
  const headers = { 'x-large': 'a'.repeat(20_000) };
  const large = [pod.get('/?hold=1&id=large-1', { headers })];
  await pod.begun('large-1');
  large.push(pod.get('/?id=large-2', { headers }));
  await pod.queued(1);
  const refused = await pod.get('/?id=large-3', { headers });
  expect([refused.status, refused.headers['x-corelane-error'], refused.headers['retry-after']]).toEqual([
    503,
    'heads-full',
    '1',
  ]);
  // nginx drops the blanks, and keeps the buffers that they were in.
  const blanks = ['X-A', 'X-B'].map((name) => `${name}: ${' '.repeat(20_000)}a`);
  expect(await answerTo('/?id=blanks', ...blanks)).toEqual(refusal(503, 'heads-full'));
  const small = pod.get('/?id=small', { headers: { 'x-small': 'a'.repeat(13_000) } });
  await pod.queued(2);
  pod.release('large-1');
  expect((await Promise.all([...large, small])).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect([...pod.events({ id: 'large-3' }), ...pod.events({ id: 'blanks' })]).toEqual([]);
});

describe('names of headers', () => {
  test('any token reaches the worker', async () => {
    const longer = ['x_host_name', 'x_request_source', 'trailer_park', 'forwarded_by', 'proxy_id'];
    const names = ['api_key', 'x.trace', ...longer, "a!#$%&'*+.^_`|~9", 'a'.repeat(255)];
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
      'X_Request_ID',
      'X-Request_Start',
      'X_Host',
      'True.Client-IP',
      'CF_Connecting_IPv6',
      'Front_End_Https',
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

test('HTTP/2 is refused, and the log has its method', async () => {
  expect(await answerToBytes('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')).toEqual(BAD_REQUEST);
  const line = await until('it is logged', async () => (await pod.accessLog()).find(({ method }) => method === 'PRI'));
  expect(line).toMatchObject({ status: 400, error: 'bad-request', uri: '*' });
});

test('a line that is too long is 431', async () => {
  const bytes = `GET /long-line/${'a'.repeat(40_000)} HTTP/1.1\r\nHost: a\r\n\r\n`;
  expect(await answerToBytes(bytes)).toEqual(TOO_LARGE);
  expect(await logged('/long-line/')).toMatchObject({ status: 431, error: 'head-too-large', method: 'GET' });
});

test('what HAProxy refuses before any rule sees it has a reason', async () => {
  expect(await answerTo('/?id=parser', 'X-Break: 1')).toMatchObject({ status: 400, error: 'bad-request' });
  // An application's own 400 is its own.
  const own = await answerTo('/?id=parser-own&status=400');
  expect([own.status, own.error]).toEqual([400, undefined]);
});

describe('a response', () => {
  const told = ({ status, headers }: Answer) => [status, headers['x-corelane-error']];
  const links = Array.from({ length: 220 }, (_unused, n) => `</_app/immutable/chunks/${'a'.repeat(40)}-${n}.js>`);
  const large = [1, 2, 3, 4].map((n) => `c${n}=${'a'.repeat(4_000)}`);

  test('may have 300 headers: its bytes are what counts', async () => {
    const named = Array.from({ length: 300 }, (_unused, n) => `&header=y${n}:a`).join('');
    const { status, headers } = await pod.get(`/?id=response${named}`);
    expect(status).toBe(200);
    expect(Object.keys(headers).filter((name) => /^y\d+$/.test(name))).toHaveLength(300);
  });

  test('of many headers is passed on or 502, and never rendered twice', async () => {
    const named = (count: number, bytes: number) =>
      Array.from({ length: count }, (_unused, n) => `&header=y${n}:${'a'.repeat(bytes)}`).join('');
    // As many headers as there may be in the largest head, and one of too many.
    for (const [id, status, query] of [
      ['most-headers', 200, `${named(480, 1)}&head=60000`],
      ['too-many-headers', 502, named(600, 1)],
    ] as const) {
      const answer = await pod.get(`/?id=${id}${query}`);
      expect([id, answer.status]).toEqual([id, status]);
      expect(pod.events({ event: 'begin', id })).toHaveLength(1);
    }
  });

  test('may have a Link of 220 entries, and four large cookies', async () => {
    const link = links.join(', ');
    expect(link.length).toBeGreaterThan(16_000);
    const { status, headers } = await pod.get(`/?id=links&header=${encodeURIComponent(`Link:${link}`)}`);
    expect([status, headers.link]).toEqual([200, link]);
    const set = await pod.get(`/?id=cookies&${large.map((cookie) => `header=Set-Cookie:${cookie}`).join('&')}`);
    expect([set.status, set.headers['set-cookie']]).toEqual([200, large]);
  });

  test('whose head ends where its buffer ends is whole', async () => {
    const agent = new http.Agent({ keepAlive: true });
    // With what the proxies add, some 250 bytes, one of these heads has 16,384 bytes.
    for (let bytes = 15_950; bytes < 16_250; bytes += 1) {
      const { status, body } = await pod.get(`/?id=fills&head=${bytes}`, { agent });
      expect([bytes, status, JSON.parse(body).id]).toEqual([bytes, 200, 'fills']);
    }
    agent.destroy();
  });

  test('may have a head of 60 kB', async () => {
    const { status, headers } = await pod.get('/?id=response-60&head=60000');
    expect([status, headers['x-long']]).toEqual([200, 'x'.repeat(60_000)]);
  });

  // HAProxy's parser could read the first of them, but not with what the stages add.
  test.each([66_000, 68_000, 70_000, 200_000])('with a head of %d bytes is 502, once', async (bytes) => {
    const id = `response-${bytes}`;
    for (const method of ['GET', 'POST']) {
      expect(told(await pod.get(`/?id=${id}-${method}&head=${bytes}`, { method }))).toEqual([502, 'bad-response']);
      expect(pod.events({ event: 'begin', id: `${id}-${method}` })).toHaveLength(1);
    }
    expect(await logged(`/?id=${id}-GET`)).toMatchObject({ status: 502, error: 'bad-response' });
    expect((await pod.get('/?id=after')).status).toBe(200);
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
