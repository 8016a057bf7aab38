/** What the user does to a fleet that serves: keys, and changes of files. One thing at a time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { seconds } from '../../live/text.ts';
import type { Engine } from '../../local/engine.ts';
import type { WorkerFault } from '../../local/fault-signals.ts';
import { pulled } from '../../local/images.ts';
import type { RunFleet } from '../../local/run-fleet.ts';
import type { RunPod } from '../../local/run-pod.ts';
import { openInBrowser } from '../dashboard/open-page.ts';
import { type CpuProfile, flameGraph, summary } from '../flame-graph.ts';
import { replaceFile } from '../replace-file.ts';
import type { RunDashboard } from './dashboard.ts';
import { loadService } from './load-service.ts';
import type { Logs } from './logs.ts';
import type { RunOptions } from './options.ts';
import { replaceWorkers } from './replace.ts';
import type { Samples } from './samples.ts';
import { troubleOf } from './trouble.ts';

const PROFILE_SECONDS = 5;
const FILES_NAMED = 3;
const FAULT_KEYS: Record<string, WorkerFault> = { k: 'kill', f: 'freeze', l: 'loop' };

export interface HandsOptions {
  options: RunOptions;
  engine: Engine;
  fleet: RunFleet;
  samples: Samples;
  logs: Logs;
  /** Of a folder. */
  nodeImage: string;
  dashboard: RunDashboard;
  url: () => string;
  print: (text: string) => void;
}

export class Hands {
  /** What is being done at the moment. */
  busyWith: string | undefined;
  readonly #with: HandsOptions;
  #changes = 0;

  constructor(options: HandsOptions) {
    this.#with = options;
  }

  press(key: string): void {
    const fault = FAULT_KEYS[key];
    if (fault) void this.#hurtOne(fault);
    else if (key === 'b') this.#openBrowser();
    else if (key === 'd') void this.#openDashboard();
    else if (key === 'r') void this.#doing('rollout', () => this.#rollOut());
    else if (key === 'p') void this.#doing(`profile of ${PROFILE_SECONDS} s`, () => this.#profile());
  }

  /** Files have changed. If others change while workers are being replaced, that begins anew. */
  async change(files: string[]): Promise<void> {
    this.#changes += 1;
    const change = this.#changes;
    const { fleet, logs, print } = this.#with;
    const others = files.length > FILES_NAMED ? ` and ${files.length - FILES_NAMED} more` : '';
    print(`changed: ${files.slice(0, FILES_NAMED).join(', ')}${others}`);
    while (this.busyWith) {
      await sleep(50);
      if (this.#changes !== change) return;
    }
    await this.#doing('replacing the workers', async () => {
      const began = performance.now();
      if (fleet.service.spec.runtime.instrument) await replaceWorkers(fleet, logs, () => this.#changes !== change);
      else await this.#rollOut();
      if (this.#changes === change) print(`all workers run the change after ${seconds(performance.now() - began)}`);
    });
  }

  /** What goes wrong is printed, and the fleet goes on. */
  async #doing(what: string, work: () => Promise<unknown>): Promise<void> {
    if (this.busyWith) {
      this.#with.print(`not now: ${this.busyWith}`);
      return;
    }
    this.busyWith = what;
    try {
      await work();
    } catch (error) {
      this.#with.print(`corelane: ${what}: ${(error as Error).message}`);
    } finally {
      this.busyWith = undefined;
    }
  }

  async #hurtOne(fault: WorkerFault): Promise<void> {
    const found = this.#pick();
    if (!found) return;
    const { pod, worker } = found;
    const { print } = this.#with;
    print(`${fault} worker-${worker} of ${pod.name}`);
    await pod.hurt(worker, fault).catch((error) => print(`corelane: ${fault}: ${error.message}`));
  }

  /** A worker that is up, at random; with the most work for a profile. */
  #pick({ busiest = false } = {}): { pod: RunPod; worker: number } | undefined {
    const { samples, fleet, print } = this.#with;
    const up = samples.rows.filter(({ state }) => state === 'up');
    const row = busiest
      ? up.reduce((most, one) => ((one.requests ?? 0) > (most?.requests ?? -1) ? one : most), up[0])
      : up[Math.floor(Math.random() * up.length)];
    const pod = fleet.pods.find(({ name }) => name === row?.pod);
    if (row && pod) return { pod, worker: Number(row.worker.split('-')[1]) };
    print('no worker is up');
    return undefined;
  }

  async #rollOut(): Promise<void> {
    const { options, engine, fleet, logs, nodeImage, print } = this.#with;
    const began = performance.now();
    const service = loadService(options, nodeImage);
    await pulled(engine, service.worker.image ?? '');
    await fleet.rollOut(service, (pod) => troubleOf(logs.workers.filter((log) => log.pod === pod)));
    print(`rollout: all pods are new after ${seconds(performance.now() - began)}`);
  }

  async #profile(): Promise<void> {
    const found = this.#pick({ busiest: true });
    if (!found) return;
    const { pod, worker } = found;
    const { print } = this.#with;
    print(`profiling worker-${worker} of ${pod.name} for ${PROFILE_SECONDS} s`);
    const json = await pod.runtimePage(worker, `/profile?seconds=${PROFILE_SECONDS}`);
    const profile: CpuProfile = JSON.parse(json);
    const file = `${pod.name}-worker-${worker}`;
    replaceFile(`${file}.cpuprofile`, json);
    replaceFile(`${file}.html`, flameGraph(profile, `worker-${worker} of ${pod.name}`));
    for (const line of summary(profile).split('\n')) print(line);
    print(`${file}.cpuprofile, ${file}.html (a flame graph)`);
  }

  #openBrowser(): void {
    const { url, print } = this.#with;
    openInBrowser(url(), () => print(`open ${url()} in a browser`));
  }

  async #openDashboard(): Promise<void> {
    const { dashboard, print } = this.#with;
    await dashboard.open().catch((error) => print(`corelane: dashboard: ${error.message}`));
  }
}
