/** A pod of operator/local with what tests and benches want of it: notes of worker.mjs, metrics, logs, processes. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Answer, Call } from '../../../operator/local/http.ts';
import { LocalPod, PEERS_HOST } from '../../../operator/local/pod.ts';
import { PORTS, WAIT_FOR_DRAIN } from '../../../operator/src/api/names.ts';
import { classesOf } from '../../../operator/src/api/presets.ts';
import type { RenderServiceSpecInput } from '../../../operator/src/api/spec.ts';
import { renderServiceSpec } from '../../../operator/src/api/validated-spec.ts';
import { docker, engine, logs, NODE_IMAGE, prepare, SIDECAR_IMAGE } from './docker.ts';
import { ANSWER_MS, until } from './waiting.ts';

export { type Answer, type Call, PEERS_HOST, until };

const APPS = fileURLToPath(new URL('../../../sidecar/test/apps', import.meta.url));
/** What runs in a worker container. */
export interface WorkerOptions {
  image?: string;
  /** What is mounted as /app; null: nothing, the image has its own. */
  folder?: string | null;
  /** The container's command; null: the image's own. */
  command?: string[] | null;
  env?: Record<string, string>;
  /** Further options of the engine. */
  options?: string[];
}

export interface PodOptions {
  workers?: boolean;
  /** By which `corelane explain --local` and the like find it: NAME-1 is a pod of NAME. */
  name?: string;
  /** Docker network of the fleet. */
  network?: string;
  /** Revision of the pod template. */
  revision?: string;
  /** What the key file of the peers has in it: that of all pods of a fleet unless given; null: there is no file. */
  key?: string | null;
  /** Changes a file of the proxies' configuration. */
  edit?: (file: string, text: string) => string;
  /** The page of the ConfigMap that `fallback` names; undefined: there is none. */
  shell?: string;
  /** How many requests half of the fleet's workers get at a time (`concurrency: Auto`). */
  median?: number;
  /** More files beside the configuration, in /etc/corelane, by name. */
  files?: Record<string, string>;
  /** User and group of the proxies; those of the image unless given. */
  user?: string;
}

/** Else a URL that nobody has seen answered goes over a new connection to its worker (docs/adr/0023-quarantine.md). */
export const ANY_URL_KEEPS = { watchdog: { quarantine: { enabled: false } } };

/** Idle connections to workers do not go while a test does what it wants them for. */
export const KEEPS_LONG: PodOptions = {
  edit: (_file, text) => text.replace('pool-purge-delay 1s', 'pool-purge-delay 60s'),
};

/** The key of a fleet, as the operator would make it. */
export const FLEET_KEY = Buffer.alloc(32, 'fleet').toString('base64');

/** A pod ends by itself should nobody be left to remove it. */
const SECONDS_MAX = 1800;

const WORKER: Required<WorkerOptions> = {
  image: NODE_IMAGE,
  folder: APPS,
  command: ['node', '/app/worker.mjs'],
  env: {},
  options: [],
};

/** Longer than a busy machine takes for anything that a test awaits. A test of one of these times gives its own. */
const PATIENT = '120s';

/** Times by which the product would end by itself what a test wants to look at. */
function patient(input: Partial<RenderServiceSpecInput>): Partial<RenderServiceSpecInput> {
  // A drain must be longer than both together, so whoever sets its time means the others, too.
  if (input.drain?.timeout !== undefined) return input;
  return {
    ...input,
    queue: { timeout: PATIENT, ...input.queue },
    timeouts: { render: PATIENT, handler: PATIENT, ...input.timeouts },
  };
}

/** What worker.mjs has noted. */
export interface WorkerEvent {
  worker: number;
  pid: number;
  /** Milliseconds of the wall clock. */
  at: number;
  event: 'up' | 'begin' | 'end' | 'upgrade' | 'sigterm' | 'exit' | 'die' | 'tick' | 'refused' | 'hold';
  id?: string;
  method?: string;
  bytes?: number;
  inFlight?: number;
  /** Of the connection's other end. */
  port?: number;
  /** Of an "up", as `at`. */
  startedAt?: number;
  /** CPU time from the start to an "up". */
  startCpuMs?: number;
}

export class Pod extends LocalPod {
  /** Changes the files of every pod: how deliberate breakages get in. */
  static editAll: (file: string, text: string) => string = (_file, text) => text;

