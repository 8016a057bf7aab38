/**
 * A place where nothing is cached: a clone, and folders of its own for everything that is made or downloaded, with an
 * engine in a network namespace of its own (two engines in one would fight about bridges and iptables). What Debian has
 * installed stays.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { LogLine } from './steps.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NAMESPACE = 'corelane-first-hour';
const LINK = { outside: 'clhour0', inside: 'clhour1' };
/** Between the engines' own ranges (10.213, 10.214) and Docker's. */
const ADDRESSES = { outside: '10.212.99.1', inside: '10.212.99.2', range: '10.212.99.0/30' };
/** Of a command of the place; a build that hangs must not hold the machine for ever. */
const SECONDS_MAX = 5_400;

/** What the `make` that runs the bench, or its user, may have set for another engine or clone. */
const OF_THIS_CLONE = /^(MAKE|MFLAGS|CORELANE_|DOCKER_|KUBECONFIG)/;

export interface Place {
  /** Runs a command in the clone and returns its lines as they came. `onLine` sees each. */
  run(
    command: string[],
    onLine?: (line: LogLine) => void,
  ): Promise<{ code: number; seconds: number; lines: LogLine[] }>;
  /** Takes away all that was made in it. */
  remove(): Promise<void>;
}

const quietly = (program: string, ...args: string[]) => {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
  } catch {
    // what is not there need not be removed
  }
};
const must = (program: string, ...args: string[]) =>
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });

/** Rules of the machine's own namespace: what comes from the place goes out under the machine's address. */
const RULES = [
  ['-t', 'nat', 'POSTROUTING', '-s', ADDRESSES.range, '!', '-d', ADDRESSES.range, '-j', 'MASQUERADE'],
  ['-t', 'filter', 'FORWARD', '-i', LINK.outside, '-j', 'ACCEPT'],
  ['-t', 'filter', 'FORWARD', '-o', LINK.outside, '-j', 'ACCEPT'],
];

function removeNamespace(): void {
  for (const [, table, chain, ...rule] of RULES) {
    quietly('iptables', '-t', table as string, '-D', chain as string, ...rule);
  }
  quietly('ip', 'link', 'delete', LINK.outside);
  quietly('ip', 'netns', 'delete', NAMESPACE);
}

function makeNamespace(): void {
  removeNamespace();
  must('ip', 'netns', 'add', NAMESPACE);
  must('ip', 'link', 'add', LINK.outside, 'type', 'veth', 'peer', 'name', LINK.inside, 'netns', NAMESPACE);
  must('ip', 'address', 'add', `${ADDRESSES.outside}/30`, 'dev', LINK.outside);
  must('ip', 'link', 'set', LINK.outside, 'up');
  for (const [...command] of [
    ['address', 'add', `${ADDRESSES.inside}/30`, 'dev', LINK.inside],
    ['link', 'set', LINK.inside, 'up'],
    ['link', 'set', 'lo', 'up'],
    ['route', 'add', 'default', 'via', ADDRESSES.outside],
  ]) {
    must('ip', '-n', NAMESPACE, ...command);
  }
  must('sysctl', '-qw', 'net.ipv4.ip_forward=1');
  for (const [, table, chain, ...rule] of RULES)
    must('iptables', '-t', table as string, '-I', chain as string, ...rule);
}

/** @throws Error where the place could not be cold, or its engine not its own */
function check(): void {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    throw new Error('the first hour is measured on Linux, by root: it wants an engine and a network of its own');
  }
  try {
    execFileSync('docker', ['version'], { stdio: 'ignore', env: { PATH: process.env.PATH } });
  } catch {
    return;
  }
  throw new Error("this machine's own Docker answers, and what it has cached is not ours to remove. Stop it first");
}

/** Makes a place with the last commit of this clone. */
export function makePlace(): Place {
  check();
  // Not measured, since Debian's mirror is what it would measure; and the namespace below wants two of them at once.
  // From Debian 13 on docker.io has the engine only.
  const packages = 'apt_install docker.io iptables iproute2 ca-certificates; have docker || apt_install docker-cli';
  must('bash', '-c', `source ${ROOT}e2e/cluster/lib.sh; ${packages}`);
  const folder = mkdtempSync(join(tmpdir(), 'corelane-first-hour-'));
  const clone = join(folder, 'corelane');
  makeNamespace();
  must('git', 'clone', '--quiet', ROOT, clone);
  const folders = {
    CORELANE_CACHE: join(folder, 'cache'),
    CORELANE_RUN_DIR: join(folder, 'run'),
    GOMODCACHE: join(folder, 'gomod'),
    GOCACHE: join(folder, 'gobuild'),
    npm_config_cache: join(folder, 'npm'),
  };
  for (const path of Object.values(folders)) mkdirSync(path);
  const inherited = Object.entries(process.env).filter(([name]) => !OF_THIS_CLONE.test(name));
  const env = { ...Object.fromEntries(inherited), ...folders };
  const run: Place['run'] = (command, onLine = () => {}) =>
    runIn(
      clone,
      env,
      ['nsenter', `--net=/run/netns/${NAMESPACE}`, 'timeout', '--foreground', String(SECONDS_MAX), ...command],
      onLine,
    );
  const remove = async () => {
    await run(['e2e/cluster/clean.sh']);
    await run(['go', 'clean', '-modcache']);
    rmSync(folder, { recursive: true, force: true });
    removeNamespace();
  };
  return { run, remove };
}

async function runIn(
  cwd: string,
  env: NodeJS.ProcessEnv,
  [program = '', ...args]: string[],
  onLine: (line: LogLine) => void,
) {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1_000;
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: LogLine[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (text) => {
      const line = { atS: seconds(), text };
      lines.push(line);
      onLine(line);
    });
  }
  const code = await new Promise<number>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve(status ?? 1));
  });
  return { code, seconds: seconds(), lines };
}
