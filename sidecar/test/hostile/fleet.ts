/**
 * Two pods with an attacker beside them, one inside, and honest clients; and what must hold whatever the attackers do.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { docker, logs, NODE_IMAGE, SIDECAR_IMAGE, start } from '../../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../../e2e/harness/engine/fleet.ts';
import type { Pod } from '../../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../../operator/src/api/spec.ts';
import type { HostileCase } from './cases.ts';

const APPS = fileURLToPath(new URL('../apps', import.meta.url));
/** For what has to be answered, and for what may be silent. */
const ANSWER_MS = 20_000;
const SILENT_MS = 1_500;
/** A pod is taken out when it says so for longer than kubelet's two failures. */
const READY_MS = 10_000;
const LOOK_MS = 100;
/** Between rounds of cases: ports that are not for clients take 16 connections of an address, and forget them then. */
const ROUND_MS = 500;

/** One answer of `honest.mjs`. */
export interface Honest {
  at: number;
  ms: number;
  failed?: string;
  isReused?: boolean;
  foreign?: string;
}

export interface Outcome {
  hostile: HostileCase;
  /** Statuses, separated by blanks. */
  answers: string;
  received: string;
}

/** What has gone wrong; all empty when everything held. */
export interface Broken {
  takenOut: string[];
  desync: string[];
  overlaps: string[];
  ended: string[];
}

const SPEC: Partial<RenderServiceSpecInput> = {
  workersPerPod: 2,
  timeouts: { clientHeader: '5s', clientBody: '5s' },
  buffering: { request: { maxSize: '1Mi' } },
};

