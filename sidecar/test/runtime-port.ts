/** The runtime port of a supervisor without containers, as bytes. */
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { until } from '../../e2e/harness/engine/pod.ts';
import { Program } from './program.ts';

const WORKER = fileURLToPath(new URL('apps/worker.mjs', import.meta.url));
/** What shows a supervisor that it is meant. */
export const MEANT = { 'X-Corelane-Runtime': 'true' };

/** A supervised worker.mjs, and clients of its runtime port. */
export class RuntimePort {
  readonly program: Program;

  /** @param stallMs as Program has it */
  constructor(stallMs?: number) {
    this.program = new Program(stallMs);
  }

  /** Starts it with these variables. */
  start(env: Record<string, string> = {}): Promise<void> {
    return this.program.start(process.execPath, [WORKER], env);
  }

  /** Sends bytes and gives all that comes back until the end of the connection. */
  talk(...parts: string[]): Promise<string> {
    const socket = net.connect(this.program.runtimePort, '127.0.0.1');
    let received = '';
    socket.setEncoding('latin1').on('data', (text) => (received += text));
    socket.on('error', () => {}); // a reset is an end, too
    for (const part of parts) socket.write(part);
    return new Promise((resolve) => socket.once('close', () => resolve(received)));
  }

  /** What HAProxy hears at once: a first question does not wait. */
  async ask(): Promise<string> {
    return (await this.talk('corelane-agent 1\n')).trim();
  }

  async isUp(): Promise<boolean> {
    return (await this.program.health()).status === 200;
  }

  untilUp(): Promise<boolean> {
    return until('it is up', () => this.isUp());
  }

  /** Number of the server process. */
  pid(): number | undefined {
    return this.program.events('up').at(-1)?.pid;
  }

  /** Begins with a page, and leaves as the caller wants it. */
  client(path: string): net.Socket {
    const socket = net.connect(this.program.runtimePort, '127.0.0.1');
    socket.on('error', () => {});
    const headers = ['Host: localhost', ...Object.entries(MEANT).map(([name, value]) => `${name}: ${value}`)];
    socket.write(`GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
    return socket;
  }
}
