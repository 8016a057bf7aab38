/** Connections that were used once and stay open. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import { docker, LABEL, NODE_IMAGE, RUN_ID } from '../../e2e/harness/engine/docker.ts';
import { INSIDE } from '../lib/inside.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { isAnswered, residentKib } from './compute.ts';
import { load, type Reachable, startNode, untilServes } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { inTurn, turn } from './turns.ts';

const CONNECTIONS = 15_000;
const PING = '/ping';
const BYTES_PER_KIB = 1024;
const BESIDE = 100;

/** Resident memory of all processes of a container, in KiB. */
async function memoryKib(container: string): Promise<number> {
  const look = 'cat /proc/[0-9]*/status 2>/dev/null || true';
  return residentKib(await docker('exec', '--env', 'NODE_OPTIONS=', container, 'sh', '-c', look));
}

/** The client (inside/idle.mjs), and what it says in turn. */
class Holder {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor({ network, targets: [target] }: Reachable, path: string) {
    const options = ['run', '--rm', '--interactive', '--init', '--label', `${LABEL}=${RUN_ID}`, '--network', network];
    const files = ['--volume', `${INSIDE}:/bench:ro`, '--entrypoint', 'node', NODE_IMAGE];
    const args = ['/bench/idle.mjs', `${target?.host}`, `${target?.port}`, path, `${CONNECTIONS}`];
    const client = spawn('docker', [...options, ...files, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines: Interface = createInterface({ input: client.stdout });
    this.#process = client;
    this.#lines = lines[Symbol.asyncIterator]();
  }

  /** How many connections are open, by the next line. */
  async open(): Promise<number> {
    const { value } = await this.#lines.next();
    const [, count] = /^open (\d+)$/.exec(value ?? '') ?? [];
    if (count === undefined) throw new Error('the client that holds the connections has ended');
    return Number(count);
  }

  /** Lets go of them; gives how many were open until then. */
  release(): Promise<number> {
    this.#process.stdin?.end('\n');
    return this.open();
  }
}

/** @param container whose memory counts: of what holds the connections */
async function measure(system: string, running: Reachable, container: string): Promise<Row> {
  await untilServes(running, PING);
  const before = await memoryKib(container);
  const holder = new Holder(running, PING);
  await holder.open();
  const after = await memoryKib(container);
  const group = { name: 'beside', concurrency: 1, count: BESIDE, seconds: 10, requests: [{ path: '/?id={id}' }] };
  const beside = await load(running, [[group]]);
  const answered = beside.filter(isAnswered).length;
  const open = await holder.release();
  const kb = ((after - before) * BYTES_PER_KIB) / 1_000 / open;
  return { system, values: { open, kb, memory: after / BYTES_PER_KIB, answered } };
}

async function run(): Promise<Result> {
  const server = `keepalive_timeout 1h; location = ${PING} { return 200; }`;
  const rows = await inTurn(
    turn(Corelane.start({ workersPerPod: 1 }), (system) => measure('Corelane', system, system.pod.nginx)),
    turn(startNginx(1, { server, connections: CONNECTIONS + 1_000 }), (system) =>
      measure('nginx', system, system.proxies[0] ?? ''),
    ),
    turn(startNode(['--env', 'KEEP_ALIVE_MS=3600000']), (system) => measure('plain Node', system, system.container)),
  );
  const { open, kb, answered } = (rows[0] as Row).values;
  const failed = CONNECTIONS - Number(open) + BESIDE - Number(answered);
  return { rows, figures: { idle_open: Number(open), idle_kb: Number(kb) }, failed };
}

export const idle: Scenario = {
  key: 'idle',
  title: 'Idle connections',
  text: `${CONNECTIONS} connections that send one request and stay open: how many are still there some seconds later, what each costs of the resident memory of what holds them, and how many of ${BESIDE} requests of others were answered meanwhile.`,
  columns: [
    { key: 'open', head: 'still open' },
    { key: 'kb', head: 'kB each', digits: 2 },
    { key: 'memory', head: 'MiB in all' },
    { key: 'answered', head: 'answered beside' },
  ],
  drawn: 'kb',
  seconds: 30,
  run,
};
