/** Apps of this folder, with their packages, which are kept in the cache; e2e/harness/engine/examples.ts has others. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync, renameSync } from 'node:fs';
import { basename, delimiter, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CACHE, filesBelow } from '../../../e2e/harness/engine/kept.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
/** What every app does. */
const COMMON = join(FOLDER, 'work.mjs');

/** The line of `work.mjs` at which an app is stuck, and the one above. */
export function stuckLines(): number[] {
  const line = readFileSync(COMMON, 'utf8')
    .split('\n')
    .findIndex((text) => text.endsWith('// stuck: loop'));
  return [line + 1, line];
}

/** Folder of an app that is ready to run: with its packages. */
export function application(name: string): Promise<string> {
  return withPackages(join(FOLDER, name), [COMMON]);
}

/** A copy of a folder with the packages that its package-lock.json has, and with more files. */
export async function withPackages(source: string, more: string[] = []): Promise<string> {
  const hash = createHash('sha256').update(process.version);
  for (const file of [...more, ...filesBelow(source)])
    hash.update(`${relative(source, file)}\0`).update(readFileSync(file));
  const ready = join(CACHE, `framework-${basename(source)}-${hash.digest('hex').slice(0, 12)}`);
  if (existsSync(ready)) return ready;
  const folder = `${ready}.${process.pid}`;
  cpSync(source, folder, { recursive: true });
  for (const file of more) cpSync(file, join(folder, basename(file)));
  await install(folder);
  renameSync(folder, ready);
  return ready;
}

async function install(folder: string): Promise<void> {
  const description = join(folder, 'package.json');
  if (!existsSync(description)) return;
  // This Node.js: the system's may be too old for them.
  const env = {
    ...process.env,
    NODE_OPTIONS: '',
    NODE_ENV: '',
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  };
  const npm = (...args: string[]) =>
    promisify(execFile)('npm', args, { cwd: folder, env, maxBuffer: 64 * 1024 * 1024 });
  // Not `npm ci`: it insists on the binaries for all other platforms, which not every registry has.
  await npm('install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
  onlyWhatIsLocked(folder);
}

/** Fails if npm has installed a package past the lock file: that would be one without a hash that somebody has seen. */
function onlyWhatIsLocked(folder: string): void {
  const packages = (path: string): Record<string, { version?: string; integrity?: string }> =>
    JSON.parse(readFileSync(join(folder, path), 'utf8')).packages;
  const locked = packages('package-lock.json');
  for (const [path, { version, integrity }] of Object.entries(packages('node_modules/.package-lock.json'))) {
    const wanted = locked[path];
    if (wanted?.version !== version || wanted?.integrity !== integrity) {
      throw new Error(
        `${path} ${version} was installed, but package-lock.json has ${wanted?.version ?? 'no such package'}`,
      );
    }
  }
}
