/** What a process takes, by the kernel's accounts: to ask the process itself would be work for it. */
import { readFileSync } from 'node:fs';
import { accountMs } from '../lib/cpu.ts';
import { median } from '../lib/stats.ts';

const EVERY_MS = 1_000;
const MIB = 1024;

/** At a time since the beginning. */
export interface Look {
  atS: number;
  rssMib: number;
  cpuMs: number;
}

export class Usage {
  readonly looks: Look[] = [];
  readonly #pid: number;
  readonly #beganMs: number;
  readonly #timer: NodeJS.Timeout;

  /** @param beganMs of the time axis, by performance.now() */
  constructor(pid: number, beganMs: number) {
    this.#pid = pid;
    this.#beganMs = beganMs;
    this.#timer = setInterval(() => this.look(), EVERY_MS).unref();
  }

  /** The figures of now; of a process that has ended the last ones. */
  look(): Look {
    try {
      this.looks.push(lookAt(this.#pid, (performance.now() - this.#beganMs) / 1_000));
    } catch {
      this.stop();
    }
    return this.looks.at(-1) ?? { atS: 0, rssMib: Number.NaN, cpuMs: Number.NaN };
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Of all looks. */
  get rssMibMax(): number {
    return Math.max(...this.looks.map(({ rssMib }) => rssMib));
  }
}

function lookAt(pid: number, atS: number): Look {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  if (kib === undefined) throw new Error(`process ${pid} has ended`);
  return { atS, rssMib: Number(kib) / MIB, cpuMs: accountMs(readFileSync(`/proc/${pid}/stat`, 'utf8')) };
}

/** Between two looks: the middle of the memory, and the share of a core. */
export function between(looks: Look[], from: Look, to: Look): { rssMib: number; coreShare: number } {
  const inside = looks.filter(({ atS }) => atS >= from.atS && atS <= to.atS);
  return {
    rssMib: median(inside.map(({ rssMib }) => rssMib)),
    coreShare: (to.cpuMs - from.cpuMs) / (1_000 * (to.atS - from.atS)),
  };
}
