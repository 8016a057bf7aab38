/** Node.js of every major that npm offers as a binary package, from a cache outside the clone. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The oldest that is promised, and one of each major since. NODE_VERSIONS=24.21.0 in the environment tries that one only. */
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

/** Path of the binary of a version; installs it if it is not in the cache. */
export async function nodeBinary(version: string): Promise<string> {
  const folder = join(CACHE, `node-${version}`);
  const binary = join(folder, 'node_modules/node/bin/node');
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', `node@${version}`], { cwd: folder });
  return binary;
}
