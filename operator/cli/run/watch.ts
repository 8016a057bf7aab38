/** Tells when a file of a folder has changed. */
import { existsSync, type FSWatcher, lstatSync, readdirSync, watch } from 'node:fs';
import { join } from 'node:path';

/** An editor saves in several steps, a build writes many files. */
const DEBOUNCE_MS = 200;
/** Not the program's own sources; thousands of folders. */
const IGNORED = new Set(['node_modules', '.git']);
/** What editors write beside the file. */
const IGNORED_FILES = /(^\.#|~$|\.sw[a-z]$|^4913$)/;
/** The kernel has a limit of its own, for all programs together. */
const FOLDERS_MAX = 2_000;

/**
 * Each folder has a watcher of its own: Node's recursive one opens every file below, those of node_modules included.
 */
export class Watch {
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #onChange: (files: string[]) => void;
  readonly #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  /** @param onChange gets the files, relative to the folder */
  constructor(folder: string, onChange: (files: string[]) => void) {
    this.#onChange = onChange;
    this.#add(folder, '');
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
  }

  #add(root: string, folder: string): void {
    const path = join(root, folder);
    if (this.#watchers.has(folder) || this.#watchers.size >= FOLDERS_MAX) return;
    try {
      const watcher = watch(path, (_event, name) => this.#see(root, folder, name ?? ''));
      watcher.on('error', () => this.#remove(folder));
      this.#watchers.set(folder, watcher);
      for (const entry of readdirSync(path, { withFileTypes: true }))
        if (entry.isDirectory() && !IGNORED.has(entry.name)) this.#add(root, join(folder, entry.name));
    } catch {
      // It has gone again.
    }
  }

  #remove(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  #see(root: string, folder: string, name: string): void {
    if (IGNORED.has(name) || IGNORED_FILES.test(name)) return;
    const file = join(folder, name);
    if (!existsSync(join(root, file))) this.#remove(file);
    else if (!this.#watchers.has(file) && isFolder(join(root, file))) this.#add(root, file);
    this.#changed.add(file);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const files = [...this.#changed];
      this.#changed.clear();
      this.#onChange(files);
    }, DEBOUNCE_MS);
  }
}

/** A link is none: it may lead out of the folder. */
function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
