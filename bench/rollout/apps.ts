/**
 * Two versions of the apps of examples/frameworks, as images: the example with one page more, which loads parts of
 * itself upon a click. Their text is another one in each version, and so are the names of their files.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { docker, NODE_IMAGE } from '../../e2e/harness/engine/docker.ts';
import { specOf } from '../../e2e/harness/engine/examples.ts';
import { filesBelow } from '../../e2e/harness/engine/kept.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples/frameworks', import.meta.url));
/** The pages; `VERSION` stands for it. */
const OWN = fileURLToPath(new URL('apps', import.meta.url));
export const APPS = ['next', 'nuxt'] as const;
export type App = (typeof APPS)[number];
export const VERSIONS = ['1', '2'] as const;
export type Version = (typeof VERSIONS)[number];
/** Half of them are asked for by the first click. */
export const PARTS = 6;
/** The page with them. */
export const PATH = '/parts';

/** Long enough that no bundler puts it into the file of the page. */
const PADDING_CHARACTERS = 4_000;

/** What somebody who has tried the example in its folder has there. */
const MADE = /\/(node_modules|\.next|\.nuxt|\.output)$/;

const numbers = Array.from({ length: PARTS }, (_unused, number) => number);

function part(version: Version, number: number): string {
  const text = `part ${number} of version ${version}`;
  return `export const text = '${text}';\nexport const padding = '${`${text} `.repeat(PADDING_CHARACTERS / text.length)}';\n`;
}

/** What a version has beside the example, by path. */
export function filesOf(app: App, version: Version): Record<string, string> {
  const read = (folder: string) =>
    filesBelow(folder).map((file) => [relative(folder, file), readFileSync(file, 'utf8').replace('VERSION', version)]);
  const parts = numbers.map((number) => [`app/parts/part-${number}.js`, part(version, number)]);
  return Object.fromEntries([...read(join(OWN, 'both')), ...read(join(OWN, app)), ...parts]);
}

/** Builds the image of a version, and gives its id. Docker keeps what it has made. */
export async function buildApp(app: App, version: Version): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-bench-app-'));
  try {
    const isSource = (path: string) => !MADE.test(path);
    cpSync(join(EXAMPLES, app), folder, { recursive: true, filter: isSource });
    for (const [path, text] of Object.entries(filesOf(app, version))) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    const tag = `corelane.local/bench-rollout-${app}:${version}`;
    // Packages come from the network, which a bare machine's bridge may not reach.
    const options = ['--quiet', '--network=host', '--build-arg', `NODE_IMAGE=${NODE_IMAGE}`, '--tag', tag];
    return (await docker('build', ...options, folder)).trim();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Variables of the worker in the example's RenderService. */
export function environmentOf(app: App): Record<string, string> {
  const [container] = specOf(app).template.spec?.containers ?? [];
  return Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value ?? '']));
}
