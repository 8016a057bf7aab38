/** The page that a browser gets where there is none. */
import { LIVE_MOUNT_PATH, SHELL_MOUNT_PATH } from '../../api/names.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';

export interface Fallback {
  /** Folder with the page. */
  folder: string;
  status: number;
  /** Paths whose requests may get it, without a slash at the end; an empty one is all paths. */
  paths: string[];
}

/** The fallback of a defaulted spec; undefined if browsers get what programs get. */
export function fallback({ fallback }: RenderServiceSpec): Fallback | undefined {
  if (!fallback) return undefined;
  return {
    folder: fallback.configMap ? SHELL_MOUNT_PATH : LIVE_MOUNT_PATH,
    status: fallback.status,
    paths: fallback.paths.map((path) => path.replace(/\/$/, '')),
  };
}
