/**
 * A Deployment for each version behind one Service, without Corelane: pods of one Node.js process that ends what it has
 * upon SIGTERM. A share is what the numbers of pods make of it.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { until } from '../../e2e/harness/engine/pod.ts';
import { InOneContainer } from '../systems/in-one-container.ts';
import { addressOf } from '../systems/system.ts';
import { HeldAddresses } from './held.ts';
import type { Side } from './sides.ts';
import type { VersionPod, Versions } from './system.ts';

const PORT = 9000;
const NETWORK = 'bridge';

async function startPod(side: Side, held: HeldAddresses): Promise<VersionPod & { stop(): Promise<void> }> {
  const system = await InOneContainer.start({
    name: `plain-${side}`,
    workers: 1,
    command: ['node', '/bench/worker.mjs'],
    env: { PORT: String(PORT), LISTEN: '0.0.0.0' },
    ports: [PORT],
  });
  const { container, notes } = system;
  const isRunning = async () => (await docker('inspect', '--format', '{{.State.Running}}', container)) === 'true';
  const host = await addressOf(container);
  return {
    side,
    target: { host, port: PORT },
    notes: () => notes.read(),
    kill: async () => {
      await docker('rm', '--force', container);
      await held.hold(host);
    },
    drain: async () => {
      await docker('kill', '--signal', 'TERM', container);
      await until('it ends', async () => !(await isRunning()));
      await held.hold(host);
    },
    stop: () => system.stop(),
  };
}

export async function startPlain(): Promise<Versions> {
  const held = new HeldAddresses(NETWORK);
  const pods: Awaited<ReturnType<typeof startPod>>[] = [];
  return {
    title: 'a Deployment per version',
    network: NETWORK,
    hasShares: false,
    start: async (side) => {
      const pod = await startPod(side, held);
      pods.push(pod);
      return pod;
    },
    share: async () => {},
    fallbacks: async () => Number.NaN,
    complete: async () => {},
    stop: async () => void (await Promise.all([held.release(), ...pods.map((pod) => pod.stop())])),
  };
}
