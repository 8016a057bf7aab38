/** Argo CD's own comparison of manifests with live objects (build/main.go). */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Json } from '../../operator/test/support/api-client.ts';

const SCRIPT = fileURLToPath(new URL('../cluster/argocd.sh', import.meta.url));
/** The first time on a machine the program is compiled. */
export const BUILD_TIMEOUT_MS = 20 * 60_000;
const RUN_TIMEOUT_MS = 60_000;
const OUTPUT_MAX_BYTES = 64 * 1024 * 1024;

/** The manifest in Git and the object in the cluster. */
export interface Pair {
  config: Json;
  live: Json;
}

/** What Argo CD shows of an object that is OutOfSync. */
export interface Difference {
  name: string;
  /** The spec in the cluster. */
  live: Json;
  /** The spec after a sync. */
  predicted: Json;
}

export class Comparison {
  readonly #program: string;

  private constructor(program: string) {
    this.#program = program;
  }

  /** Compiles the program, unless it is in the cache. */
  static async build(): Promise<Comparison> {
    const { stdout } = await promisify(execFile)(SCRIPT, { timeout: BUILD_TIMEOUT_MS });
    const program = /^ARGOCD_DIFF=(.*)$/m.exec(stdout)?.[1];
    if (!program) throw new Error(`argocd.sh names no program: ${stdout}`);
    return new Comparison(program);
  }

  /**
   * The pairs that are OutOfSync.
   * @param kubeconfig of the API server whose schema counts, as with ServerSideApply=true; without one as without
   */
  async outOfSync(pairs: Pair[], kubeconfig?: string): Promise<Difference[]> {
    const results: Json[] = JSON.parse(await this.#run(kubeconfig ? [kubeconfig] : [], JSON.stringify(pairs)));
    if (results.length !== pairs.length) throw new Error(`${pairs.length} pairs, but ${results.length} results`);
    return results
      .filter(({ modified }) => modified)
      .map(({ live, predicted }) => ({ name: live.metadata.name, live: live.spec, predicted: predicted.spec }));
  }

  #run(options: string[], input: string): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const limits = { timeout: RUN_TIMEOUT_MS, maxBuffer: OUTPUT_MAX_BYTES };
    const child = execFile(this.#program, options, limits, (error, stdout, stderr) => {
      if (error) reject(new Error(`argocd-diff failed: ${stderr || error.message}`));
      else resolve(stdout);
    });
    // A program that fails may end before it has read its input: its exit code is what counts.
    child.stdin?.on('error', () => {}).end(input);
    return promise;
  }
}
