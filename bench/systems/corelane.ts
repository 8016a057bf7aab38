/** Corelane's pod: the sidecar image with the configuration that the operator renders. */

import { Pod, type PodOptions, until, type WorkerOptions } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { INSIDE } from '../lib/inside.ts';
import { Notes } from '../lib/notes.ts';
import { BaseSystem } from './system.ts';

export class Corelane extends BaseSystem {
  readonly name: string;
  readonly workers: number;
  readonly notes: Notes;
  readonly network: string;
  readonly targets = [{ host: '127.0.0.1', port: PORTS.http }];
  readonly pod: Pod;

  private constructor(name: string, pod: Pod) {
    super();
    this.name = name;
    this.pod = pod;
    this.workers = pod.spec.workersPerPod;
    this.notes = new Notes(pod.notesFile);
    this.network = pod.network;
    this.proxies = [pod.nginx, pod.haproxy];
    this.direct = Array.from({ length: this.workers }, (_unused, worker) => ({
      host: '127.0.0.1',
      port: PORTS.firstWorker + worker,
    }));
  }

  static async start(
    spec: Partial<RenderServiceSpecInput>,
    name = 'corelane',
    options: WorkerOptions & PodOptions = {},
  ): Promise<Corelane> {
    const pod = await Pod.start(spec, { folder: INSIDE, ...options });
    const system = new Corelane(name, pod);
    await system.allUp();
    for (let worker = 0; worker < system.workers; worker += 1) await until('up', () => pod.isUp(worker));
    return system;
  }

  protected containerOf(worker: number): string {
    return this.pod.workers[worker] ?? '';
  }

  protected remove(): Promise<void> {
    return this.pod.stop();
  }
}
