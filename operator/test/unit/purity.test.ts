/**
 * Folders that compute have no client, no clock and no environment, so that their tests need none and the same input
 * gives the same objects in every process.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../..', import.meta.url));
const PURE_FOLDERS = [
  'src/api',
  'src/render',
  'src/plan',
  'src/autoscale',
  'src/turns',
  'src/rollout',
  'check',
  'convert',
];
const files = PURE_FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: source })).sort();

/** Modules that a pure file may import at run time, beside other pure files. */
const ALLOWED_MODULES = new Set(['zod', 'node:crypto', 'node:zlib', 'yaml', 'ipaddr.js']);
/** What reads a clock, a random number, the environment, a file or the network. */
const IMPURE =
  /\b(Date\.now|new Date\b|performance\.|Math\.random|randomUUID|randomBytes|process\.|setTimeout|setInterval|setImmediate|fetch\(|globalThis|console\.|await import|require\()/;

/** Text of a file without its comments: those may speak of anything. */
function code(file: string): string {
  return readFileSync(join(source, file), 'utf8')
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/(^|\s)\/\/.*$/gm, '');
}

/** Modules that are imported for more than their types. */
function runtimeImports(text: string): string[] {
  const statements = text.matchAll(/^(?:import|export)\s+(?!type\b)[^;]*?from\s+'([^']+)'|^import\s+'([^']+)'/gm);
  return [...statements].map(([, from, bare]) => (from ?? bare) as string);
}

test('there are files to look at', () => {
  expect(files.length).toBeGreaterThan(10);
});

test.each(files)('%s imports only what computes', (file) => {
  const foreign = runtimeImports(code(file)).filter((module) => {
    if (!module.startsWith('.')) return !ALLOWED_MODULES.has(module);
    const target = resolve(source, dirname(file), module);
    expect(existsSync(target)).toBe(true);
    return !PURE_FOLDERS.some((folder) => relative(source, target).startsWith(`${folder}/`));
  });
  expect(foreign).toEqual([]);
});

test.each(files)('%s asks neither clock nor chance nor environment', (file) => {
  const found = code(file)
    .split('\n')
    .filter((line) => IMPURE.test(line));
  expect(found).toEqual([]);
});
