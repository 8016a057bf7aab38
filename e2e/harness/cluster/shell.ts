/** Runs programs and hands over what they print; a failure says which command, how it ended, and what it said. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Root of the clone; all commands run there. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

export interface RunOptions {
  /** Written to standard input. */
  input?: string;
  timeoutMs?: number;
  /** Shows standard error as it comes, for progress. */
  echo?: boolean;
}

/**
 * Standard output of a command.
 * @throws Error with the command and its standard error when it exits with another code than 0 or takes too long
 */
export function run(command: string, args: string[], options: RunOptions = {}): Promise<string> {
  const { input = '', timeoutMs = 120_000, echo = false } = options;
  return new Promise((resolve, reject) => {
    // Named because Jest gives tests a copy of process.env, and spawn takes the original by itself.
    const { env } = process;
    const child = spawn(command, args, { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'pipe'], timeout: timeoutMs });
    let output = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.length > OUTPUT_BYTES_MAX) child.kill();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (echo) process.stderr.write(text);
      errors = (errors + text).slice(-8_000);
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) return resolve(output);
      const how = signal ? `was ended by ${signal} (limit ${timeoutMs / 1000} s)` : `exited with ${code}`;
      reject(new Error(`${command} ${args.join(' ')} ${how}:\n${errors.trim()}\n${output.slice(-2_000)}`));
    });
    child.stdin.on('error', () => {}).end(input); // a command that fails early closes its input
  });
}
