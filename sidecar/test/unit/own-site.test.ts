/** What a render sends with the mark of its own site: where that goes, and however the program says its Host. */
import diagnostics from 'node:diagnostics_channel';
import http from 'node:http';
import { createRequire } from 'node:module';
import net, { type AddressInfo } from 'node:net';

const require = createRequire(import.meta.url);
const { OwnSite } = require('../../runtime/own-site.cjs') as { OwnSite: new (own: object, metrics: object) => object };

const MARK = 'ab'.repeat(16);
const { _storeHeader } = http.ClientRequest.prototype as unknown as Record<string, unknown>;
const { addRequest } = http.Agent.prototype as unknown as Record<string, unknown>;
const metrics = { ownSiteSent: [0], ownSiteRefused: [0] };
const asker = { site: { mark: MARK, hosts: ['shop.example'] } };
const server = http.createServer(({ rawHeaders }, response) => response.end(JSON.stringify(rawHeaders)));
/** All names lead to the server. */
const agent = new http.Agent();
beforeAll(async () => {
  new OwnSite({ askerFor: (isIts: (one: object) => boolean) => (isIts(asker) ? asker : undefined) }, metrics);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  Object.assign(agent, { createConnection: () => net.connect(port, '127.0.0.1') });
});
afterAll(() => {
  Object.assign(http.ClientRequest.prototype, { _storeHeader });
  Object.assign(http.Agent.prototype, { addRequest });
  agent.destroy();
  server.close();
});

/** How often the mark is in the head of such a request. */
function marks(options: http.RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const onAnswer = async (answer: http.IncomingMessage) => {
      let text = '';
      for await (const chunk of answer) text += chunk;
      resolve((JSON.parse(text) as string[]).filter((one) => one === MARK).length);
    };
    http.get({ agent, ...options }, onAnswer).on('error', reject);
  });
}

const SHOP = { host: 'shop.example' };
const LIST_IN_LIST = ['Accept', ['x', 'Host', 'shop.example'], 'Host', 'api.example'];
const LIST = ['Accept', 'Host', 'Host', 'shop.example'];
test.each<[string, http.RequestOptions, number]>([
  ['the host of the client', SHOP, 1],
  ['it with another port', { ...SHOP, port: 8443 }, 0],
  ['another host', { host: 'api.example' }, 0],
  ['another host in the head', { ...SHOP, headers: { host: 'api.example' } }, 0],
  ['another host with the own one in the head', { host: 'api.example', headers: SHOP }, 0],
  ['a list', { ...SHOP, headers: LIST }, 1],
  ['a list with another host', { ...SHOP, headers: ['Host', 'api.example'] }, 0],
  ['a list of pairs', { ...SHOP, headers: [['Host', 'shop.example']] as never }, 1],
  ['a list with a list in it', { ...SHOP, headers: LIST_IN_LIST as never }, 0],
  ['this pod', { host: '127.0.0.1', port: 9000 }, 1],
  ['all of loopback', { host: '127.8.9.10', port: 9000 }, 1],
  ['any address', { host: '0.0.0.0', port: 9000 }, 1],
  ['any address, IPv6', { host: '::', port: 9000, headers: { host: '[::]:9000' } }, 1],
  ['another port of this pod', { host: '127.0.0.2', port: 9001 }, 0],
  ['an address that begins alike', { host: '127.0.0.2.example', port: 9000 }, 0],
  ['this pod with any host in the head', { host: '127.0.0.1', port: 9000, headers: { host: 'api.example' } }, 1],
  ['this pod, IPv6, with any host in the head', { host: '::', port: 9000, headers: { host: 'api.example' } }, 1],
  ['this pod with a list', { host: '127.0.0.1', port: 9000, headers: ['Host', 'api.example'] }, 1],
  ['another port of this pod with a list', { host: '127.0.0.1', port: 8100, headers: ['Host', 'api.example'] }, 0],
  ['before the head is sent', { ...SHOP, headers: { Expect: '100-continue', Connection: 'close' } }, 1],
])('by node:http to %s', async (...[, options, expected]) => {
  const [before = 0] = metrics.ownSiteSent;
  expect(await marks(options)).toBe(expected);
  expect(metrics.ownSiteSent).toEqual([before + expected]);
});

interface Unsent {
  _header: string | null;
  _implicitHeader(): void;
  outputData: { data: string }[];
}

test('an agent that makes the head anew, as for a proxy, keeps the mark', async () => {
  const createConnection = Reflect.get(agent, 'createConnection');
  const proxy: http.Agent = Object.assign(new http.Agent(), {
    createConnection,
    addRequest(request: Unsent, options: object) {
      setImmediate(() => {
        request._header = null;
        request._implicitHeader();
        const [first] = request.outputData;
        if (first) first.data = first.data.replace(/^.*?\r\n\r\n/s, request._header ?? '');
        Reflect.apply(Reflect.get(http.Agent.prototype, 'addRequest'), proxy, [request, options]);
      });
    },
  });
  expect(await marks({ ...SHOP, agent: proxy })).toBe(1);
});

test.each([
  ['http://shop.example', undefined, 1],
  ['http://shop.example', 'shop.example', 1],
  ['http://shop.example', 'api.example', 0],
  ['http://api.example', 'shop.example', 0],
  ['http://127.0.0.2:9000', undefined, 1],
  ['http://[::]:9000', undefined, 1],
  ['http://127.0.0.2:9000', 'api.example', 1],
  ['http://127.0.0.2:9001', undefined, 0],
])('by fetch to %s with Host %s', (...[origin, host, expected]) => {
  const added: string[] = [];
  const request = { origin, host: host ?? null, addHeader: (_name: string, value: string) => added.push(value) };
  diagnostics.channel('undici:request:create').publish({ request });
  expect(added).toEqual(Array(expected).fill(MARK));
});
