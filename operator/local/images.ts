/** Which images are used, and how they get there. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Engine } from './engine.ts';

/** The clone, or the npm package, which has the same folders. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** In a clone: makes its images, as far as they are not there, with base images where no registry is reached. */
const SCRIPT = join(ROOT, 'e2e/images.sh');
const NODE_IMAGE = 'node:24-trixie-slim';
const FILES = ['Dockerfile', '.dockerignore', 'sidecar/**'];

/** Image of the proxies and the worker runtime: the one that the environment names, else made of the sources here. */
export async function sidecarImage(engine: Engine): Promise<string> {
  const named = process.env.CORELANE_SIDECAR_IMAGE;
  if (named) return named;
  return existsSync(SCRIPT) ? fromClone(engine, 'sidecar') : built(engine);
}

/** A plain Node.js image for a folder. */
export async function nodeImage(engine: Engine): Promise<string> {
  const named = process.env.CORELANE_NODE_IMAGE;
  if (named) return named;
  return existsSync(SCRIPT) ? fromClone(engine, 'node') : NODE_IMAGE;
}

/**
 * Pulls an image that is not there.
 * @throws Error with the engine's last words
 */
export async function pulled(engine: Engine, image: string): Promise<string> {
  const isThere = await engine.run('image', 'inspect', image).then(Boolean, () => false);
  if (isThere) return image;
  await engine.run('pull', image).catch((error) => {
    throw new Error(
      `the image ${image} is not there and cannot be pulled: build it, or name another one by --image\n  ${error.message}`,
    );
  });
  return image;
}

/** What the script prints is one NAME=IMAGE per line; what it builds it says on standard error. */
async function fromClone({ env }: Engine, name: string): Promise<string> {
  const { stdout } = await promisify(execFile)(SCRIPT, [name], { env: { ...process.env, ...env } }).catch((error) => {
    throw new Error(`the image ${name} cannot be built:\n${error.stderr}`);
  });
  const line = stdout.split('\n').find((text) => text.startsWith(`${name.toUpperCase()}_IMAGE=`));
  if (!line) throw new Error(`e2e/images.sh ${name} names no image`);
  return line.slice(line.indexOf('=') + 1);
}

/** The tag is a hash of the sources: the same package builds once. */
async function built(engine: Engine): Promise<string> {
  const hash = createHash('sha256');
  const files = globSync(FILES, { cwd: ROOT }).filter((file) => statSync(join(ROOT, file)).isFile());
  for (const file of files.sort()) hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)));
  const image = `corelane.local/sidecar:${hash.digest('hex').slice(0, 12)}`;
  const isThere = await engine.run('image', 'inspect', image).then(Boolean, () => false);
  if (isThere) return image;
  await engine.run('build', '--target', 'sidecar', '--tag', image, ROOT).catch((error) => {
    throw new Error(
      `the image of the proxies cannot be built: ${error.message}\nCORELANE_SIDECAR_IMAGE names one that is there`,
    );
  });
  return image;
}
