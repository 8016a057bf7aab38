/**
 * A pod on a plain container engine: a holder of the network, both proxies as kubelet would start them, and one
 * container per worker.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PEERS_KEY, PEERS_KEY_MOUNT_PATH, PORTS } from '../../../operator/src/api/names.ts';
import { quantityOf } from '../../../operator/src/api/scalars.ts';
import type { RenderServiceSpecInput } from '../../../operator/src/api/spec.ts';
import { renderServiceSpec } from '../../../operator/src/api/validated-spec.ts';
import { runtimeContainers } from '../../../operator/src/plan/runtime.ts';
import { workerContainers } from '../../../operator/src/plan/workers.ts';
import { renderConfig } from '../../../operator/src/render/index.ts';
import { docker, logs, NODE_IMAGE, prepare, RESTRICTED, runSidecar, SIDECAR_IMAGE, start, together } from './docker.ts';

const APPS = fileURLToPath(new URL('../../../sidecar/test/apps', import.meta.url));
const PUBLISHED = [PORTS.http, PORTS.health, PORTS.stats, PORTS.peers];
/** Generous: other work may keep the machine busy. */
const WAIT_MS = 30_000;
/** No request takes as long, so that what hangs fails instead. */
const ANSWER_MS = 60_000;

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
  elapsedMs: number;
}

/** What runs in a worker container. */
export interface WorkerOptions {
  image?: string;
  /** What is mounted as /app. */
  folder?: string;
  /** The container's command. */
  command?: string[];
  env?: Record<string, string>;
  /** Further options of the engine. */
  options?: string[];
}

export interface PodOptions {
  workers?: boolean;
  /** Docker network of the fleet. */
  network?: string;
  /** Revision of the pod template. */
  revision?: string;
  /** What the key file of the peers has in it: that of all pods of a fleet unless given; null: there is no file. */
  key?: string | null;
  /** Changes a file of the proxies' configuration. */
  edit?: (file: string, text: string) => string;
  /** More files beside the configuration, in /etc/corelane, by name. */
  files?: Record<string, string>;
}

/** Else a URL that nobody has seen answered goes over a new connection to its worker (docs/adr/0023-quarantine.md). */
export const ANY_URL_KEEPS = { watchdog: { quarantine: { enabled: false } } };

/** Idle connections to workers do not go while a test does what it wants them for. */
export const KEEPS_LONG: PodOptions = {
  edit: (_file, text) => text.replace('pool-purge-delay 1s', 'pool-purge-delay 60s'),
};

/** The key of a fleet, as the operator would make it. */
export const FLEET_KEY = Buffer.alloc(32, 'fleet').toString('base64');

/** Stands for the DNS name of the headless Service. */
export const PEERS_HOST = 'peers.corelane.test';

const WORKER: Required<WorkerOptions> = {
  image: NODE_IMAGE,
  folder: APPS,
  command: ['node', '/app/worker.mjs'],
  env: {},
  options: [],
};

/** What worker.mjs has noted. */
export interface WorkerEvent {
  worker: number;
  pid: number;
  /** Milliseconds of the wall clock. */
  at: number;
  event: 'up' | 'begin' | 'end' | 'upgrade' | 'sigterm' | 'exit' | 'die' | 'tick' | 'refused';
  id?: string;
  method?: string;
  bytes?: number;
  inFlight?: number;
  /** Of the connection's other end. */
  port?: number;
}

export interface Call {
  port?: number;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  agent?: http.Agent;
  signal?: AbortSignal;
}

