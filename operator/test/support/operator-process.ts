/** The real operator as a process of its own, as in a pod: environment in, HTTP port and exit code out. */
import { type ChildProcess, spawn } from 'node:child_process';
import { get } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { repository } from './api-server.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { onFailure } from './on-failure.ts';

/** Image of the proxies in everything that test operators write; no kubelet ever pulls it. */
const SIDECAR_IMAGE = 'corelane.test/sidecar:1';
/** Lines of log that a failed test shows. */
const LOG_LINES = 60;
/** The operator gives up a call after 15 s, so a stop that takes longer than this hangs. */
const STOP_TIMEOUT_MS = 200_000;

export interface OperatorSettings {
  kubeconfig: string;
  /** Identity in leader election. */
  podName: string;
  /** Namespace of the Lease. */
  podNamespace: string;
  /** The only namespace to work in, or several with commas between; all when left out. */
  namespace?: string;
  /** How often it looks at RenderServices with scaling. */
  scalingPeriodSeconds?: number;
  /** Its main file, from the repository's root on. Unless given: the bundle of the api project, else the sources. */
  main?: string;
}

/** Of a process; where its HTTP servers listen. */
interface Ports {
  health: number;
  metrics: number;
}

/** One sample of a metric. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** All processes of this file since the last `killAll`. */
const processes = new Set<OperatorProcess>();

