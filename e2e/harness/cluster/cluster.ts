/** kubectl on the project's own cluster. */
import { join } from 'node:path';
import { ROOT, type RunOptions, run } from './shell.ts';

/** The project's own kubeconfig; the user's is never read. */
export const KUBECONFIG = join(ROOT, '.state/kubeconfig');

/** Runs kubectl and returns what it prints. */
export function kubectl(args: string[], options: RunOptions = {}): Promise<string> {
  return run('kubectl', ['--kubeconfig', KUBECONFIG, ...args], options);
}

/** `corelane ARGUMENTS`, as a user of this cluster has it, and what it prints. */
export function corelane(args: string[], options: RunOptions = {}): Promise<string> {
  process.env.KUBECONFIG = KUBECONFIG;
  return run(process.execPath, ['operator/bin/corelane.mjs', ...args], options);
}

/** `kubectl get -o json`, decoded. */
export async function get<T>(...args: string[]): Promise<T> {
  return JSON.parse(await kubectl(['get', '-o', 'json', ...args])) as T;
}

/** Applies manifests given as text. */
export function apply(manifest: string, ...args: string[]): Promise<string> {
  return kubectl(['apply', ...args, '-f', '-'], { input: manifest });
}

/**
 * How often one looks for what takes many seconds, beside a load: each look is a kubectl, and ten in a second were seen
 * to take a fifth of the two cores (kubectl 14 %, API server 6 %) that the pods under test need.
 */
export const SELDOM_MS = 1_000;

/**
 * Polls until `check` returns something other than undefined, and returns it.
 * @throws Error with what was waited for and the last error
 */
export async function eventually<T>(
  what: string,
  timeoutMs: number,
  check: () => Promise<T | undefined>,
  intervalMs = 100,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let last: unknown = 'the condition did not hold';
  while (performance.now() < deadline) {
    try {
      const result = await check();
      if (result !== undefined) return result;
      last = 'the condition did not hold';
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
  throw new Error(`waited ${timeoutMs / 1000} s for ${what}: ${last instanceof Error ? last.message : last}`);
}