/** Waits until `condition` gives something true, and gives that. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  limitMs = WAIT_MS,
): Promise<NonNullable<T>> {
  const end = Date.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value) return value as NonNullable<T>;
    if (Date.now() > end) throw new Error(`Waited ${limitMs} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export class Pod {
  /** Changes the files of every pod: how deliberate breakages get in. */
  static editAll: (file: string, text: string) => string = (_file, text) => text;

  readonly spec;
  readonly run: string;
  haproxy = '';
  nginx = '';
  readonly workers: string[] = [];
  #holder = '';
  /** Mounts of the workers. */
  #runtime: string[] = [];
  readonly #options: PodOptions;
  readonly #folder: string;
  readonly #ports = new Map<number, number>();

  private constructor(input: Partial<RenderServiceSpecInput>, options: PodOptions) {
    this.#options = options;
    const template = { spec: { containers: [{ name: 'worker', image: NODE_IMAGE }] } };
    this.spec = renderServiceSpec.parse({ template, ...input });
    this.#folder = mkdtempSync(join(tmpdir(), 'corelane-pod-'));
    chmodSync(this.#folder, 0o755);
    this.run = this.#open('run');
  }

  /**
   * Starts a pod; `workers: false` leaves out the workers, for `startWorkers` later. With a `network` of Docker its
   * peers are the pods of the same network: all have the name that stands for the headless Service.
   */
  static async start(
    input: Partial<RenderServiceSpecInput> = {},
    { workers = true, network, revision, key, edit, files, ...worker }: WorkerOptions & PodOptions = {},
  ): Promise<Pod> {
    await prepare();
    const pod = new Pod(input, { network, revision, key, edit, files });
    try {
      await together([pod.#startProxies(), pod.#copyRuntime()]);
      // Docker accepts connections before a proxy listens.
      await until('HAProxy serves', () => pod.get('/livez', { port: PORTS.health }).catch(() => false));
      if (workers) await pod.startWorkers(worker);
      if (workers) await until('ready', async () => (await pod.get('/readyz', { port: PORTS.health })).status === 200);
      await until('nginx serves', () => pod.get(pod.spec.ping.path).catch(() => false));
    } catch (error) {
      await pod.stop();
      throw error;
    }
    return pod;
  }

  /** Removes everything. */
  async stop(): Promise<void> {
    const containers = [...this.workers, this.nginx, this.haproxy, this.#holder].filter(Boolean);
    if (containers.length > 0) await docker('rm', '--force', '--volumes', ...containers);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Starts all workers as the plan has them. */
  async startWorkers(options: WorkerOptions = {}): Promise<void> {
    const { image, folder, command, env, options: further } = { ...WORKER, ...options };
    const events = this.#open('events');
    const own = Object.entries({ EVENTS: '/events/lines', ...env }).map(([name, value]) => ({ name, value }));
    const [entrypoint = '', ...args] = command;
    const containers = workerContainers(this.spec, { name: 'worker', image, env: own });
    const starts = containers.map(async (container, index) => {
      this.workers[index] = await start(
        ...['--network', this.network, '--volume', `${events}:/events`, '--volume', `${folder}:/app:ro`],
        ...['--read-only', '--tmpfs', '/tmp:mode=1777', ...this.#runtime, ...further],
        ...(container.env ?? []).flatMap(({ name, value }) => ['--env', `${name}=${value}`]),
        ...['--entrypoint', entrypoint, image, ...args],
      );
    });
    await together(starts);
  }

  /** Runs the init container of the plan. */
  async #copyRuntime(): Promise<void> {
    const [init] = runtimeContainers(this.spec, { image: SIDECAR_IMAGE });
    if (!init) return;
    const folder = this.#open('runtime');
    await runSidecar(['--volume', `${folder}:/corelane`], ...(init.args ?? []));
    this.#runtime = ['--volume', `${folder}:/corelane:ro`];
  }

  /** Where the workers write their notes. */
  get notesFile(): string {
    return join(this.#folder, 'events', 'lines');
  }

  /** Everything that the workers have noted so far, in order. */
  events(filter: Partial<WorkerEvent> = {}): WorkerEvent[] {
    const lines = existsSync(this.notesFile) ? readFileSync(this.notesFile, 'utf8').split('\n').filter(Boolean) : [];
    const wanted = Object.entries(filter);
    return lines
      .map((line) => JSON.parse(line) as WorkerEvent)
      .filter((event) => wanted.every(([key, value]) => event[key as keyof WorkerEvent] === value));
  }

  /** Waits until a worker has begun with request `id`. */
  async begun(id: string): Promise<WorkerEvent> {
    try {
      return await until(`a worker begins ${id}`, () => this.events({ event: 'begin', id })[0]);
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await this.#account()}`);
    }
  }

  /** What happened in this pod, for the message of a test that waited in vain: when it is read the pod has gone. */
  async #account(): Promise<string> {
    const status = await this.metricLines('haproxy_server_status');
    const queues = await this.metricLines('haproxy_backend_current_queue');
    const parts = {
      'noted by the workers': this.events().map((event) => JSON.stringify(event)),
      'status of servers': status.filter((line) => /"(workers|line)".* 1$/.test(line) && !line.includes('borrowed-')),
      queues: queues.filter((line) => !line.endsWith(' 0')),
      'log of HAProxy': (await logs(this.haproxy)).split('\n').slice(-40),
      'log of nginx': (await logs(this.nginx)).split('\n').slice(-20),
      'log of the workers': (await Promise.all(this.workers.map((worker) => logs(worker)))).flatMap((log) =>
        log.split('\n').slice(-10),
      ),
    };
    return Object.entries(parts)
      .map(([name, lines]) => [`${name}:`, ...lines.filter(Boolean)].join('\n  '))
      .join('\n');
  }

  /** Lets requests end that workers render, or will render, with hold=. */
  release(...ids: string[]): void {
    for (const id of ids) writeFileSync(`${this.notesFile}.${id}`, '');
  }

  /** The container that holds the pod's network. */
  get holder(): string {
    return this.#holder;
  }

  /** The pod's network, for another container that is to be in it. */
  get network(): string {
    return `container:${this.#holder}`;
  }

  /** Address of the pod in its network. */
  address(): Promise<string> {
    return docker('inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', this.#holder);
  }

  /** IPv6 address of the pod in its network, where that has such addresses. */
  addressIpv6(): Promise<string> {
    const format = '{{range .NetworkSettings.Networks}}{{.GlobalIPv6Address}}{{end}}';
    return docker('inspect', '--format', format, this.#holder);
  }

  /** Local port that leads to `port` of the pod. */
  port(port: number): number {
    return this.#ports.get(port) ?? 0;
  }

  /** One request, on a connection of its own unless there is an agent. */
  get(
    path: string,
    { port = PORTS.http, body, agent, signal = AbortSignal.timeout(ANSWER_MS), ...options }: Call = {},
  ): Promise<Answer> {
    const began = performance.now();
    return new Promise((resolve, reject) => {
      const request = http.request(
        { host: '127.0.0.1', port: this.port(port), path, agent: agent ?? false, signal, ...options },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(chunks).toString(),
              elapsedMs: performance.now() - began,
            }),
          );
        },
      );
      request.on('error', reject);
      request.end(body);
    });
  }

  /** Asks for a page until its requests come over connections that are kept, from nginx to the workers. */
  async keptConnections(page = '/?id=kept'): Promise<void> {
    await until('connections are kept', async () => {
      const before = this.events({ event: 'begin', id: 'kept' }).length;
      for (const _ of [1, 2, 3, 4]) await this.get(page);
      const latest = this.events({ event: 'begin', id: 'kept' }).slice(before);
      return new Set(latest.map(({ worker, port }) => `${worker} ${port}`)).size < latest.length;
    });
  }

  /** Answer of HAProxy's runtime API. */
  runtimeApi(command: string): Promise<string> {
    return this.throughSocket('haproxy.sock', `${command}\n`);
  }

  /** What a socket in /run/corelane, which only the proxies' user can open, answers to these bytes within 2 s. */
  throughSocket(name: string, bytes: string): Promise<string> {
    const talk = `
      $SIG{ALRM} = sub { exit }; alarm 2; $| = 1;
      my $socket = IO::Socket::UNIX->new(Peer => "/run/corelane/$ARGV[0]") or die "$!";
      $socket->syswrite(pack("H*", $ARGV[1])); print $_ while sysread($socket, $_, 65536);`;
    const hex = Buffer.from(bytes, 'latin1').toString('hex');
    return docker('exec', this.haproxy, 'perl', '-MIO::Socket::UNIX', '-e', talk, name, hex);
  }

  /** Lines of one metric of HAProxy. The whole page has thousands, and tests look every few milliseconds. */
  async metricLines(name: string): Promise<string[]> {
    const { body } = await this.get(`/metrics?metrics=${name}`, { port: PORTS.stats });
    return body.split('\n').filter((line) => line.startsWith(name));
  }

  /** Value of a metric of HAProxy, by its name and labels as /metrics writes them. */
  async metric(line: string): Promise<number> {
    const lines = await this.metricLines(line.split('{')[0] ?? '');
    const found = lines.find((text) => text.startsWith(`${line} `));
    return Number(found?.split(' ')[1] ?? Number.NaN);
  }

  /** Requests that peers have taken from this pod. */
  async handedOver(): Promise<number> {
    const lines = await this.metricLines('haproxy_server_sessions_total');
    const borrowed = lines.filter((line) => line.includes('{proxy="line",server="borrowed-'));
    return borrowed.reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
  }

  /** Whether HAProxy gives requests to a worker. */
  async isUp(worker: number): Promise<boolean> {
    return (await this.metric(`haproxy_server_status{proxy="workers",server="worker-${worker}",state="UP"}`)) === 1;
  }

  /** Value of a metric of a worker's supervisor. */
  async runtimeMetric(worker: number, name: string, reason?: string): Promise<number> {
    const labels = `worker="${worker}"${reason ? `,reason="${reason}"` : ''}`;
    const { body } = await this.get(`/workers/${worker}/metrics`, { port: PORTS.stats });
    const found = body.split('\n').find((line) => line.startsWith(`${name}{${labels}} `));
    if (!found) throw new Error(`no ${name}{${labels}} in ${body}`);
    return Number(found.split(' ')[1]);
  }

  /** What the supervisor of a worker has written. */
  async supervisorLog(worker: number): Promise<Record<string, unknown>[]> {
    const lines = (await logs(this.workers[worker] ?? '')).split('\n');
    return lines.filter((line) => line.includes('"corelane":"supervisor"')).map((line) => JSON.parse(line));
  }

  /** Number of the server process that runs in a worker container. */
  server(worker: number): number {
    const last = this.events({ event: 'up', worker }).at(-1);
    if (!last) throw new Error(`worker-${worker} has never been up`);
    return last.pid;
  }

  /** Sends a signal to a process of a worker container, by its number in there. */
  async kill(worker: number, pid: number, signal: string): Promise<void> {
    await docker('exec', '--env', 'NODE_OPTIONS=', this.workers[worker] ?? '', 'sh', '-c', `kill -s ${signal} ${pid}`);
  }

  /**
   * Kills the oldest process of that name in a proxy's container, which for nginx is the master process.
   * @param options.withChildren the others, too
   */
  async killProxy(container: string, name: string, { withChildren = false } = {}): Promise<void> {
    const find = `for pid in $(ls /proc | grep -E '^[0-9]+$' | sort -n); do
      [ "$(cat /proc/$pid/comm 2>/dev/null)" != ${name} ] || { kill -s KILL $pid; ${withChildren ? 'killed=1' : 'exit'}; }
    done; [ -n "$killed" ]`;
    await docker('exec', container, 'sh', '-c', find);
  }

  /**
   * All processes of a worker container but the one that looks: `docker top` needs a `ps` that a bare machine lacks.
   */
  async processes(worker: number): Promise<{ state: string; args: string }[]> {
    const look = `
      const { readdirSync, readFileSync } = require('node:fs');
      for (const pid of readdirSync('/proc').filter((name) => Number(name) > 0 && Number(name) !== process.pid)) {
        try {
          const state = readFileSync('/proc/' + pid + '/stat', 'utf8').replace(/^.*\\) /, '')[0];
          const args = readFileSync('/proc/' + pid + '/cmdline', 'utf8').split('\\0').join(' ').trim();
          console.log(JSON.stringify({ state, args }));
        } catch {} // it has ended meanwhile
      }`;
    const container = this.workers[worker] ?? '';
    const text = await docker('exec', '--env', 'NODE_OPTIONS=', container, 'node', '-e', look);
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  /** Changes whenever a container is started again. */
  startedAt(container: string): Promise<string> {
    return docker('inspect', '--format', '{{.State.StartedAt}}', container);
  }

  /** Waits until exactly `count` requests wait for a worker. */
  async queued(count: number): Promise<void> {
    const waiting = async (proxy: string) => this.metric(`haproxy_backend_current_queue{proxy="${proxy}"}`);
    await until(
      `${count} requests in the queue`,
      async () => (await waiting('line')) + (await waiting('workers')) === count,
    );
  }

  /** The access log, one object per request. */
  async accessLog(): Promise<Record<string, unknown>[]> {
    const lines = (await logs(this.nginx)).split('\n').filter((line) => line.startsWith('{'));
    return lines.map((line) => JSON.parse(line));
  }

  /** State of a container: `{ Running, ExitCode }`. */
  async state(container: string): Promise<{ Running: boolean; ExitCode: number }> {
    return JSON.parse(await docker('inspect', '--format', '{{json .State}}', container));
  }

  #open(name: string): string {
    const folder = join(this.#folder, name);
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777); // as an emptyDir
    return folder;
  }

  /** The memory limit of the plan. */
  #memory(proxy: 'nginx' | 'haproxy'): string[] {
    const bytes = String(quantityOf(this.spec.sidecar[proxy].memoryLimit));
    return ['--memory', bytes, '--memory-swap', bytes];
  }

  /** Puts a key in place of the one that the peers have; null: no file. */
  writeKey(key: string | null): void {
    const file = join(this.#open('key'), PEERS_KEY);
    rmSync(file, { force: true });
    if (key === null) return;
    writeFileSync(`${file}.new`, key);
    renameSync(`${file}.new`, file); // in one step, as kubelet does it
  }

  async #startProxies(): Promise<void> {
    const config = this.#open('config');
    const { network, revision = 'r1', key = FLEET_KEY, edit = (_file, text) => text, files } = this.#options;
    for (const [file, rendered] of Object.entries({ ...renderConfig(this.spec), ...files })) {
      const text = edit(file, rendered);
      mkdirSync(dirname(join(config, file)), { recursive: true });
      writeFileSync(join(config, file), Pod.editAll(file, text));
    }
    this.writeKey(key);
    const publish = PUBLISHED.flatMap((port) => ['--publish', `127.0.0.1::${port}`]);
    // Ends by itself should nobody be left to remove it.
    const joined = network ? ['--network', network, '--network-alias', PEERS_HOST] : [];
    this.#holder = await start(...publish, ...joined, '--init', '--entrypoint', 'sleep', SIDECAR_IMAGE, '1800');
    for (const line of (await docker('port', this.#holder)).split('\n')) {
      const [, inside, outside] = /^([0-9]+)\/tcp -> 127\.0\.0\.1:([0-9]+)$/.exec(line) ?? [];
      if (inside) this.#ports.set(Number(inside), Number(outside));
    }
    const shared = ['--volume', `${config}:/etc/corelane:ro`, '--volume', `${this.run}:/run/corelane`];
    const options = ['--network', this.network, ...RESTRICTED, ...shared];
    const keyMount = ['--volume', `${join(this.#folder, 'key')}:${PEERS_KEY_MOUNT_PATH}:ro`];
    const addresses = [await this.address(), await this.addressIpv6()].filter(Boolean);
    const env = { CORELANE_PEERS: PEERS_HOST, CORELANE_REVISION: revision, CORELANE_POD_IPS: addresses.join(',') };
    const peers = [...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]), ...keyMount];
    const haproxy = async () => {
      this.haproxy = await start(...options, ...peers, ...this.#memory('haproxy'), SIDECAR_IMAGE, 'haproxy');
    };
    const nginx = async () => {
      const disk = ['--volume', `${this.#open('tmp')}:/tmp`];
      this.nginx = await start(...options, ...disk, ...this.#memory('nginx'), SIDECAR_IMAGE, 'nginx');
    };
    await together([haproxy(), nginx()]);
  }
}
