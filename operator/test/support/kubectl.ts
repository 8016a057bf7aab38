/** kubectl from the PATH, for everything that a user would do by hand. */
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';

const TIMEOUT_MS = 60_000;

export class Kubectl {
  readonly #kubeconfig: string;
  readonly #namespace: string | undefined;

  /** @param namespace default of all commands; without one, that of the objects */
  constructor(kubeconfig: string, namespace?: string) {
    this.#kubeconfig = kubeconfig;
    this.#namespace = namespace;
  }

  /**
   * Runs `kubectl ARGUMENTS` and resolves with its standard output.
   * @throws Error with kubectl's own message
   */
  run(...commandLine: string[]): Promise<string> {
    return this.#execute(commandLine);
  }

  /** `kubectl apply` of one object, given as JSON. */
  apply(object: unknown, ...options: string[]): Promise<string> {
    return this.#execute(['apply', ...options, '-f', '-'], JSON.stringify(object));
  }

  /** `kubectl create` of one object, given as JSON. */
  create(object: unknown, ...options: string[]): Promise<string> {
    return this.#execute(['create', ...options, '-f', '-'], JSON.stringify(object));
  }

  #execute(commandLine: string[], input = ''): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const child = execFile(
      'kubectl',
      ['--kubeconfig', this.#kubeconfig, ...(this.#namespace ? ['--namespace', this.#namespace] : []), ...commandLine],
      // kubectl would leave its discovery cache in the home directory.
      { timeout: TIMEOUT_MS, env: { ...process.env, KUBECACHEDIR: join(dirname(this.#kubeconfig), 'cache') } },
      (error, stdout, stderr) => {
        if (error) reject(new Error(`kubectl ${commandLine.join(' ')}: ${stderr || error.message}`));
        else resolve(stdout);
      },
    );
    // A command that reads no input may have ended by now: its exit code is what counts.
    child.stdin?.on('error', () => {}).end(input);
    return promise;
  }
}
