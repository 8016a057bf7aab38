/** A system whose workers are all in one container, with proxies of its own in the same network where it has any. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { docker, RESTRICTED, SIDECAR_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import type { Target } from '../lib/load.ts';
import type { Notes } from '../lib/notes.ts';
import { BaseSystem, Folder, notesIn, startNode } from './system.ts';

export interface Parts {
  name: string;
  workers: number;
  /** In the container of the workers, with /bench. */
  command: string[];
  /** Of the workers; one with Node.js and nothing else unless given. */
  image?: string | undefined;
  env?: { [name: string]: string };
  /** Where the clients go. */
  ports: number[];
  /** Started after the workers: a command in the sidecar image, or another, and the files that it finds in /config. */
  proxies?: { command: string[]; files: { [name: string]: string }; image?: string }[];
  /** Other options of `docker run` for the workers. */
  options?: string[];
}

export class InOneContainer extends BaseSystem {
  readonly name: string;
  readonly workers: number;
  readonly notes: Notes;
  readonly network: string;
  readonly targets: Target[];
  readonly container: string;
  readonly #folder: Folder;

  protected constructor(parts: Parts, folder: Folder, container: string) {
    super();
    this.name = parts.name;
    this.workers = parts.workers;
    this.notes = notesIn(folder);
    this.network = `container:${container}`;
    this.targets = parts.ports.map((port) => ({ host: '127.0.0.1', port }));
    this.container = container;
    this.#folder = folder;
  }

  static async start(parts: Parts): Promise<InOneContainer> {
    const folder = new Folder();
    const env = Object.entries(parts.env ?? {}).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    const container = await startNode(folder, [...(parts.options ?? []), ...env], parts.command, parts.image);
    const system = new this(parts, folder, container);
    await system.allUp();
    for (const proxy of parts.proxies ?? []) system.proxies.push(await system.#startProxy(proxy));
    return system;
  }

  protected containerOf(): string {
    return this.container;
  }

  protected async remove(): Promise<void> {
    await docker('rm', '--force', '--volumes', ...this.proxies, this.container);
    this.#folder.remove();
  }

  #startProxy({ command, files, image = SIDECAR_IMAGE }: NonNullable<Parts['proxies']>[number]): Promise<string> {
    const config = this.#folder.open('config');
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(config, name), text);
      chmodSync(join(config, name), 0o644);
    }
    const mounts = ['--volume', `${config}:/config:ro`, '--tmpfs', '/tmp:mode=1777,exec'];
    const [entrypoint = '', ...args] = command;
    const options = ['--network', this.network, ...RESTRICTED, ...mounts, '--entrypoint', entrypoint];
    return start(...options, image, ...args);
  }
}
