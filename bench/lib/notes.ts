/** What the workers have noted (inside/worker.mjs): the facts of a run. */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';

export interface Note {
  worker: number;
  pid: number;
  /** Milliseconds of the wall clock. */
  at: number;
  event: 'up' | 'begin' | 'end';
  id?: string;
  inFlight?: number;
}

/** The notes of one system, read on from where the last reading ended. */
export class Notes {
  readonly #file: string;
  readonly #all: Note[] = [];
  #bytesRead = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** All notes so far. */
  read(): Note[] {
    if (!existsSync(this.#file)) return this.#all;
    const text = readFrom(this.#file, this.#bytesRead);
    const whole = text.slice(0, text.lastIndexOf('\n') + 1); // a line may be half written
    for (const line of whole.split('\n').filter(Boolean)) this.#all.push(JSON.parse(line));
    this.#bytesRead += whole.length;
    return this.#all;
  }

  /** The process that came up last, of each worker that has come up. */
  processes(): Map<number, number> {
    const ups = this.read().filter(({ event }) => event === 'up');
    return new Map(ups.map(({ worker, pid }) => [worker, pid]));
  }
}

/** Whether the worker's last process is in the middle of a request. */
export function isBusy(notes: Note[], worker: number): boolean {
  return notes.findLast((note) => note.worker === worker)?.event === 'begin';
}

/** The file's text (ASCII) from `position` on. */
function readFrom(file: string, position: number): string {
  const descriptor = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(fstatSync(descriptor).size - position);
    return bytes.toString('latin1', 0, readSync(descriptor, bytes, 0, bytes.length, position));
  } finally {
    closeSync(descriptor);
  }
}
