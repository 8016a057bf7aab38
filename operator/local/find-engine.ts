/** Which container engine answers: Docker or Podman. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Engine } from './engine.ts';

/** Time for "version": an engine that takes longer hangs. */
const ANSWER_MS = 10_000;
/** Where e2e/cluster/engine.sh has the engine of a machine without one. */
const OWN_SOCKET = join(process.env.CORELANE_RUN_DIR ?? '/run/corelane', 'docker.sock');
const PREFIX = 'corelane.run';
/** nginx writes a line for each request, and a run may last for days. */
const LOG_OPTIONS = ['--log-driver', 'json-file', '--log-opt', 'max-size=10m'];

export type EngineName = 'docker' | 'podman';

interface Candidate {
  command: EngineName;
  env?: Record<string, string>;
}

/**
 * The first one that answers, and what it says of itself.
 * @param wanted only this one
 * @throws Error that says what each has answered, and what to do
 */
export async function findEngine(wanted?: EngineName): Promise<{ engine: Engine; version: string }> {
  const said: string[] = [];
  for (const { command, env } of candidates().filter(({ command }) => !wanted || command === wanted)) {
    try {
      const version = await versionOf(command, env);
      return {
        engine: new Engine({ command, prefix: PREFIX, env, options: LOG_OPTIONS }),
        version: `${command} ${version}`,
      };
    } catch (error) {
      said.push(`  ${command}: ${(error as Error).message}`);
    }
  }
  const what = wanted ?? 'Docker or Podman';
  throw new Error(
    [
      `no container engine answers; corelane run needs ${what}`,
      ...said,
      'Start it, or install it (https://docs.docker.com/get-docker, https://podman.io); a context or DOCKER_HOST of yours is used.',
      'In a clone on Debian, as root, "make run" brings one of its own.',
    ].join('\n'),
  );
}

function candidates(): Candidate[] {
  const own: Candidate[] =
    existsSync(OWN_SOCKET) && !process.env.DOCKER_HOST
      ? [{ command: 'docker', env: { DOCKER_HOST: `unix://${OWN_SOCKET}` } }]
      : [];
  return [{ command: 'docker' }, ...own, { command: 'podman' }];
}

/** Of the server: the program alone runs nothing. */
async function versionOf(command: EngineName, env: Record<string, string> = {}): Promise<string> {
  const args = {
    docker: ['version', '--format', '{{.Server.Version}}'],
    podman: ['info', '--format', '{{.Version.Version}}'],
  };
  try {
    const options = { timeout: ANSWER_MS, env: { ...process.env, ...env } };
    const { stdout } = await promisify(execFile)(command, args[command], options);
    return stdout.trim();
  } catch (error) {
    const { code, killed, stderr, message } = error as NodeJS.ErrnoException & { killed?: boolean; stderr?: string };
    if (code === 'ENOENT') throw new Error('not installed');
    if (killed) throw new Error(`has not answered for ${ANSWER_MS / 1000} s`);
    throw new Error((stderr || message).trim().split('\n').at(-1));
  }
}
