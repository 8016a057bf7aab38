/** Ports for a test's programs. */
import { createServer } from 'node:net';

/**
 * Below those that the kernel gives to clients and Docker to published ports, of which other tests take many. Test
 * files that run at the same time are processes with ids beside each other: none takes what another one has just
 * looked at.
 */
const RANGE = { from: 10_000 + (process.pid % 20) * 1_000, size: 1_000 };

/** Ports that nobody uses, and that stay so while a program is started again. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = RANGE.from + Math.floor(RANGE.size * Math.random());
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listens = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
  });
  if (listens) await new Promise((resolve) => server.close(resolve));
  return listens;
}
