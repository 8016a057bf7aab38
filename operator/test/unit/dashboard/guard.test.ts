/** Who may ask the listener of `corelane dashboard`. */
import { judged } from '../../../cli/dashboard/guard.ts';

const PORT = 41_000;
const TOKEN = 'k3y';
const HOST = `127.0.0.1:${PORT}`;
const VISIT = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };

const ask = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  judged({ method, url, headers: { host: HOST, ...headers } }, PORT, TOKEN);

test.each([
  ['the address as printed', `/${TOKEN}/`, {}, '/'],
  ['without its last slash', `/${TOKEN}`, {}, ''],
  ['by localhost', `/${TOKEN}/told`, { host: `localhost:${PORT}` }, '/told'],
  [
    'a request of the page itself',
    `/${TOKEN}/told`,
    { origin: `http://${HOST}`, 'sec-fetch-site': 'same-origin' },
    '/told',
  ],
  ['a link in another page, for the whole window', `/${TOKEN}/`, VISIT, '/'],
  ['an address that was typed', `/${TOKEN}/`, { 'sec-fetch-site': 'none' }, '/'],
])('%s', (_what, url, headers, path) => {
  expect(ask(url, headers)).toMatchObject({ path });
});

test('a query is read', () => {
  const answer = ask(`/${TOKEN}/stalls?pod=a%2Fb&worker=1`);
  expect('query' in answer && Object.fromEntries(answer.query)).toEqual({ pod: 'a/b', worker: '1' });
});

test.each([
  ['a name that leads here (DNS rebinding)', `/${TOKEN}/`, { host: 'evil.example' }, 421],
  ['such a name with our port', `/${TOKEN}/`, { host: `evil.example:${PORT}` }, 421],
  ['a name that begins like ours', `/${TOKEN}/`, { host: `127.0.0.1:${PORT}.evil.example` }, 421],
  ['another port of this machine', `/${TOKEN}/`, { host: '127.0.0.1:80' }, 421],
  ['no Host', `/${TOKEN}/`, { host: '' }, 421],
  ['another page', `/${TOKEN}/told`, { origin: 'https://evil.example' }, 403],
  ['a page in a sandbox', `/${TOKEN}/told`, { origin: 'null' }, 403],
  ['a page of another port', `/${TOKEN}/told`, { origin: 'http://127.0.0.1:8080' }, 403],
  ['an image in another page', `/${TOKEN}/`, { 'sec-fetch-site': 'cross-site' }, 403],
  ['a link to what is no page', `/${TOKEN}/told`, VISIT, 403],
  ['a frame in another page', `/${TOKEN}/`, { ...VISIT, 'sec-fetch-dest': 'iframe' }, 403],
  ['a page of the same site', `/${TOKEN}/`, { 'sec-fetch-site': 'same-site' }, 403],
  ['no token', '/', {}, 404],
  ['another token', '/k3z/', {}, 404],
  ['a token with more behind it', `/${TOKEN}x/`, {}, 404],
  ['an address in full', `http://${HOST}/${TOKEN}/`, {}, 404],
])('%s is turned away', (_what, url, headers, status) => {
  expect(ask(url, headers)).toMatchObject({ status });
});

test('what changes something has an Origin, and it is ours', () => {
  expect(ask(`/${TOKEN}/profiles`, {}, 'POST')).toMatchObject({ status: 403 });
  expect(ask(`/${TOKEN}/profiles`, { origin: 'https://evil.example' }, 'POST')).toMatchObject({ status: 403 });
  expect(ask(`/${TOKEN}/profiles`, { origin: `http://${HOST}` }, 'POST')).toMatchObject({ path: '/profiles' });
});

test.each(['PUT', 'DELETE', 'OPTIONS', 'CONNECT', ''])('%s is no method here', (method) => {
  expect(ask(`/${TOKEN}/`, { origin: `http://${HOST}` }, method)).toMatchObject({ status: 405 });
});
