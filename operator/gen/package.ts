/**
 * Writes the npm package of the command line into FOLDER, ready for `npm pack`:
 *   node operator/gen/package.ts FOLDER
 *
 * Its folders are those of the repository: `../..` of a bundled file is the package, as `../..` of its source is the
 * clone. So commands find the Dockerfile and `sidecar/` in both: `corelane run` builds the image of these. What a
 * source reads from beside itself lies beside the bundle.
 */
import { execFileSync } from 'node:child_process';
import {
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { bundlePage } from '../cli/dashboard/bundle.ts';
import { type Bom, bundleBom, type Metafile, packagesOf } from './sbom.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What the published package.json takes from the repository's. No dependencies: all of them are in the bundle. */
const KEPT = ['name', 'version', 'description', 'license', 'type', 'engines'] as const;

/** One bundle, a file per command: `plan` does not load the Kubernetes client that `profile` needs. */
async function bundle(folder: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['operator/cli/main.ts'],
    outdir: join(folder, 'operator/cli'),
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node22.19',
    format: 'esm',
    // Not minified: who installs it can read it, and a stack says where.
    keepNames: true,
    legalComments: 'none',
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
    // esbuild makes the page of a clone; here the page is made below.
    external: ['supports-color', 'esbuild'],
    metafile: true,
    logLevel: 'warning',
  });
  return metafile;
}

/** The page of `corelane dashboard`, beside the bundle, which looks for it there. */
async function page(folder: string): Promise<Metafile> {
  const { outputFiles, metafile } = await bundlePage();
  for (const { path, contents } of outputFiles) writeFileSync(join(folder, 'operator/cli', basename(path)), contents);
  return metafile;
}

/** Files beside our own sources in the bundle that are no sources: a source may read them (`import.meta.url`). */
function filesBesideSources(meta: Metafile): string[] {
  const sources = Object.values(meta.outputs).flatMap(({ inputs }) => Object.keys(inputs));
  const folders = new Set(sources.filter((file) => file.startsWith('operator/')).map((file) => dirname(file)));
  return [...folders].flatMap((path) =>
    readdirSync(join(ROOT, path), { withFileTypes: true })
      .filter((entry) => entry.isFile() && !/\.(ts|md)$/.test(entry.name))
      .map(({ name }) => join(path, name)),
  );
}

/** Paths of the packages in the bundle that a worker's supervisor sends spans with, which is made here as well. */
function packagesOfSpans(): string[] {
  execFileSync(join(ROOT, 'sidecar/spans/bundle.sh'));
  const { components } = JSON.parse(readFileSync(join(ROOT, 'sidecar/runtime/dist/spans.cdx.json'), 'utf8')) as Bom;
  return components.map(({ group, name }) => `node_modules/${group ? `${group}/` : ''}${name}`);
}

/** Licence texts of all packages that are in the bundles: their authors want them passed on. */
function thirdPartyLicences(paths: string[]): string {
  const texts = paths.map((path) => {
    const { version, license } = JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8'));
    const file = readdirSync(join(ROOT, path)).find((name) => /^licen[cs]e/i.test(name));
    const text = file ? readFileSync(join(ROOT, path, file), 'utf8').trim() : `${license} (it has no text of its own)`;
    return `${path.replace(/.*node_modules\//, '')} ${version}\n\n${text}\n`;
  });
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}

/** What the images are built of: the lines of .dockerignore that let something of `sidecar/` through. */
function sidecarFolders(): string[] {
  const lines = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n');
  return lines.filter((line) => line.startsWith('!sidecar/')).map((line) => line.slice(1));
}

async function writePackage(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const write = (path: string, text: string) => writeFileSync(join(folder, path), text);
  const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;

  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const bin = 'operator/bin/corelane.mjs';
  write(
    'package.json',
    json({
      ...Object.fromEntries(KEPT.map((key) => [key, own[key]])),
      // The second name makes it a plugin of kubectl wherever it is installed globally.
      bin: { corelane: bin, 'kubectl-corelane': bin },
      files: ['operator', 'sidecar', 'Dockerfile', '.dockerignore', 'THIRD-PARTY-LICENSES', 'bundle.cdx.json'],
    }),
  );
  mkdirSync(join(folder, dirname(bin)), { recursive: true });
  copyFileSync(join(ROOT, 'operator/bin/packaged.mjs'), join(folder, bin));

  const cli = await bundle(folder);
  const meta = { outputs: { ...cli.outputs, ...(await page(folder)).outputs } };
  for (const path of filesBesideSources(cli)) {
    copyFileSync(join(ROOT, path), join(folder, 'operator/cli', basename(path)), constants.COPYFILE_EXCL);
  }
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  write('bundle.cdx.json', json(bundleBom(meta, lock, 'corelane')));
  write('THIRD-PARTY-LICENSES', thirdPartyLicences([...new Set([...packagesOf(meta), ...packagesOfSpans()])].sort()));

  for (const path of ['LICENSE', 'Dockerfile', '.dockerignore']) copyFileSync(join(ROOT, path), join(folder, path));
  copyFileSync(join(ROOT, 'operator/cli/README.md'), join(folder, 'README.md'));
  for (const path of sidecarFolders()) {
    if (!existsSync(join(ROOT, path))) throw new Error(`.dockerignore names ${path}, which is not there`);
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  }
}

const [folder] = process.argv.slice(2);
if (!folder) throw new Error('usage: package.ts FOLDER');
await writePackage(resolve(folder));
