/** The CLI on a terminal. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Terminal } from './terminal.ts';

const CLI = join(fileURLToPath(new URL('../..', import.meta.url)), 'operator/bin/corelane.mjs');

/** Of a terminal. */
export interface Size {
  columns?: number;
  rows?: number;
}

/** Starts a command on a terminal of that size, in a folder with the kubeconfig that it uses. */
export function onTerminal(args: string[], folder: string, { columns = 120, rows = 20 }: Size = {}): Terminal {
  const env = { KUBECONFIG: join(folder, 'kubeconfig'), HOME: folder };
  return new Terminal([process.execPath, CLI, ...args], { columns, rows, env, cwd: folder });
}
