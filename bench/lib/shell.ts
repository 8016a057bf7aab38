/** A shell that stays open in a container: starting one for each kill would take longer than the renders. */
import { type ChildProcess, spawn } from 'node:child_process';

export class Shell {
  readonly #process: ChildProcess;

  constructor(container: string) {
    const options = ['exec', '--interactive', '--env', 'NODE_OPTIONS=', container, 'sh'];
    this.#process = spawn('docker', options, { stdio: ['pipe', 'ignore', 'ignore'] });
    this.#process.stdin?.on('error', () => {}); // the container has gone
  }

  kill(pid: number, signal: string): void {
    this.#process.stdin?.write(`kill -s ${signal} ${pid}\n`);
  }

  close(): void {
    this.#process.stdin?.end();
  }
}
