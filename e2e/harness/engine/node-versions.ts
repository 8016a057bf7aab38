/** Node.js of every major that npm offers as a binary package, from a cache outside the clone. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/**
 * The oldest that is promised, and one of each major since. NODE_VERSIONS=24.21.0 in the environment tries that one
 * only.
 */
export const NODE_VERSIONS = process.env.NODE_VERSIONS?.split(',') ?? [
  '18.19.1',
  '19.8.1',
  '20.20.2',
  '21.7.3',
  '22.20.0',
  '23.11.1',
  '24.21.0',
  '25.9.0',
  '26.10.0',
];
const CACHE = process.env.CORELANE_CACHE ?? join(homedir(), '.cache', 'corelane');
const TARBALL = fileURLToPath(new URL('../../cluster/npm-tarball.sh', import.meta.url));
const run = promisify(execFile);

/**
 * Path of the binary of a version; downloads it if it is not in the cache. Its hash stands in e2e/cluster/npm.sums: the
 * package `node` would run a script that installs whatever the registry has.
 */
export async function nodeBinary(version: string): Promise<string> {
  const binary = join(CACHE, `node-${version}`, 'bin/node');
  if (existsSync(binary)) return binary;
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, `node-${version}.`));
  const { stdout } = await run(TARBALL, [platformPackage(), version, folder]);
  await run('tar', ['-xzf', stdout.trim(), '-C', folder, 'package/bin/node']);
  mkdirSync(dirname(binary), { recursive: true });
  // Two runs may do this at the same time; a rename puts a whole file there.
  renameSync(join(folder, 'package/bin/node'), binary);
  rmSync(folder, { recursive: true });
  return binary;
}

/** The npm package that holds Node.js for this machine. */
function platformPackage(): string {
  const prefix = process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';
  return `${prefix}-${process.platform}-${process.arch}`;
}