export class OperatorProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #ports: Ports;
  readonly #exited: Promise<number | NodeJS.Signals>;
  readonly #log: string[] = [];
  #hasEnded = false;
  readonly #forgetDump: () => void;

  private constructor(child: ChildProcess, ports: Ports, name: string) {
    this.name = name;
    this.#child = child;
    this.#ports = ports;
    for (const input of [child.stdout, child.stderr])
      if (input) createInterface({ input }).on('line', (line) => this.#log.push(line));
    this.#forgetDump = onFailure(() => `Log of operator ${name}:\n${this.#log.slice(-LOG_LINES).join('\n')}`);
    this.#exited = new Promise((resolve) => {
      // Its last lines have been read, too.
      child.once('close', (code, signal) => {
        this.#hasEnded = true;
        resolve(code ?? (signal as NodeJS.Signals));
      });
    });
    processes.add(this);
  }

  /** Starts a process and does not wait for anything. */
  static async spawn(settings: OperatorSettings, environment: Record<string, string> = {}): Promise<OperatorProcess> {
    const [health = 0, metrics = 0] = await freePorts(2);
    const ports = { health, metrics };
    const main = settings.main ?? process.env.CORELANE_TEST_OPERATOR ?? 'operator/src/main.ts';
    const child = spawn(process.execPath, [join(repository, main)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Nothing of the test's own environment: jest sets NODE_OPTIONS, a developer may have a KUBECONFIG.
      env: {
        PATH: process.env.PATH,
        // As the image has it.
        NODE_OPTIONS: '--max-semi-space-size=4 --max-old-space-size=192',
        MALLOC_ARENA_MAX: '1',
        MALLOC_MMAP_THRESHOLD_: '32768',
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        KUBECONFIG: settings.kubeconfig,
        CORELANE_SIDECAR_IMAGE: SIDECAR_IMAGE,
        CORELANE_POD_NAME: settings.podName,
        CORELANE_POD_NAMESPACE: settings.podNamespace,
        CORELANE_NAMESPACES: settings.namespace ?? '',
        CORELANE_HEALTH_PORT: String(ports.health),
        CORELANE_METRICS_PORT: String(ports.metrics),
        CORELANE_SCALING_PERIOD_SECONDS: String(settings.scalingPeriodSeconds ?? ''),
        ...environment,
      },
    });
    return new OperatorProcess(child, ports, settings.podName);
  }

  /** Starts a process and waits until it is ready. */
  static async start(settings: OperatorSettings, timeoutMs?: number): Promise<OperatorProcess> {
    const operator = await OperatorProcess.spawn(settings);
    await operator.untilReady(timeoutMs);
    return operator;
  }

  /** Kills what is left, and forgets the logs; for afterAll and afterEach, which run after a failed test, too. */
  static async killAll(): Promise<void> {
    await Promise.all([...processes].map((operator) => operator.kill()));
    for (const operator of processes) operator.#forgetDump();
    processes.clear();
  }

  /** Lets them end as an upgrade does: whoever leads gives the lease back, and the next one need not wait for it. */
  static async stopAll(): Promise<void> {
    await Promise.all([...processes].map((operator) => operator.hasEnded || operator.stop()));
    await OperatorProcess.killAll();
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Port of /metrics. */
  get metricsPort(): number {
    return this.#ports.metrics;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** All that the process has logged. */
  get log(): string {
    return this.#log.join('\n');
  }

  async untilReady(timeoutMs = 120_000): Promise<void> {
    await eventually(
      `operator ${this.name} is ready`,
      async () => {
        if (this.#hasEnded) throw new Error(`it ended with ${this.#child.exitCode}:\n${this.log}`);
        const { status, text } = await this.page('/readyz');
        if (status !== 200) throw new Error(`/readyz answers ${status}: ${text}`);
      },
      { timeoutMs },
    );
  }

  async untilLeading(timeoutMs = 120_000): Promise<void> {
    await eventually(
      `operator ${this.name} leads`,
      async () => {
        if (!(await this.isLeading())) throw new Error(`it does not; log:\n${this.#log.slice(-10).join('\n')}`);
      },
      { timeoutMs },
    );
  }

  async isLeading(): Promise<boolean> {
    return (await this.sum('corelane_operator_leader')) === 1;
  }

  /** HTTP status of a path, or 0 when nobody answers. */
  async status(path: string): Promise<number> {
    return (await this.page(path)).status;
  }

  /** Status and text of a path for kubelet; status 0 when nobody answers. */
  async page(path: string): Promise<{ status: number; text: string }> {
    return await this.#get(this.#ports.health, path).catch((error: Error) => ({ status: 0, text: error.message }));
  }

  /** All samples of /metrics. */
  async metrics(): Promise<Sample[]> {
    const { text } = await this.#get(this.#ports.metrics, '/metrics');
    return text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map(parseSample);
  }

  /** Sum over all samples of a name that `matches`. */
  async sum(name: string, matches: (labels: Record<string, string>) => boolean = () => true): Promise<number> {
    const samples = await this.metrics();
    return samples
      .filter((sample) => sample.name === name && matches(sample.labels))
      .reduce((total, { value }) => total + value, 0);
  }

  /** Reconciles that have ended, and RenderServices that wait for one or are in one. */
  async work(): Promise<{ done: number; depth: number }> {
    const samples = await this.metrics();
    const total = (name: string) =>
      samples.filter((sample) => sample.name === name).reduce((sum, { value }) => sum + value, 0);
    return {
      done: total('corelane_operator_reconcile_duration_seconds_count'),
      depth: total('corelane_operator_queue_depth'),
    };
  }

  /** Asks it to stop, as kubelet does, and resolves with its exit code. */
  async stop(): Promise<number | NodeJS.Signals> {
    this.#child.kill('SIGTERM');
    return await this.exitCode(STOP_TIMEOUT_MS);
  }

  /** Ends it without a chance to do anything about it. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** Stops it for a while without its knowing (a node that hangs), until `continue`. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  continue(): void {
    this.#child.kill('SIGCONT');
  }

  /** Resolves with the exit code, or with the signal that ended it. */
  async exitCode(timeoutMs: number): Promise<number | NodeJS.Signals> {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`operator ${this.name} has not ended within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    try {
      return await Promise.race([this.#exited, promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #get(port: number, path: string): Promise<{ status: number; text: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
    const options = { host: '127.0.0.1', port, path, timeout: 5_000, agent: false } as const;
    const request = get(options, async (response) => {
      try {
        resolve({ status: response.statusCode ?? 0, text: (await response.toArray()).join('') });
      } catch (error) {
        reject(error);
      }
    });
    request.on('timeout', () => request.destroy(new Error('no answer for 5 s')));
    request.on('error', reject);
    return promise;
  }
}

/** `name{label="value"} 1` as a sample. Values of our labels have no quotes or commas. */
function parseSample(line: string): Sample {
  const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
  if (match === null) throw new Error(`no sample: ${line}`);
  const labels = [...(match[2] ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]);
  return { name: match[1] as string, labels: Object.fromEntries(labels), value: Number(match[3]) };
}
