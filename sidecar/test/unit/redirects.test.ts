/** Which redirects of a program lead to the program itself, and what becomes of them. */
import http from 'node:http';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { runInNewContext } from 'node:vm';

const { keepRedirectsOnSite, onSite } = createRequire(import.meta.url)('../../runtime/redirects.cjs') as {
  keepRedirectsOnSite(env: { PORT: string; HOSTNAME?: string }): void;
  onSite(port: number, hostname?: string): (head: string) => string;
};
const PORT = 9003;

const headOf = (location: string) => `HTTP/1.1 307 Temporary Redirect\r\nlocation: ${location}\r\nVary: a\r\n\r\n`;
const locationAfter = (location: string, hostname?: string) =>
  /\r\nlocation: ([^\r]*)\r\nVary: a\r\n\r\n$/.exec(onSite(PORT, hostname)(headOf(location)))?.[1];

test.each([
  ['http://localhost:9003/', '/'],
  ['http://localhost:9003', '/'],
  ['http://localhost:9003?a=b', '/?a=b'],
  ['http://localhost:9003#a', '/#a'],
  ['https://localhost:9003/login?next=http://localhost:9003/a', '/login?next=http://localhost:9003/a'],
  ['HTTP://LocalHost:9003/A', '/A'],
  ['http://127.0.0.1:9003/a//b', '/a//b'],
  ['http://0.0.0.0:9003/a', '/a'],
  ['http://[::1]:9003/a', '/a'],
  ['http://[::]:9003/./a', '/./a'],
])('%s is %s', (location, expected) => {
  expect(locationAfter(location)).toBe(expected);
});

test('the name that the program has from HOSTNAME, and no other', () => {
  expect(locationAfter('http://shop-1:9003/a', 'shop-1')).toBe('/a');
  expect(locationAfter('http://shop.1:9003/a', 'shop.1')).toBe('/a');
  for (const [location, hostname] of [
    ['http://shop-2:9003/a', 'shop-1'],
    ['http://shopx1:9003/a', 'shop.1'],
    ['http://evil.example:9003/a', '.*'],
    ['http://:9003/a', ''],
  ] as const)
    expect(locationAfter(location, hostname)).toBe(location);
});

/** Anything else is not for us, or would name another site without its host. */
test.each([
  'http://localhost:9002/',
  'http://localhost:90030/',
  'http://localhost:09003/',
  'http://localhost/',
  'https://shop.example:9003/',
  'http://localhost.evil.example:9003/',
  'http://evil.example/http://localhost:9003/',
  'http://localhost:9003@evil.example/',
  'http://localhost:9003\\@evil.example/',
  'http://user@localhost:9003/',
  'http://localhost:9003//evil.example/',
  'http://localhost:9003/\\evil.example/',
  'http://localhost:9003/\t/evil.example/',
  'http://localhost:9003/ /evil.example/',
  '//localhost:9003/',
  'ftp://localhost:9003/',
  '/a',
  '',
])('%j stays', (location) => {
  expect(locationAfter(location)).toBe(location);
});

test('other headers stay, and each Location is looked at', () => {
  const url = 'http://localhost:9003/';
  const head = (own: string) =>
    `HTTP/1.1 302 Found\r\nX-Location: ${url}\r\nLOCATION: ${own}\r\nContent-Location: ${url}\r\nLocation: ${own}\r\n\r\n`;
  expect(onSite(PORT)(head(url))).toBe(head('/'));
});

describe('the head that Node.js makes', () => {
  const url = `http://localhost:${PORT}/a`;
  const answer = () => new http.ServerResponse(new http.IncomingMessage(new Socket()));
  const headAfter = (make: (response: http.ServerResponse) => unknown) => {
    const response = answer();
    make(response);
    return (response as unknown as { _header: string })._header;
  };
  beforeAll(() => keepRedirectsOnSite({ PORT: String(PORT) }));
  afterAll(() => {
    Reflect.deleteProperty(http.ServerResponse.prototype, '_storeHeader');
  });

  test.each<[string, (response: http.ServerResponse) => unknown]>([
    ['setHeader', (response) => response.setHeader('Location', url).writeHead(302)],
    ['writeHead', (response) => response.writeHead(302, { location: url })],
    ['writeHead with a reason', (response) => response.writeHead(302, 'Elsewhere', { LOCATION: url })],
    ['a list of headers', (response) => response.writeHead(302, ['Vary', 'a', 'Location', url])],
    [
      'no call of writeHead, and 201',
      (response) => {
        response.statusCode = 201;
        response.setHeader('Location', url).flushHeaders();
      },
    ],
  ])('has the path: %s', (_how, make) => {
    expect(headAfter(make)).toMatch(/\r\nlocation: \/a\r\n/i);
  });

  test.each([200, 204, 400, 404, 503])('stays with status %i', (status) => {
    expect(headAfter((response) => response.writeHead(status, { Location: url }))).toContain(
      `\r\nLocation: ${url}\r\n`,
    );
  });
});

test('long heads take no time', () => {
  const hostile = headOf(`http://localhost:9003${'/\t'.repeat(50_000)}`) + '\r\nlocation: http://'.repeat(10_000);
  const run = () => onSite(PORT)(hostile);
  expect(runInNewContext('run()', { run }, { timeout: 5_000 })).toBe(hostile);
});
