/** The Docker command line, and the containers of one test run. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Label of all containers that these tests make. Its value begins with the process id of the run. */
export const LABEL = 'corelane.test';
export const RUN_ID = `${process.pid}-${randomBytes(3).toString('hex')}`;

export const SIDECAR_IMAGE = process.env.CORELANE_SIDECAR_IMAGE ?? 'corelane.local/sidecar:dev';
export const NODE_IMAGE = process.env.CORELANE_NODE_IMAGE ?? 'corelane.local/node:24-trixie-slim';

/** Options of every proxy container: what Pod Security "restricted" demands. */
export const RESTRICTED = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];

/** Runs docker and gives its output. */
export async function docker(...args: string[]): Promise<string> {
  const { stdout } = await run('docker', args, { maxBuffer: 64 * 1024 * 1024 });
  return stdout.trim();
}

/** Standard output and error of a container, as far as written. */
export async function logs(container: string): Promise<string> {
  const { stdout, stderr } = await run('docker', ['logs', container], { maxBuffer: 64 * 1024 * 1024 });
  return stdout + stderr;
}

/** Starts a labelled container and gives its id. */
export function start(...args: string[]): Promise<string> {
  return docker('run', '--detach', '--label', `${LABEL}=${RUN_ID}`, ...args);
}

/** Waits for all, then fails if one has failed: what is still being started could not be removed. */
export async function together<T>(all: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(all);
  return Promise.all(all);
}

/** Makes a network of this run, with an address range of its own (`ipv6`: one of either family), and gives its name. */
export async function networkForTest({ ipv6 = false } = {}): Promise<string> {
  const id = randomBytes(3).toString('hex');
  const name = `corelane-test-${RUN_ID}-${id}`;
  // A unique local prefix (RFC 4193), random as it asks for.
  const second = ipv6 ? ['--ipv6', '--subnet', `fd${id.slice(0, 2)}:${id.slice(2)}::/64`] : [];
  await docker('network', 'create', '--label', `${LABEL}=${RUN_ID}`, ...second, name);
  return name;
}

/** Runs a command in a container of the sidecar image; rejects when it fails. */
export function runSidecar(mounts: string[], ...command: string[]): Promise<string> {
  const options = ['--rm', '--network', 'none', '--label', `${LABEL}=${RUN_ID}`, ...RESTRICTED];
  const folders = ['--tmpfs', '/tmp:mode=1777', '--tmpfs', '/run/corelane:mode=1777,uid=10001', ...mounts];
  return docker('run', ...options, ...folders, SIDECAR_IMAGE, ...command);
}

let prepared: Promise<void> | undefined;

/**
 * Fails with advice where the engine or an image is missing; removes what a killed run has left behind. Once per file.
 */
export function prepare(): Promise<void> {
  prepared ??= prepareNow();
  return prepared;
}

async function prepareNow(): Promise<void> {
  for (const image of [SIDECAR_IMAGE, NODE_IMAGE]) {
    await docker('image', 'inspect', image).catch((error) => {
      throw new Error(
        `Image ${image} or the container engine is not there; run "make test", which brings up both. ${error}`,
      );
    });
  }
  const lines = await docker('ps', '--all', '--filter', `label=${LABEL}`, '--format', `{{.ID}} {{.Label "${LABEL}"}}`);
  const stale = lines.split('\n').filter((line) => /^\w+ [0-9]+-/.test(line) && !alive(line.split(' ')[1] ?? ''));
  // Another file that starts at the same moment may be faster.
  for (const line of stale) await docker('rm', '--force', line.split(' ')[0] ?? '').catch(() => {});
  const networks = await docker('network', 'ls', '--filter', `label=${LABEL}`, '--format', '{{.Name}}');
  for (const name of networks.split('\n').filter((line) => line && !alive(line.split('-')[2] ?? '')))
    await docker('network', 'rm', name).catch(() => {});
}

/** Removes all containers of this run. */
export async function removeAll(): Promise<void> {
  const ids = await docker('ps', '--all', '--quiet', '--filter', `label=${LABEL}=${RUN_ID}`);
  if (ids) await docker('rm', '--force', '--volumes', ...ids.split('\n'));
  const networks = await docker('network', 'ls', '--quiet', '--filter', `label=${LABEL}=${RUN_ID}`);
  if (networks) await docker('network', 'rm', ...networks.split('\n'));
}

function alive(runId: string): boolean {
  try {
    return process.kill(Number.parseInt(runId, 10), 0);
  } catch {
    return false;
  }
}
