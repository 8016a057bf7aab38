/** A program on a terminal (script of util-linux makes one), and what it has drawn there. */
import { type ChildProcess, spawn } from 'node:child_process';

const ESCAPE = '\u001b';
/** As far as FullScreen writes it: to a place, to the end of the line or screen, another screen, colours. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it is about
const SEQUENCE = /^\u001b\[(\??)([0-9;]*)([A-Za-z])/;

export interface TerminalOptions {
  columns: number;
  rows: number;
  env: Record<string, string>;
  cwd: string;
}

export class Terminal {
  /** All bytes so far. */
  output = '';
  readonly #process: ChildProcess;
  readonly #size: { columns: number; rows: number };
  readonly ended: Promise<number | null>;

  constructor(command: string[], { columns, rows, env, cwd }: TerminalOptions) {
    this.#size = { columns, rows };
    const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
    const line = `stty cols ${columns} rows ${rows}; exec ${quoted}`;
    this.#process = spawn('script', ['--quiet', '--flush', '--return', '--command', line, '/dev/null'], {
      env: { ...process.env, NODE_OPTIONS: '', SHELL: '/bin/sh', TERM: 'xterm', ...env },
      cwd,
    });
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.output += text;
    });
    // A key may be pressed while the program ends.
    this.#process.stdin?.on('error', () => {});
    this.ended = new Promise((resolve) => this.#process.once('close', resolve));
  }

  press(keys: string): void {
    this.#process.stdin?.write(keys);
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  /** Lines as somebody would see them now. */
  get screen(): string[] {
    const { columns, rows } = this.#size;
    let lines: string[][] = [];
    let [row, column] = [0, 0];
    const line = () => {
      lines[row] ??= [];
      return lines[row] as string[];
    };
    for (let rest = this.output; rest !== ''; ) {
      const [all = '', question, numbers = '', what] = SEQUENCE.exec(rest) ?? [];
      if (all === '') {
        const [character = ''] = rest;
        if (character === '\r') column = 0;
        else if (character === '\n') row = Math.min(row + 1, rows - 1);
        else if (column < columns) line()[column++] = character;
        rest = rest.slice(character.length);
        continue;
      }
      rest = rest.slice(all.length);
      if (question) lines = numbers === '1049' ? [] : lines;
      else if (what === 'H')
        [row, column] = numbers.split(';').map((number) => Number(number || 1) - 1) as [number, number];
      else if (what === 'K') line().length = column;
      else if (what === 'J') lines = [...lines.slice(0, row), (lines[row] ?? []).slice(0, column)];
      if (row === undefined || Number.isNaN(row)) row = 0;
      column ??= 0;
    }
    return Array.from({ length: rows }, (_unused, index) =>
      Array.from(lines[index] ?? [], (one) => one ?? ' ').join(''),
    );
  }

  /** Whether the terminal is as it was: its own screen, with a cursor, and lines that break. */
  get isGivenBack(): boolean {
    const last = (name: string) => this.output.lastIndexOf(`${ESCAPE}[?${name}`);
    return last('1049l') > last('1049h') && last('25h') > last('25l') && last('7h') > last('7l');
  }
}
