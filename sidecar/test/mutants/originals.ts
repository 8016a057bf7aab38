/** The files of the data plane as they are, for mutants to change. */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderServiceSpec } from '../../../operator/src/api/validated-spec.ts';
import { renderConfig } from '../../../operator/src/render/index.ts';
import { type Mutant, type MutantFile, RUNTIME_MODULES } from './mutant.ts';
import { mutated } from './mutants.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** C of process 1, nginx' module, what copies assets, and the workers' hook: the image is made anew with it. */
export const PROGRAM_FILES: Partial<Record<MutantFile, string>> = Object.fromEntries(
  globSync('sidecar/{assets,drain,entrypoint,nginx}/*.c', { cwd: ROOT }).map((path) => [basename(path), path]),
);

/** Where the files that are not made from a spec stand in the repository, and in the image. */
export const IMAGE_FILES: Partial<Record<MutantFile, [source: string, target: string]>> = {
  ...Object.fromEntries(
    globSync('**/*.lua', { cwd: `${ROOT}/sidecar/haproxy` }).map((name) => [
      name,
      [`sidecar/haproxy/${name}`, `/usr/share/corelane/haproxy/${name}`],
    ]),
  ),
  'corelane-drain': ['sidecar/bin/corelane-drain', '/usr/local/bin/corelane-drain'],
  ...Object.fromEntries(
    RUNTIME_MODULES.map((name) => [
      `${name}.cjs`,
      [`sidecar/runtime/${name}.cjs`, `/usr/share/corelane/runtime/${name}.cjs`],
    ]),
  ),
};

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const ASSETS = [
  { path: '/a/', from: 'a', immutable: true, mutable: ['/a/b.json'] },
  { path: '/b/', from: 'b', missing: 'NotFound' },
  { path: '/c/', from: 'c', hashedNames: true },
];
const CLASSES = [
  { name: 'api', match: [{ pathPrefix: '/api/' }], replay: false },
  { name: 'image', match: [{ path: '/image' }], cache: true },
];
const specs: object[] = [
  ...(['Safe', 'Always'] as const).map((replay) => ({
    replay,
    webSockets: { enabled: replay === 'Always' },
    limits: { perClient: { requests: 10 } },
    ...(replay === 'Always' && { assets: ASSETS, fallback: { html: 'shell' }, priority: {}, deadlines: {} }),
    compression: { enabled: replay === 'Always' },
    cache: { enabled: replay === 'Safe', shared: 'Peers' },
    ...(replay === 'Safe' && { tracing: { samplingPercent: 12.5 } }),
  })),
  { classes: CLASSES, cache: { enabled: true }, webSockets: { enabled: true } },
  { framework: 'Next', cache: { enabled: true, bypass: { cookies: ['connect.sid'] } } },
  { tracing: { endpoint: 'http://collector:4318' }, accessLog: { samplingPercent: 50 } },
];
const configs = specs.map((spec) => renderConfig(renderServiceSpec.parse({ template, ...spec })));

/** The file before the mutation, in every variant that a mutant may be about. */
export function originals({ file }: Mutant): string[] {
  const source = PROGRAM_FILES[file] ?? IMAGE_FILES[file]?.[0];
  if (source) return [readFileSync(`${ROOT}/${source}`, 'utf8')];
  return configs.map((config) => config[file as keyof (typeof configs)[0]] ?? '');
}

/** Whether the mutant leaves every variant of its file as it was: it would prove nothing. */
export function changesNothing(mutant: Mutant): boolean {
  return originals(mutant).every((text) => mutated(mutant, mutant.file, text) === text);
}
