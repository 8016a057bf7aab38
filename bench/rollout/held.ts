/**
 * Addresses of pods that have gone. An engine gives the lowest free one to the next container, a cluster hardly ever
 * within a minute: who still asks a dead pod would reach the one that replaces it.
 */
import { docker, SIDECAR_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import { addressOf } from '../systems/system.ts';

/** Another container that is being started may be faster, and then the next one gets it. */
const TRIES = 3;
const SECONDS_MAX = 1_800;
/** Nobody answers there, as where nobody is. */
const SILENT = `ip link set dev eth0 down; exec sleep ${SECONDS_MAX}`;
const OPTIONS = ['--init', '--user', '0', '--cap-add', 'NET_ADMIN', '--entrypoint', 'sh'];

export class HeldAddresses {
  readonly #network: string;
  readonly #containers: string[] = [];

  constructor(network: string) {
    this.#network = network;
  }

  /** Takes an address that has just become free. */
  async hold(address: string): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const container = await start('--network', this.#network, ...OPTIONS, SIDECAR_IMAGE, '-c', SILENT);
      this.#containers.push(container);
      if ((await addressOf(container)) === address) return;
    }
  }

  async release(): Promise<void> {
    if (this.#containers.length > 0) await docker('rm', '--force', ...this.#containers);
  }
}
