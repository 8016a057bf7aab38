/**
 * The apps of examples/frameworks: as images, made by their own Dockerfiles, and as folders for `corelane run`. Docker
 * keeps what it has made: packages as long as the lock file is the same, the rest until a file changes.
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { RenderServiceSpecInput } from '../../../operator/src/api/spec.ts';
import { docker, NODE_IMAGE, prepare } from './docker.ts';
import { CACHE, filesBelow } from './kept.ts';
import type { Call, WorkerOptions } from './pod.ts';

const EXAMPLES = fileURLToPath(new URL('../../../examples/frameworks', import.meta.url));
/** Packages come from the network, which a bare machine's bridge may not reach. */
const BUILD = ['build', '--quiet', '--network=host', '--build-arg', `NODE_IMAGE=${NODE_IMAGE}`];

/** The spec of an example's renderservice.yaml. */
export function specOf(name: string): RenderServiceSpecInput {
  return parse(readFileSync(join(EXAMPLES, name, 'renderservice.yaml'), 'utf8')).spec;
}

/** An example as a worker: its image with that command and the variables of its RenderService. */
export async function exampleWorker(name: string, env: Record<string, string> = {}): Promise<WorkerOptions> {
  const [container] = specOf(name).template.spec?.containers ?? [];
  const own = Object.fromEntries((container?.env ?? []).map(({ name: key, value }) => [key, value ?? '']));
  return { image: await exampleImage(name), folder: null, command: null, env: { ...own, ...env } };
}

/** Image of an example: its id, since another clone may give its RenderService's name to another one. */
async function exampleImage(name: string): Promise<string> {
  await prepare();
  return built(name, '--tag', specOf(name).template.spec?.containers[0]?.image ?? name);
}

/** An example as its author has it before `corelane run .`: with its packages, and built. */
export async function exampleFolder(name: string): Promise<string> {
  const hash = createHash('sha256').update(NODE_IMAGE);
  for (const file of filesBelow(join(EXAMPLES, name))) hash.update(`${file}\0`).update(readFileSync(file));
  const ready = join(CACHE, `framework-${name}-${hash.digest('hex').slice(0, 12)}`);
  if (existsSync(ready)) return ready;
  await prepare();
  const container = await docker('create', await built(name, '--target', 'build'));
  const folder = `${ready}.${process.pid}`;
  try {
    mkdirSync(CACHE, { recursive: true });
    await docker('cp', `${container}:/app`, folder);
    // What the image is made without.
    cpSync(join(EXAMPLES, name), folder, { recursive: true });
  } finally {
    await docker('rm', '--force', container);
  }
  renameSync(folder, ready);
  return ready;
}

async function built(name: string, ...options: string[]): Promise<string> {
  const build = docker(...BUILD, ...options, join(EXAMPLES, name));
  const id = await build.catch((error) => {
    throw new Error(`the image of examples/frameworks/${name} cannot be built: ${error.message}`);
  });
  return id.trim();
}

/** How Hypernova is asked for a component: it answers nothing but POST. */
export function batch(name: string): [path: string, call: Call] {
  // Long enough to be compressed.
  const body = JSON.stringify({ one: { name, data: { title: 'page '.repeat(400) } } });
  return ['/batch', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body }];
}
