/** A pod of `corelane run`: what is asked of its supervisors, and how its workers are hurt. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { V1Container } from '@kubernetes/client-node';
import { PORTS } from '../src/api/names.ts';
import { emptyDirOptions } from './container.ts';
import type { Service } from './documents.ts';
import type { Engine } from './engine.ts';
import { FAULT_SIGNALS, FAULTS_MODULE, type WorkerFault } from './fault-signals.ts';
import { request, until } from './http.ts';
import { supervisorPage } from './node-in.ts';
import { LocalPod, type LocalPodOptions } from './pod.ts';
import { sitePortModule } from './site-port.ts';

/** Sends a signal to the process below the supervisor that listens on PORT; prints its number. */
const SIGNAL = `
  const { readdirSync, readFileSync, readlinkSync } = require('node:fs');
  const signal = process.argv.at(-1);
  const hex = ':' + Number(process.env.PORT).toString(16).toUpperCase().padStart(4, '0');
  const rows = ['tcp', 'tcp6'].flatMap((file) => {
    try { return readFileSync('/proc/net/' + file, 'utf8').split('\\n').map((row) => row.trim().split(/\\s+/)); } catch { return []; }
  });
  const sockets = rows.filter((row) => row[1]?.endsWith(hex) && row[3] === '0A').map((row) => 'socket:[' + row[9] + ']');
  const listens = (pid) => {
    try {
      return readdirSync('/proc/' + pid + '/fd').some((fd) => {
        try { return sockets.includes(readlinkSync('/proc/' + pid + '/fd/' + fd)); } catch { return false; }
      });
    } catch { return false; }
  };
  const pids = readdirSync('/proc').filter((name) => Number(name) > 0 && listens(name)).map(Number);
  if (pids.length === 0) { console.error('no process listens on ' + process.env.PORT); process.exit(1); }
  for (const pid of pids) process.kill(pid, signal);
  console.log(pids.join(' '));`;

/** Not the runtime's folder, of which no stack of a stuck worker tells. */
const MODULES_PATH = '/corelane-run';
export interface RunPodOptions extends LocalPodOptions {
  name: string;
  service: Service;
  /** Of this machine, where clients ask for the service. */
  sitePort: number;
  /** Options of the engine for the workers: the folder that they mount. */
  workerOptions: string[];
}

export class RunPod extends LocalPod {
  readonly name: string;
  readonly #service: Service;
  readonly #sitePort: number;
  readonly #workerOptions: string[];

  constructor(engine: Engine, { name, service, sitePort, workerOptions, ...options }: RunPodOptions) {
    const { forwarded } = service.spec;
    // Clients come straight from this machine.
    super(
      engine,
      { ...service.spec, forwarded: { ...forwarded, proxyProtocol: false } },
      { shell: service.shell, name, ...options },
    );
    this.name = name;
    this.#service = service;
    this.#sitePort = sitePort;
    this.#workerOptions = workerOptions;
  }

  /** Starts proxies and workers; workers are not up yet. */
  async start(): Promise<void> {
    await this.startProxies();
    const { worker, spec } = this.#service;
    // kubelet starts again what has ended.
    const options = ['--restart', 'always', ...emptyDirOptions(spec, worker)];
    if (spec.runtime.instrument) {
      const folder = this.open('modules');
      const modules = { 'faults.cjs': FAULTS_MODULE, 'site-port.cjs': sitePortModule(this.#sitePort) };
      for (const [file, text] of Object.entries(modules)) writeFileSync(join(folder, file), text);
      const mounts = [...this.#workerOptions, '--volume', `${folder}:${MODULES_PATH}:ro`];
      await this.startWorkerContainers(withModules(worker, Object.keys(modules)), mounts, options);
    } else await this.startWorkerContainers(worker, this.#workerOptions, options);
    await this.untilServing();
  }

  /** Whether a Service would send new connections here; false while the proxies are away. */
  async isTaking(): Promise<boolean> {
    try {
      const call = { signal: AbortSignal.timeout(1_000) };
      return (await request(this.port(PORTS.health), '/readyz', call)).status === 200;
    } catch {
      return false;
    }
  }

  /** Page of port 8999. */
  async page(path: string): Promise<string> {
    const { status, body } = await this.get(path, { port: PORTS.stats, signal: AbortSignal.timeout(2_000) });
    if (status !== 200) throw new Error(`${path}: ${status}`);
    return body;
  }

  /**
   * A page of a worker's supervisor, those with a header among them.
   * @throws Error with what it answers when that is not 200
   */
  runtimePage(worker: number, path: string): Promise<string> {
    return supervisorPage(this.engine, this.workers[worker] ?? '', PORTS.firstWorkerRuntime + worker, path);
  }

  /** Hurts the program of a worker; gives the number of its process. */
  async hurt(worker: number, fault: WorkerFault): Promise<string> {
    return this.inWorker(worker, SIGNAL, FAULT_SIGNALS[fault]);
  }

  /** Lets a frozen program go on. */
  async thaw(worker: number): Promise<void> {
    await this.inWorker(worker, SIGNAL, 'SIGCONT');
  }

  /** Drains as kubelet does it: the hooks of the proxies, then SIGTERM, workers first. */
  async drain(): Promise<void> {
    const hook = (container: string) => this.engine.run('exec', container, 'corelane-drain');
    // The hooks of the workers would look for a file, which is on this machine here. A pod that is removed has none.
    const isOver = () => existsSync(join(this.marks, 'over')) || !existsSync(this.marks);
    const over = until(`${this.name} has drained`, isOver);
    await Promise.allSettled([hook(this.haproxy), hook(this.nginx), over]);
    await this.engine.run('kill', '--signal', 'TERM', ...this.workers).catch(() => {});
  }

  /** Waits until a worker is given requests. */
  async untilUp(worker: number, limitMs: number): Promise<void> {
    await until(`worker-${worker} of ${this.name} is up`, () => this.isUp(worker).catch(() => false), limitMs);
  }
}

/** The supervisor stays without it: what comes behind its own file is for the program. */
function withModules(worker: V1Container, files: string[]): V1Container {
  const own = worker.env?.find(({ name }) => name === 'NODE_OPTIONS')?.value;
  const value = [...files.map((file) => `--require=${MODULES_PATH}/${file}`), own].filter(Boolean).join(' ');
  const others = (worker.env ?? []).filter(({ name }) => name !== 'NODE_OPTIONS');
  return { ...worker, env: [...others, { name: 'NODE_OPTIONS', value }] };
}
