/** One `corelane run`, from the first step to the removal of everything. */

import { setTimeout as sleep } from 'node:timers/promises';
import { seconds } from '../../live/text.ts';
import { Balancer } from '../../local/balancer.ts';
import type { Service } from '../../local/documents.ts';
import { type Engine, together } from '../../local/engine.ts';
import { findEngine } from '../../local/find-engine.ts';
import { nodeImage, pulled, sidecarImage } from '../../local/images.ts';
import { RunFleet } from '../../local/run-fleet.ts';
import type { RunPod } from '../../local/run-pod.ts';
import { presetPhrases } from '../../src/api/presets.ts';
import { SIGNALS } from '../signals.ts';
import { Chaos } from './chaos.ts';
import { RunDashboard } from './dashboard.ts';
import { Hands } from './hands.ts';
import { readKeys } from './keys.ts';
import { loadService, workerOptions } from './load-service.ts';
import { Logs } from './logs.ts';
import type { RunOptions } from './options.ts';
import { Requests } from './requests.ts';
import { Samples } from './samples.ts';
import { bold, Screen } from './screen.ts';
import { faultsTable } from './table.ts';
import { troubleOf, whyNoRuntime } from './trouble.ts';
import { IDLE_WORKERS, type LoadFigures, loadLine, viewLines } from './view.ts';
import { Watch } from './watch.ts';

const LOOK_EVERY_MS = 1_000;
/** Without a terminal nobody draws over the last table. */
const TABLE_EVERY_MS = 10_000;

