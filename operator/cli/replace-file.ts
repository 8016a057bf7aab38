/**
 * Files that commands write into a folder that may be somebody else's. What is in them is of a program in production,
 * and for nobody else's eyes: a heap snapshot has all that it had in memory, keys and pages of users among it.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const OWN = 0o600;

/** Not through a link of that name, which a folder of somebody else may have. */
export function replaceFile(file: string, text: string): void {
  const fresh = freshFile(file);
  writeFileSync(fresh, text, { flag: 'wx', mode: OWN });
  renameSync(fresh, file);
}

/** The same for what `write` writes to a file that is there, and empty; half of one is not left. */
export async function replaceFileBy(file: string, write: (fresh: string) => Promise<void>): Promise<void> {
  const fresh = freshFile(file);
  closeSync(openSync(fresh, 'wx', OWN));
  try {
    await write(fresh);
    renameSync(fresh, file);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
}

function freshFile(file: string): string {
  return `${file}.${randomUUID()}`;
}
