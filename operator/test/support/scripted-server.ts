/** A server that answers as a test says, where a real API server would not do so when it is wanted. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PooledKubeConfig } from '../../src/kube/config.ts';
import { Rest } from '../../src/kube/rest.ts';

const open: (() => unknown)[] = [];

/** To be called after each test. */
export async function closeServers(): Promise<void> {
  for (const close of open.splice(0)) await close();
}

/** A client of a server that answers so, until the end of the test. */
export async function clientOf(answer: RequestListener): Promise<Rest> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const config = new PooledKubeConfig();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  config.loadFromClusterAndUser({ name: 'test', server: url, skipTLSVerify: true }, { name: 'nobody' });
  open.push(
    () => config.close(),
    () => server.close(),
    () => server.closeAllConnections(),
  );
  return new Rest(config);
}