export class Session {
  readonly #options: RunOptions;
  readonly #screen = new Screen();
  readonly #requests = new Requests();
  readonly #beganMs = performance.now();
  /** What is to be done at the end, before the containers are removed. */
  readonly #ends: (() => void)[] = [];
  #fleet: RunFleet | undefined;
  #engine: Engine | undefined;
  #chaos: Chaos | undefined;
  #port = 0;
  #asked = 0;
  #quit!: (code: number) => void;
  readonly #isOver = new Promise<number>((resolve) => {
    this.#quit = resolve;
  });

  constructor(options: RunOptions) {
    this.#options = options;
  }

  /**
   * Serves until it is told to end.
   * @returns exit code, when everything has been removed
   * @throws Error with what keeps it from starting
   */
  async run(): Promise<number> {
    const forget = this.#listenToSignals();
    try {
      return await Promise.race([this.#isOver, this.#start().then(() => this.#isOver)]);
    } finally {
      for (const end of this.#ends) end();
      await this.#remove();
      forget();
    }
  }

  /** Somebody has told it to end. */
  #onAsked(): void {
    this.#asked += 1;
    if (this.#asked === 2)
      this.#print('removing the containers, please wait ... (once more leaves them to the next run)');
    if (this.#asked > 2) process.exit(1); // an engine that hangs
    this.#quit(0);
  }

  /** @returns takes that back */
  #listenToSignals(): () => void {
    const onSignal = () => this.#onAsked();
    const onError = (error: unknown) => {
      this.#print(`corelane: ${(error as Error)?.stack ?? error}`);
      this.#quit(1);
    };
    // Whoever read the output has gone (`| head`). Without a listener that is an uncaught error, which is printed: the
    // next one.
    const onGone = () => this.#quit(0);
    for (const stream of [process.stdout, process.stderr]) stream.on('error', onGone);
    for (const signal of SIGNALS) process.on(signal, onSignal);
    process.on('uncaughtException', onError).on('unhandledRejection', onError);
    return () => {
      for (const signal of SIGNALS) process.off(signal, onSignal);
      process.off('uncaughtException', onError).off('unhandledRejection', onError);
    };
  }

  async #start(): Promise<void> {
    const options = this.#options;
    const wanted = options.engine;
    const { engine, version } = await this.#step(
      'container engine',
      () => findEngine(wanted),
      (found) => found.version,
    );
    this.#engine = engine;
    await engine.removeStale();
    // The file is read before images are built, so that the user sees an error in it at once. It may be a pipe, and a
    // pipe can be read only once.
    const loaded = loadService(options, '');
    const sidecar = await this.#step('image of the proxies', () => sidecarImage(engine), String);
    const node = options.isFolder ? (options.image ?? (await nodeImage(engine))) : '';
    const service = node ? { ...loaded, worker: { ...loaded.worker, image: node } } : loaded;
    this.#tell(service);
    await this.#step('image of the workers', () => pulled(engine, service.worker.image ?? ''), String);

    const logs = new Logs(engine, (text, isOfProgram) => {
      if (!isOfProgram || options.logs) this.#print(text);
    });
    await this.#listen();
    const fleet = await RunFleet.make(engine, {
      sidecarImage: sidecar,
      service,
      sitePort: this.#port,
      workerOptions: workerOptions(options, engine),
      onPod: (pod) => logs.follow(pod),
    });
    this.#fleet = fleet;
    this.#ends.push(
      () => fleet.close(),
      () => logs.stop(),
    );
    const samples = new Samples(fleet);
    const dashboard = new RunDashboard({ name: service.name, engine, print: (text) => this.#print(text) });
    this.#ends.push(() => dashboard.close());
    const hands = new Hands({
      ...{ options, engine, fleet, samples, logs, dashboard, nodeImage: node },
      url: () => this.#url,
      print: (text) => this.#print(text),
    });
    await this.#startPods(fleet);
    await this.#step('first worker is up', () => this.#untilUp(fleet, logs, hands));
    const url = this.#screen.isTerminal ? bold(this.#url) : this.#url;
    this.#print(`${url} is ready after ${seconds(performance.now() - this.#beganMs)}`);
    if (options.dashboard) await dashboard.start();
    this.#live({ fleet, samples, hands, title: [service.name, version] });
  }

  get #url(): string {
    return `http://localhost:${this.#port}`;
  }

  #print(text: string): void {
    this.#screen.line(text);
  }

  /** A line with what was done, and how long it took. */
  async #step<T>(what: string, work: () => Promise<T>, found: (value: T) => string = () => ''): Promise<T> {
    const began = performance.now();
    const value = await work();
    const took = seconds(performance.now() - began).padStart(6);
    this.#print([what.padEnd(24), took, found(value)].join('  ').trimEnd());
    return value;
  }

  #tell({ leftOut, spec }: Service): void {
    for (const line of leftOut) this.#print(`left out: ${line}`);
    for (const phrase of presetPhrases(spec)) this.#print(`framework: ${spec.framework}: ${phrase}`);
    const { pods, isFolder } = this.#options;
    if (!isFolder && spec.replicas !== undefined && spec.replicas !== pods)
      this.#print(`a cluster would run ${spec.replicas} pods (spec.replicas), here it is ${pods} (--pods)`);
  }

  async #startPods(fleet: RunFleet): Promise<void> {
    const { pods } = this.#options;
    const what = `${pods === 1 ? 'a pod' : `${pods} pods`} with ${fleet.service.spec.workersPerPod} workers`;
    await this.#step(what, () => together(Array.from({ length: pods }, () => fleet.add())));
  }

  /** Before there are pods: their programs have to know the port. */
  async #listen(): Promise<void> {
    const { port, allowedHosts } = this.#options;
    const balancer = new Balancer(() => this.#fleet?.endpoints() ?? [], allowedHosts);
    this.#ends.push(() => balancer.close());
    this.#port = await balancer.listen(port);
    if (this.#port !== port) this.#print(`port ${port} is taken by another program; it is ${this.#port} instead`);
  }

  /** @throws Error with what keeps the workers from it, unless a change may mend that */
  async #untilUp(fleet: RunFleet, logs: Logs, hands: Hands): Promise<void> {
    const { watch } = this.#options;
    if (watch) this.#startWatch(hands);
    const began = performance.now();
    let said: string | undefined;
    while (fleet.endpoints().length === 0) {
      await sleep(100);
      const trouble = troubleOf(logs.workers) ?? (await whyNoRuntime(fleet.pods[0] as RunPod, began));
      if (trouble && !watch) throw new Error(trouble);
      if (trouble && trouble !== said) this.#print(`corelane: ${trouble}\nwaiting for a change`);
      said = trouble;
    }
  }

  #startWatch(hands: Hands): void {
    const watch = new Watch(this.#options.path, (files) => void hands.change(files));
    this.#ends.push(() => watch.close());
  }

  /** While it serves: the table, keys, load, faults. */
  #live({ fleet, samples, hands, title }: { fleet: RunFleet; samples: Samples; hands: Hands; title: string[] }): void {
    const { load, chaos } = this.#options;
    if (load > 0) this.#requests.startLoad(load, () => this.#port);
    if (chaos) this.#startChaos(fleet);
    const unread = readKeys(process.stdin, (key) => (key === 'q' ? this.#onAsked() : hands.press(key)));
    let drawn = 0;
    const look = async () => {
      await samples.look().catch(() => {});
      if (!this.#screen.isTerminal && performance.now() - drawn < TABLE_EVERY_MS) return;
      drawn = performance.now();
      const lines = viewLines(
        {
          head: [this.#url, ...title, hands.busyWith ?? ''],
          ...{ rows: samples.rows, queue: samples.queue, refused: samples.refused },
          ...{ load: this.#loadFigures(), faults: this.#chaos?.rows ?? [], areWorkersIdle: samples.areWorkersIdle },
        },
        this.#screen.isTerminal,
      );
      if (this.#screen.isTerminal) this.#screen.footer(lines);
      else for (const line of lines) this.#print(line);
    };
    void look();
    const timer = setInterval(look, LOOK_EVERY_MS);
    this.#ends.push(
      () => clearInterval(timer),
      unread,
      () => this.#requests.stopLoad(),
      () => this.#screen.close(),
      () => this.#summarize(samples),
    );
  }

  #loadFigures(): LoadFigures | undefined {
    const { load } = this.#options;
    if (load === 0) return undefined;
    const { ok, failed, skipped, failures } = this.#requests;
    const [p50Ms, p99Ms] = [0.5, 0.99].map((quantile) => this.#requests.quantileMs(quantile));
    return { perSecond: load, ok, failed, skipped, lastFailure: failures.at(-1)?.what, p50Ms, p99Ms };
  }

  #summarize({ wereWorkersIdle }: Samples): void {
    const load = this.#loadFigures();
    if (load) this.#print(loadLine(load));
    if (wereWorkersIdle) this.#print(IDLE_WORKERS);
    if (this.#chaos) for (const line of faultsTable(this.#chaos.rows)) this.#print(line);
  }

  #startChaos(fleet: RunFleet): void {
    const chaos = new Chaos(fleet, this.#requests);
    this.#chaos = chaos;
    this.#ends.push(() => chaos.stop());
    const run = chaos.run({
      onRow: (row) => {
        if (!this.#screen.isTerminal) for (const line of faultsTable([row])) this.#print(line);
      },
      onError: (error) => this.#print(`corelane: a fault that could not be done: ${error.message}`),
    });
    run.catch((error) => this.#print(`corelane: no more faults: ${error.message}`));
  }

  async #remove(): Promise<void> {
    if (!this.#engine) return;
    const began = performance.now();
    await this.#engine.removeAll();
    this.#print(`everything is removed, in ${seconds(performance.now() - began)}`);
  }
}
