/** Which calls of `listen` are about the worker's port, as Node.js itself takes their arguments. */
import { createRequire } from 'node:module';
import net from 'node:net';

const { onLoopback } = createRequire(import.meta.url)('../../runtime/worker.cjs');
const PORT = 3000;
const done = () => {};

const OWN: [string, unknown[], unknown[]][] = [
  ['a port', [PORT], [PORT, '127.0.0.1']],
  ['a port as text', ['3000'], ['3000', '127.0.0.1']],
  ['a host', [PORT, '0.0.0.0', done], [PORT, '127.0.0.1', done]],
  ['options', [{ port: PORT, host: '::' }, done], [{ port: PORT, host: '127.0.0.1' }, done]],
  [
    "SvelteKit's adapter-node",
    [{ path: false, port: PORT, host: '0.0.0.0' }],
    [{ path: false, port: PORT, host: '127.0.0.1' }],
  ],
  ['a path beside a port', [{ path: '/tmp/s', port: PORT }], [{ path: '/tmp/s', port: PORT, host: '127.0.0.1' }]],
  ['no descriptor', [{ fd: undefined, port: PORT }], [{ fd: undefined, port: PORT, host: '127.0.0.1' }]],
];
test.each(OWN)('%s is about the port', (_name, given, changed) => {
  expect(onLoopback(given, PORT)).toEqual(changed);
});

const OTHER: [string, unknown[]][] = [
  ['another port', [3001]],
  ['a unix socket', ['/tmp/s']],
  ['options with a unix socket', [{ path: '/tmp/s' }]],
  ['a descriptor', [{ fd: 3, port: PORT }]],
  ['a handle', [{ handle: {}, port: PORT }]],
  ['nothing', []],
  ['a function', [done]],
];
test.each(OTHER)('%s is not', (_name, given) => {
  expect(onLoopback(given, PORT)).toBeUndefined();
});

test('Node.js takes the port where there is a path as well', async () => {
  const server = net.createServer();
  await new Promise((resolve) =>
    server.listen({ path: '/nowhere/socket', port: 0, host: '127.0.0.1' } as object, () => resolve(0)),
  );
  expect(server.address()).toMatchObject({ address: '127.0.0.1' });
  await new Promise((resolve) => server.close(resolve));
});
