/** A folder with a Node.js program as what is to run: its "start" on a plain Node.js image, the folder mounted. */
import { existsSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { V1EnvVar } from '@kubernetes/client-node';
import { z } from 'zod';
import { API_VERSION, KIND, NAME_LENGTH_MAX } from '../src/api/names.ts';
import { workerTemplate } from '../src/api/worker-template.ts';
import { InputError, type LoadOptions, loadDocuments, type Service } from './documents.ts';
import { inputOf } from './text-file.ts';

/** Where the program finds its folder. */
export const APP_PATH = '/app';
const WORKERS = 2;
const RENDER_SERVICE = 'renderservice.yaml';
/** Used where package.json has no "start", as npm does it with the first one. */
const PROGRAMS = ['server.js', 'server.mjs', 'server.cjs', 'index.js', 'index.mjs'];

const packageJson = z.looseObject({
  name: z.string().optional().catch(undefined),
  main: z.string().optional(),
  scripts: z.record(z.string(), z.string()).optional(),
});

/**
 * @param image of Node.js; '' where it is not known yet
 * @throws InputError when there is nothing to start
 */
export function loadFolder(path: string, image: string, { env = [], ...options }: LoadOptions): Service {
  const folder = resolve(path);
  const { name, command } = programOf(folder, options.source);
  const program = { command, workingDir: APP_PATH };
  const load = (text: string, source: string) =>
    loadDocuments(text, { ...options, source, image, env: withDefaults(env, folder) });
  const file = join(folder, RENDER_SERVICE);
  if (!isFile(file)) {
    const template = { spec: { containers: [{ name: 'worker', ...program }] } };
    const spec = { workersPerPod: WORKERS, template };
    // As JSON: a name such as "on" stays text.
    return load(JSON.stringify({ apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec }), options.source);
  }
  const service = load(inputOf(file, file), file);
  const own = workerTemplate(service.spec.template.spec?.containers ?? []);
  const replaced = (['image', 'command', 'args', 'workingDir'] as const).filter((field) => own?.[field] != null);
  return {
    ...service,
    worker: { ...service.worker, name: 'worker', ...program, args: undefined },
    leftOut: [...service.leftOut, ...replaced.map((field) => `${field} of the worker: the folder's own program runs`)],
  };
}

/** As in a cluster, where images are made for production; React takes three times the time without. */
function withDefaults(env: V1EnvVar[], folder: string): V1EnvVar[] {
  const path = `${APP_PATH}/node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
  const defaults = [
    { name: 'NODE_ENV', value: 'production' },
    // Where it may write. The user of this machine has no folder in the image.
    { name: 'HOME', value: '/tmp' },
    ...(existsSync(join(folder, 'node_modules/.bin')) ? [{ name: 'PATH', value: path }] : []),
  ];
  return [...defaults.filter(({ name }) => !env.some((own) => own.name === name)), ...env];
}

function programOf(folder: string, source: string): { name: string; command: string[] } {
  const { name, main, scripts } = readPackage(folder, source);
  const found = { name: serviceName(name ?? basename(folder)) };
  // Without npm, which would stay in memory as one more process.
  if (scripts?.start) return { ...found, command: ['sh', '-c', scripts.start] };
  const program = [main, ...PROGRAMS].find((file) => file && isFile(join(folder, file)));
  if (program) return { ...found, command: ['node', program] };
  throw new InputError(
    `${source} has nothing to start: a "start" script or "main" in package.json, or one of ${PROGRAMS.join(', ')}`,
  );
}

function readPackage(folder: string, source: string): z.output<typeof packageJson> {
  const file = join(folder, 'package.json');
  if (!isFile(file)) return {};
  try {
    return packageJson.parse(JSON.parse(inputOf(file, file)));
  } catch (error) {
    throw new InputError(`${source}/package.json cannot be used: ${(error as Error).message}`);
  }
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** A name that a RenderService may have: `@acme/Shop_2` becomes `shop-2`. */
function serviceName(text: string): string {
  const name = text
    .replace(/^@[^/]*\//, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, NAME_LENGTH_MAX)
    .replace(/-+$/, '');
  return name || 'app';
}
