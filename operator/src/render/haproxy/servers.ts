/** A worker as server of a backend. */
import type { WorkerModel } from '../model/index.ts';
import { whole, word } from '../safe.ts';

/** The line of the worker itself (its own port), or of its supervisor. What else there is to say follows. */
export function serverAt({ name }: WorkerModel, port: number): string {
  return `server ${word(name, 'worker name')} 127.0.0.1:${whole(port, 'worker port')}`;
}
