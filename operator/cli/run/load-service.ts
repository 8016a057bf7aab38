/** The user's file or folder, read anew at each rollout. */
import { realpathSync } from 'node:fs';
import { APP_PATH, loadFolder } from '../../local/app-folder.ts';
import { loadDocuments, type Service } from '../../local/documents.ts';
import type { Engine } from '../../local/engine.ts';
import { inputOf } from '../../local/text-file.ts';
import type { RunOptions } from './options.ts';

/**
 * @param nodeImage of a folder; '' where it is not known yet
 * @throws InputError when it cannot be used
 */
export function loadService({ path, isFolder, image, env, workers }: RunOptions, nodeImage: string): Service {
  if (isFolder) return loadFolder(path, image ?? nodeImage, { source: path, env, workers });
  return loadDocuments(inputOf(path, path), { source: path, image, env, workers });
}

/** Options of the engine for the workers: a folder is mounted, and its program is no more than the user. */
export function workerOptions({ path, isFolder }: RunOptions, { command }: Engine): string[] {
  if (!isFolder) return [];
  const [user, group] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  return [
    ...['--volume', `${realpathSync(path)}:${APP_PATH}:ro`, '--tmpfs', '/tmp:mode=1777', '--read-only'],
    ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
    // In Podman without root this user is root in there.
    ...(command === 'podman' ? [] : ['--user', `${user}:${group}`]),
  ];
}
