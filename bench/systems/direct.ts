/**
 * What this machine makes of a perfect queue: clients that know which worker is free, and nothing between them and it. No
 * dispatcher can have this knowledge; with these workers, this client and these CPUs none can be faster either.
 */
import { InOneContainer } from './in-one-container.ts';
import { workerPorts } from './nginx.ts';

export function startDirect(workers: number): Promise<InOneContainer> {
  const ports = workerPorts(workers);
  const command = ['node', '/bench/launcher.mjs', 'processes', String(workers)];
  return InOneContainer.start({ name: 'direct', workers, command, env: { PORT: String(ports[0]) }, ports });
}
