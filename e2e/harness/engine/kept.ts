/** Where what takes long to make is kept, and the files by which it is known. */
import { readdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export const CACHE = process.env.CORELANE_CACHE ?? join(homedir(), '.cache', 'corelane');

/** In order, so that a hash of them is always the same. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .sort();
}
