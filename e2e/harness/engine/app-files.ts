/** Files of an application, as its image would have them: a folder of this machine that workers mount. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Where the folder is in the containers. */
export const APP_FILES = '/srv/app';
/** When the image was built. */
export const BUILT = new Date('2026-01-02T03:04:05Z');

export class AppFiles {
  readonly folder = mkdtempSync(join(tmpdir(), 'corelane-assets-'));

  /** @param files text by path; a path with a link in it has `-> target` as its text */
  constructor(files: Record<string, string | Buffer>) {
    chmodSync(this.folder, 0o755);
    for (const [path, content] of Object.entries(files)) this.write(path, content);
  }

  write(path: string, content: string | Buffer): void {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    const [, target] = /^-> (.*)$/.exec(typeof content === 'string' ? content : '') ?? [];
    if (target === undefined) {
      writeFileSync(file, content);
      utimesSync(file, BUILT, BUILT);
    } else symlinkSync(target, file);
  }

  /** Options of the engine for a worker. */
  get options(): string[] {
    return ['--volume', `${this.folder}:${APP_FILES}:ro`];
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
