/** Node.js of another version in the container of a worker. */
import { existsSync } from 'node:fs';

/** The library that Node.js 26 needs besides those of a slim image; the official images have it. */
const LIBATOMIC = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/libatomic.so.1`;

/** How a binary gets into a worker's container, and the path that it has there. */
export function mounted(binary: string): { path: string; options: string[] } {
  const path = '/usr/local/bin/corelane-node';
  const library = existsSync(LIBATOMIC) ? ['--volume', `${LIBATOMIC}:${LIBATOMIC}:ro`] : [];
  return { path, options: ['--volume', `${binary}:${path}:ro`, ...library] };
}
