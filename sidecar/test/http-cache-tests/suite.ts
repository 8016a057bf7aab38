/** http-cache-tests (cache-tests.fyi): what RFC 9111 asks of a cache. */
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withPackages } from '../frameworks/application.ts';

/** Where containers have the suite. */
const MOUNT = '/suite';
/** Its origin, which all requests of a test must reach: its state is in one process. */
export const ORIGIN = ['node', `${MOUNT}/suite.mjs`, 'origin'];

/** What became of a test. */
export interface CacheTest {
  id: string;
  suite: string;
  kind: 'required' | 'optimal' | 'check';
  passed: boolean;
  /** Which of its checks has failed. */
  why?: string;
  /** `Cache-Status` of the answers, in order. */
  said?: (string | null)[];
}

/** The suite with its packages: the folder, the option by which a container gets it, and the program. */
export async function theSuite(): Promise<{ mount: string[]; program: string }> {
  const folder = await withPackages(dirname(fileURLToPath(import.meta.url)));
  return { mount: ['--volume', `${folder}:${MOUNT}:ro`], program: `${folder}/suite.mjs` };
}

/** Arguments of Node.js for the client, in a container or with the program's own path. */
export function client(url: string, kind?: CacheTest['kind'], program = `${MOUNT}/suite.mjs`): string[] {
  return [program, 'client', url, ...(kind ? [kind] : [])];
}

/** What the client has printed. */
export function outcomes(text: string): CacheTest[] {
  return JSON.parse(text);
}
