/** The logs of the workers: the program's own lines as they are, those of the supervisor in words. */
import type { Engine } from '../../local/engine.ts';
import type { RunPod } from '../../local/run-pod.ts';
import { eachLine } from './each-line.ts';
import { harmless } from './screen.ts';

/** Characters of a line that are shown. */
const LINE_MAX = 2_000;
/** Last lines of a worker that are kept, for the message when it does not start. */
const KEPT = 20;

/** What a worker has said so far. */
export interface WorkerLog {
  pod: RunPod;
  worker: number;
  /** The program's last lines. */
  lines: string[];
  wasUp: boolean;
  /** Ends of its program, or of its container, since it was last up. */
  ends: number;
  /** It is known not to start: what it says at each try is not shown. */
  isBroken: boolean;
  /** What keeps it from coming up, as the runtime has found out. */
  problem?: string;
}

/** A line that the supervisor has written. */
export interface SupervisorLine {
  event: string;
  [detail: string]: unknown;
}

export class Logs {
  readonly workers: WorkerLog[] = [];
  readonly #engine: Engine;
  readonly #print: (text: string, isOfProgram: boolean) => void;
  #isOver = false;

  constructor(engine: Engine, print: (text: string, isOfProgram: boolean) => void) {
    this.#engine = engine;
    this.#print = print;
  }

  /** Follows the logs of a pod's workers until its containers are gone. */
  follow(pod: RunPod): void {
    for (const worker of pod.workers.keys()) {
      const log: WorkerLog = { pod, worker, lines: [], wasUp: false, ends: 0, isBroken: false };
      this.workers.push(log);
      void this.#follow(log);
    }
  }

  of(pod: RunPod, worker: number): WorkerLog | undefined {
    return this.workers.find((log) => log.pod === pod && log.worker === worker);
  }

  stop(): void {
    this.#isOver = true;
  }

  /** The engine's `logs --follow` ends with the container, which may be started again. */
  async #follow(log: WorkerLog): Promise<void> {
    const container = log.pod.workers[log.worker] ?? '';
    const isThere = () => !this.#isOver && log.pod.workers[log.worker] === container;
    let since: string[] = [];
    let restarts = 0;
    while (isThere()) {
      const code = await this.#followOnce(log, ['logs', '--follow', ...since, container]);
      since = ['--since', new Date().toISOString()];
      const counted = await this.#restartsOf(container);
      if (code !== 0 || counted === undefined) break;
      // Ends of a program that has no supervisor, or has taken it along. `docker restart` counts from 0 again.
      log.ends += Math.max(0, counted - restarts);
      restarts = counted;
    }
    this.workers.splice(this.workers.indexOf(log), 1);
  }

  /** How often the engine has started a container again; undefined if there is none any more. */
  async #restartsOf(container: string): Promise<number | undefined> {
    await new Promise((resolve) => setTimeout(resolve, 200));
    if (this.#isOver) return undefined;
    return this.#engine.run('inspect', '--format', '{{.RestartCount}}', container).then(Number, () => undefined);
  }

  #followOnce(log: WorkerLog, args: string[]): Promise<number | null> {
    const child = this.#engine.spawn(args);
    for (const stream of [child.stdout, child.stderr]) eachLine(stream, LINE_MAX, (line) => this.#take(log, line));
    return new Promise((resolve) => {
      child.once('error', () => resolve(null));
      child.once('close', resolve);
    });
  }

  #take(log: WorkerLog, line: string): void {
    const prefix = `${log.pod.name}/worker-${log.worker}`;
    const event = supervisorLine(line);
    if (event) {
      note(log, event);
      const words = inWords(event);
      if (words && !log.isBroken && !this.#isOver) this.#print(`${prefix} * ${harmless(words)}`, false);
      return;
    }
    const text = harmless(line);
    log.lines = [...log.lines.slice(1 - KEPT), text];
    if (text.startsWith('corelane: nothing listens')) log.problem = text.slice('corelane: '.length);
    if (!log.isBroken && !this.#isOver) this.#print(`${prefix} | ${text}`, true);
  }
}

function note(log: WorkerLog, { event, reason }: SupervisorLine): void {
  if (event === 'up') Object.assign(log, { wasUp: true, ends: 0, isBroken: false, problem: undefined });
  if (event === 'restart' && reason !== 'recycled') log.ends += 1;
  if (event === 'restart' && reason === 'recycled') log.ends = 0;
}

/** The program may write such a line as well: what is no plain value is not looked at. */
export function supervisorLine(line: string): SupervisorLine | undefined {
  if (!line.startsWith('{') || !line.includes('"corelane":"supervisor"')) return undefined;
  try {
    const { event, ...details } = JSON.parse(line);
    if (typeof event !== 'string') return undefined;
    const plain = Object.entries(details).filter(([, value]) => typeof value !== 'object');
    return { event, ...Object.fromEntries(plain) };
  } catch {
    return undefined; // the program has written something like it
  }
}

/** What a program has said at its end, without what no one has written: Node's own frames, empty lines. */
export function lastWords({ lines }: WorkerLog, count: number): string[] {
  const telling = lines.filter((line) => line.trim() !== '' && !/^\s+at .*node:|^Node\.js v/.test(line));
  return telling.slice(-count).map((line) => `    ${line}`);
}

/** What the supervisor has noted, for people; undefined for what they need not know. */
export function inWords({ event, ...details }: SupervisorLine): string | undefined {
  const { reason, code, signal, afterMs } = details;
  switch (event) {
    case 'up':
      return details.message === undefined ? 'up' : `up; ${details.message}`;
    case 'restart': {
      const killer = details.killedBy ?? signal;
      const why = killer ? `killed by ${killer}` : `exit code ${code}`;
      const when = afterMs === 0 ? 'at once' : `after ${Number(afterMs) / 1000} s`;
      return `the program has ended (${reason === 'exit' || reason === 'error' ? why : `${reason}, ${why}`}), starts again ${when}`;
    }
    case 'stalled':
      return `stuck in ${details.in}`;
    case 'held':
      return `stands still for ${details.by}`;
    case 'kill':
      return `is killed: ${reason}`;
    case 'recycle':
      return 'is replaced between two requests';
    case 'down':
      return `down: ${reason}`;
    case 'error':
    case 'exit':
      return `${event}: ${details.message ?? `code ${code}, ${reason}`}`;
    default:
      return undefined;
  }
}
