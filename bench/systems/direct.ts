/**
 * What this machine makes of a perfect queue: clients that know which worker is free, and nothing between them and it.
 * No dispatcher has this knowledge. A measurement, so no strict bound: runs on a noisy machine differ by some percent.
 */
import { InOneContainer } from './in-one-container.ts';
import { workerPorts } from './nginx.ts';

export function startDirect(workers: number): Promise<InOneContainer> {
  const ports = workerPorts(workers);
  const command = ['node', '/bench/launcher.mjs', 'processes', String(workers)];
  return InOneContainer.start({ name: 'direct', workers, command, env: { PORT: String(ports[0]) }, ports });
}