  /**
   * Starts a pod; `workers: false` leaves out the workers, for `startWorkers` later. With a `network` of Docker its
   * peers are the pods of the same network.
   */
  static async start(
    input: Partial<RenderServiceSpecInput> = {},
    { workers = true, key = FLEET_KEY, edit = (_file, text) => text, ...options }: WorkerOptions & PodOptions = {},
  ): Promise<Pod> {
    await prepare();
    const { network, name, revision, files, median, shell, user, ...worker } = options;
    const template = { spec: { containers: [{ name: 'worker', image: NODE_IMAGE }] } };
    // Tests find the lines of their requests by what is in the query.
    const accessLog = { query: 'Full' as const };
    const pod = new Pod(engine, renderServiceSpec.parse({ template, accessLog, ...patient(input) }), {
      ...{ sidecarImage: SIDECAR_IMAGE, network, revision, key, files, median, shell, user },
      secondsMax: SECONDS_MAX,
      edit: (file, text) => Pod.editAll(file, edit(file, text)),
      ...(name !== undefined && { name }),
    });
    try {
      await pod.startProxies();
      if (workers) await pod.startWorkers(worker);
      if (workers) await until('ready', () => pod.isReady());
      if (workers) await pod.untilClassesUp();
      if (!pod.spec.forwarded.proxyProtocol) await pod.untilServing();
    } catch (error) {
      await pod.stop();
      throw error;
    }
    return pod;
  }

  /** The checks of a class are its own: a pod that is ready for renders may still hold requests of a class back. */
  async untilClassesUp(): Promise<void> {
    for (const { name } of classesOf(this.spec)) {
      const up = this.workers.map((_worker, index) => `{proxy="class-${name}",server="worker-${index}",state="UP"} 1`);
      await until(`the workers are up for class ${name}`, async () => {
        const lines = await this.metricLines('haproxy_server_status');
        return up.every((line) => lines.some((text) => text.endsWith(line)));
      });
    }
  }

  override get(path: string, call: Call = {}): Promise<Answer> {
    return super.get(path, { signal: AbortSignal.timeout(ANSWER_MS), ...call });
  }

  /** Starts all workers as the plan has them. */
  async startWorkers(options: WorkerOptions = {}): Promise<void> {
    const { image, folder, command, env, options: further } = { ...WORKER, ...options };
    const own = Object.entries({ EVENTS: '/events/lines', ...env }).map(([name, value]) => ({ name, value }));
    const app = folder === null ? [] : ['--volume', `${folder}:/app:ro`];
    await this.startWorkerContainers({ name: 'worker', image, command: command ?? undefined, env: own }, [
      ...['--volume', `${this.open('events')}:/events`, ...app],
      ...['--read-only', '--tmpfs', '/tmp:mode=1777', ...further],
    ]);
  }

  /** Where the workers write their notes. */
  get notesFile(): string {
    return join(this.run, '../events/lines');
  }

  /** Everything that the workers have noted so far, in order. */
  events(filter: Partial<WorkerEvent> = {}): WorkerEvent[] {
    // Behind the last line's end is one that is just being written.
    const lines = existsSync(this.notesFile) ? readFileSync(this.notesFile, 'utf8').split('\n').slice(0, -1) : [];
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

  /** Sends bytes to a socket in /run/corelane as the proxies' user, and gives what comes back within 10 s. */
  throughSocket(name: string, bytes: string): Promise<string> {
    const talk = `
      $SIG{ALRM} = sub { exit }; alarm 10; $| = 1;
      my $socket = IO::Socket::UNIX->new(Peer => "/run/corelane/$ARGV[0]") or die "$!";
      $socket->syswrite(pack("H*", $ARGV[1])); print $_ while sysread($socket, $_, 65536);`;
    const hex = Buffer.from(bytes, 'latin1').toString('hex');
    return docker('exec', this.haproxy, 'perl', '-MIO::Socket::UNIX', '-e', talk, name, hex);
  }

  /** Requests that peers have taken from this pod. */
  async handedOver(): Promise<number> {
    const lines = await this.metricLines('haproxy_server_sessions_total');
    const borrowed = lines.filter((line) => line.includes('{proxy="line",server="borrowed-'));
    return borrowed.reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
  }

  /** Value of a metric of a worker's supervisor. */
  async runtimeMetric(worker: number, name: string, reason?: string): Promise<number> {
    const labels = `worker="${worker}"${reason ? `,reason="${reason}"` : ''}`;
    // A page lacks what the thread in the worker says, if that has not answered in time.
    const found = await until(`${name}{${labels}}`, async () => {
      const { body } = await this.get(`/workers/${worker}/metrics`, { port: PORTS.stats });
      return body.split('\n').find((line) => line.startsWith(`${name}{${labels}} `));
    });
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
    const text = await this.inWorker(worker, look);
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  /** Runs the hook of a worker, with options of `docker exec`; what it says when the pod has drained. */
  waitForDrain(worker: number, ...options: string[]): Promise<string> {
    return docker('exec', ...options, this.workers[worker] ?? '', ...WAIT_FOR_DRAIN);
  }

  /** The hooks of all workers. */
  drainHooks(): Promise<string[]> {
    return Promise.all(this.workers.map((_worker, index) => this.waitForDrain(index)));
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

  /** Sends a signal to a process of a worker container, by its number in there. */
  async kill(worker: number, pid: number, signal: string): Promise<void> {
    await docker('exec', '--env', 'NODE_OPTIONS=', this.workers[worker] ?? '', 'sh', '-c', `kill -s ${signal} ${pid}`);
  }
}