const BARE_NGINX = `daemon off; pid /tmp/nginx.pid; error_log stderr crit; events { worker_connections 20000; }
http { access_log off; ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path /tmp/${kind};`).join(' ')} client_header_timeout 5s; server { listen ${PORTS.http}; return 200; } }`;

/** A process in a container that takes and gives lines. */
class Lines {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly ended: Promise<void>;

  constructor(container: string, command: string[], onLine: (line: string) => void) {
    this.#process = spawn('docker', ['exec', '--interactive', container, ...command]);
    this.#process.stderr.pipe(process.stderr);
    createInterface({ input: this.#process.stdout }).on('line', onLine);
    this.ended = new Promise((resolve) => this.#process.once('close', () => resolve()));
  }

  write(value: unknown): void {
    this.#process.stdin.write(`${JSON.stringify(value)}\n`);
  }

  /** No more lines: the process ends when it is through. */
  close(): void {
    this.#process.stdin.end();
  }

  async end(): Promise<void> {
    this.close();
    await this.ended;
  }
}

export class HostileFleet {
  readonly fleet: Fleet;
  readonly #addresses: string[];
  /** Containers that only sleep, for commands. */
  readonly #neighbour: string;
  readonly #inside: string;
  #honest = '';
  readonly #startedAt = new Map<string, string>();
  readonly #restarts = new Map<string, number>();
  readonly honest: Honest[] = [];
  #clients: Lines | undefined;

  private constructor(fleet: Fleet, addresses: string[], neighbour: string, inside: string) {
    this.fleet = fleet;
    this.#addresses = addresses;
    this.#neighbour = neighbour;
    this.#inside = inside;
  }

  static async start(spec: Partial<RenderServiceSpecInput> = {}): Promise<HostileFleet> {
    const fleet = await Fleet.start(2, { ...SPEC, ...spec });
    try {
      // An attacker has the CPU time that nobody else wants, as if it were on another machine.
      const home = fleet.pods[0] as Pod;
      const sleeping = (network: string, ...options: string[]) =>
        start(
          ...['--network', network, '--volume', `${APPS}:/app:ro`, '--ulimit', 'nofile=20000:20000', ...options],
          ...['--init', '--entrypoint', 'sleep', NODE_IMAGE, '1800'],
        );
      const neighbour = await sleeping(fleet.network, '--cpu-shares', '2');
      const inside = await sleeping(home.network, '--cpu-shares', '2');
      const addresses = await Promise.all(fleet.pods.map(({ holder }) => addressOf(holder)));
      const all = new HostileFleet(fleet, addresses, neighbour, inside);
      await all.#remember();
      return all;
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  /** The pod that is attacked, and that honest clients use. */
  get home(): Pod {
    return this.fleet.pods[0] as Pod;
  }

  get address(): string {
    return this.#addresses[0] as string;
  }

  /** Honest clients of all pods, `rate` requests a second. */
  async beginHonest(rate: number): Promise<void> {
    this.#honest = await start(
      ...['--network', this.fleet.network, '--volume', `${APPS}:/app:ro`, '--init'],
      ...['--entrypoint', 'sleep', NODE_IMAGE, '1800'],
    );
    this.#clients = new Lines(this.#honest, ['node', '/app/honest.mjs', `${rate}`, ...this.#addresses], (line) =>
      this.honest.push(JSON.parse(line)),
    );
  }

  async endHonest(): Promise<void> {
    await this.#clients?.end();
  }

  /** Sends the bytes of all cases, some at a time, and gives what came back. Again and again, for so many seconds. */
  async send(cases: HostileCase[], seconds = 0): Promise<Outcome[]> {
    const until = Date.now() + seconds * 1_000;
    const outcomes: Outcome[] = [];
    const run = async (from: HostileCase['from'], container: string, host: string) => {
      const own = cases.filter((one) => one.from === from);
      if (own.length === 0) return;
      const byName = new Map(own.map((one) => [one.name, one]));
      let count = 0;
      const lines = new Lines(container, ['node', '/app/raw.mjs'], (line) => {
        const { id, received } = JSON.parse(line);
        const text = Buffer.from(received, 'hex').toString('latin1');
        const answers = [...text.matchAll(/HTTP\/1\.[01] ([0-9]{3})/g)].map(([, status]) => status).join(' ');
        outcomes.push({ hostile: byName.get(id) as HostileCase, answers, received: text });
        count += 1;
        if (count % own.length > 0) return;
        if (Date.now() < until) setTimeout(round, ROUND_MS);
        else lines.close();
      });
      const round = () => {
        for (const one of own) lines.write(message(one, host));
      };
      round();
      await lines.ended;
    };
    await Promise.all([run('neighbour', this.#neighbour, this.address), run('inside', this.#inside, '127.0.0.1')]);
    return outcomes;
  }

  /** Runs `flood.mjs`, on the pod's network or inside of the pod. */
  async flood(
    port: number,
    connections: number,
    seconds: number,
    kinds: string[],
    from: HostileCase['from'] = 'neighbour',
  ) {
    const [container, host] = from === 'inside' ? [this.#inside, '127.0.0.1'] : [this.#neighbour, this.address];
    return flood(container, host, port, connections, seconds, kinds);
  }

  /** Runs `flood.mjs` against an nginx of its own, without Corelane, in the network of the pods. */
  async floodBareNginx(connections: number, seconds: number, kinds: string[]) {
    const command = `echo '${BARE_NGINX}' > /tmp/nginx.conf && exec nginx -e stderr -c /tmp/nginx.conf`;
    const bare = await start('--network', this.fleet.network, '--entrypoint', 'sh', SIDECAR_IMAGE, '-c', command);
    try {
      return await flood(this.#neighbour, await addressOf(bare), PORTS.http, connections, seconds, kinds);
    } finally {
      await docker('rm', '--force', bare);
    }
  }

  /** What must hold at any time, as far as it does not. */
  async broken(outcomes: Outcome[]): Promise<Broken> {
    const [takenOut, ended, overlaps] = await Promise.all([this.#takenOut(), this.#ended(), this.#overlaps()]);
    return { takenOut, ended, overlaps, desync: this.#desync(outcomes) };
  }

  async stop(): Promise<void> {
    await this.endHonest();
    await docker('rm', '--force', ...[this.#neighbour, this.#inside, this.#honest].filter(Boolean));
    await this.fleet.stop();
  }

  async #remember(): Promise<void> {
    for (const pod of this.fleet.pods) {
      for (const container of containersOf(pod)) this.#startedAt.set(container, await pod.startedAt(container));
      for (const worker of pod.workers.keys())
        this.#restarts.set(`${pod.run} ${worker}`, pod.events({ event: 'up', worker }).length);
    }
  }

  /** Pods that are not ready, or have a worker that is not up, and do not come back in time. */
  async #takenOut(): Promise<string[]> {
    const limit = Date.now() + READY_MS;
    for (;;) {
      const out = (await Promise.all(this.fleet.pods.map(notReady))).flatMap((why, index) =>
        why ? [`pod ${index}: ${why}`] : [],
      );
      if (out.length === 0 || Date.now() > limit) return out;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** Containers, proxies and programs that have ended, whether they are back or not. */
  async #ended(): Promise<string[]> {
    const found = this.fleet.pods.map(async (pod, index) => {
      const all = [...(await this.#endedContainers(pod)), ...(await endedProxies(pod)), ...this.#endedWorkers(pod)];
      return all.map((what) => `pod ${index}: ${what}`);
    });
    return (await Promise.all(found)).flat();
  }

  async #endedContainers(pod: Pod): Promise<string[]> {
    const ended: string[] = [];
    for (const container of containersOf(pod)) {
      const isSame = (await pod.startedAt(container)) === this.#startedAt.get(container);
      if (!isSame || !(await pod.state(container)).Running) ended.push('a container');
    }
    return ended;
  }

  #endedWorkers(pod: Pod): string[] {
    const isSame = (worker: number) =>
      pod.events({ event: 'up', worker }).length === this.#restarts.get(`${pod.run} ${worker}`);
    return [...pod.workers.keys()]
      .filter((worker) => !isSame(worker))
      .map((worker) => `the program of worker-${worker}`);
  }

  /** Workers that had two requests. */
  async #overlaps(): Promise<string[]> {
    const seen = this.fleet.pods.flatMap((pod) =>
      pod.events({ event: 'begin' }).filter(({ inFlight = 0 }) => inFlight > 1),
    );
    return seen.map(({ worker, id }) => `worker-${worker}: ${id}`);
  }

  /** Requests that nobody has sent, and answers that went to somebody else. */
  #desync(outcomes: Outcome[]): string[] {
    const begun = this.fleet.pods.flatMap((pod) => pod.events({ event: 'begin' }).map(({ id = '' }) => id));
    return [
      ...new Set(begun.filter((id) => id.includes('smuggled')).map((id) => `a worker got ${id}`)),
      ...this.honest.flatMap(({ foreign }) => (foreign === undefined ? [] : [`an honest client got ${foreign}`])),
      ...outcomes.flatMap(({ hostile, received }) =>
        /"id":"honest-/.test(received) ? [`${hostile.name} got an honest answer`] : [],
      ),
    ];
  }
}

async function flood(
  container: string,
  host: string,
  port: number,
  connections: number,
  seconds: number,
  kinds: string[],
) {
  const command = ['node', '/app/flood.mjs', host, `${port}`, `${connections}`, `${seconds}`, ...kinds];
  return JSON.parse(await docker('exec', container, ...command));
}

function message({ name, port, parts, answers }: HostileCase, host: string) {
  return {
    id: name,
    host,
    port,
    parts: parts.map((part) => (typeof part === 'number' ? part : Buffer.from(part, 'latin1').toString('hex'))),
    done: answers.source,
    waitMs: answers.test('') ? SILENT_MS : ANSWER_MS,
  };
}

/** The entry point starts a proxy anew, and nginx' master its worker. */
async function endedProxies({ haproxy, nginx }: Pod): Promise<string[]> {
  const texts = await Promise.all([haproxy, nginx].map((proxy) => logs(proxy)));
  return texts.flatMap((text) => text.match(/\w+ ended with .*|worker process [0-9]+ exited on signal .*/g) ?? []);
}

function containersOf(pod: Pod): string[] {
  return [pod.haproxy, pod.nginx, ...pod.workers];
}

async function addressOf(container: string): Promise<string> {
  const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
  return docker('inspect', '--format', format, container);
}

async function notReady(pod: Pod): Promise<string | undefined> {
  const readiness = await pod
    .get('/readyz', { port: PORTS.health, signal: AbortSignal.timeout(2_000) })
    .catch((error) => error);
  if (readiness.status !== 200) return `/readyz ${readiness.body ?? readiness.code ?? readiness.name}`;
  for (const worker of pod.workers.keys())
    if (!(await pod.isUp(worker).catch(() => false))) return `worker-${worker} is not up`;
  return undefined;
}

/** Cases that were not answered as they should, each with what came. */
export function wrongAnswers(outcomes: Outcome[]): [string, string][] {
  return outcomes
    .filter(({ hostile, answers, received }) => !hostile.answers.test(answers) || hostile.never?.test(received))
    .map(({ hostile, answers, received }) => [hostile.name, `${answers} | ${received.slice(-120)}`]);
}
