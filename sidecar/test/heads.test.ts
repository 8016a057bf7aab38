/** What the head of a request, or of a response, may be: as much as Node.js itself takes, and bounded by its bytes. */
import { logs } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 1, pooling: { enabled: false } });
});
afterAll(() => pod?.stop());

/** The answer to a request with these bytes, of Latin-1, in its head. */
async function answerTo(target: string, ...lines: string[]): Promise<{ status: number; error?: string; body: string }> {
  const socket = await rawConnection(pod.port(PORTS.http));
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
  });
  socket.write([`GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close', ...lines, '', ''].join('\r\n'), 'latin1');
  await until('an answer', () => socket.destroyed);
  const [head = '', body = ''] = text.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), error: /^x-corelane-error: (.*)$/im.exec(head)?.[1], body };
}

const numbered = (count: number, value = 'a') => Array.from({ length: count }, (_unused, n) => `X-${n}: ${value}`);

test('200 headers reach the worker, each as it was sent', async () => {
  const { status, body } = await answerTo('/?id=many', ...numbered(200));
  expect(status).toBe(200);
  const { headers } = JSON.parse(/\{.*\}/s.exec(body)?.[0] ?? '');
  expect(Object.keys(headers).filter((name) => /^x-\d+$/.test(name))).toHaveLength(200);
});

test.each([
  ['lines that cost more memory than bytes', numbered(300)],
  ['bytes', numbered(200, 'a'.repeat(70))],
])('too many %s are 400, and no worker sees them', async (what, lines) => {
  expect(await answerTo(`/?id=beyond-${what.length}`, ...lines)).toMatchObject({ status: 400 });
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

test('what becomes longer than HAProxy reads is 400, and says so', async () => {
  expect(await answerTo(`/?id=longer&q=${'\xe9'.repeat(6_000)}`)).toMatchObject({ status: 400, error: 'bad-request' });
  // It has taken no memory for that.
  const line = await until('it is logged', async () =>
    (await pod.accessLog()).find(({ uri }) => String(uri).includes('id=longer')),
  );
  expect(line.uri).not.toContain('%E9');
  expect((await answerTo(`/?id=as-long&q=${'\xe9'.repeat(4_000)}`)).status).toBe(200);
});

test('codes that a terminal obeys are in no log, whatever becomes of the request', async () => {
  const codes = '\xc2\x9b2J';
  const refused = [`GET /refused${codes} HTTP/1.1`, '', ''];
  const large = [`POST /large${codes} HTTP/1.1`, 'Host: a', 'Content-Length: 99999999999', '', ''];
  const host = ['POST /host HTTP/1.1', `Host: a${codes}`, 'Content-Length: 99999999999', '', ''];
  for (const lines of [refused, large, host]) {
    const socket = await rawConnection(pod.port(PORTS.http));
    socket.resume().end(lines.join('\r\n'), 'latin1');
    await until('an answer', () => socket.destroyed);
  }
  expect((await answerTo(`/?id=after-codes&q=${codes}`)).status).toBe(200);
  const said = await until('they are logged', async () => {
    const text = await logs(pod.nginx);
    return ['/refused', '/large', '/host', '/?id=after-codes'].every((uri) => text.includes(`"uri":"${uri}`)) && text;
  });
  expect(said).toContain('too large body');
  expect(said).not.toContain('\u009b');
});

test('a head of 14 kB reaches the worker, one of 15 kB is told what is wrong with it', async () => {
  expect((await answerTo('/?id=fourteen', `X: ${'a'.repeat(7_000)}`, `Y: ${'a'.repeat(7_000)}`)).status).toBe(200);
  const beyond = await answerTo('/?id=fifteen', `X: ${'a'.repeat(7_500)}`, `Y: ${'a'.repeat(7_500)}`);
  expect(beyond).toMatchObject({ status: 400, error: 'bad-request' });
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
