/** Rules between the fields on assets. */
import { WORKER_CONTAINER } from './names.ts';
import { assetsOf } from './presets.ts';
import { durationMs } from './scalars.ts';
import type { Asset } from './spec/assets.ts';
import type { RenderServiceSpec } from './spec.ts';
import type { SpecRule } from './spec-rule.ts';
import { workerTemplate } from './worker-template.ts';

const CONTAINERS = 'self.template.spec.containers';
/** CEL of `hasFolder`. */
const HAS_FOLDER = `${CONTAINERS}.exists(w, (w.name == '${WORKER_CONTAINER}' || ${CONTAINERS}.size() == 1) && has(w.workingDir))`;
/** CEL: each folder is known before the image is; Angular's has a "*" in it. */
const KNOWN = `has(self.assets) ? self.assets.all(a, !a.from.contains('*') && (a.from.startsWith('/') || ${HAS_FOLDER})) : !has(self.framework) || self.framework != 'Angular' && ${HAS_FOLDER}`;

/** CEL: inside a list the API server fills in no default (gen/crd.ts). */
const IMMUTABLE = '(has(a.immutable) && a.immutable)';

/** Each entry of `assets` for itself; `cel` is about `a`. */
function ofEach(message: string, cel: string, holds: (asset: Asset, spec: RenderServiceSpec) => boolean): SpecRule {
  return {
    path: ['assets'],
    message,
    cel: `!has(self.assets) || self.assets.all(a, ${cel})`,
    holds: (spec) => (spec.assets ?? []).every((asset) => holds(asset, spec)),
  };
}

/** Where a relative `from` begins is known to the image alone, unless the template says it. */
function hasFolder({ template }: RenderServiceSpec): boolean {
  return workerTemplate(template.spec?.containers ?? [])?.workingDir !== undefined;
}

export const assetRules: SpecRule[] = [
  ofEach(
    'each path must be there once only: nginx takes the files of one URL from one folder',
    'self.assets.exists_one(b, b.path == a.path)',
    ({ path }, { assets }) => assets?.filter((other) => other.path === path).length === 1,
  ),
  ofEach(
    'must not have ping.path below a path other than "/": nginx answers it itself; choose another ping.path',
    "a.path == '/' || !self.ping.path.startsWith(a.path)",
    ({ path }, { ping }) => path === '/' || !ping.path.startsWith(path),
  ),
  ofEach(
    'an immutable file is kept for a year: leave maxAge out, or immutable',
    `!${IMMUTABLE} || !has(a.maxAge) || !a.maxAge.matches('[1-9]')`,
    ({ immutable, maxAge }) => !immutable || durationMs(maxAge) === 0,
  ),
  ofEach(
    'mutable names exceptions from immutable, below its path: set immutable, or leave mutable out',
    `!has(a.mutable) || a.mutable.all(m, ${IMMUTABLE} && m.startsWith(a.path))`,
    ({ immutable, mutable, path }) => mutable.every((file) => immutable && file.startsWith(path)),
  ),
  {
    path: ['basePath'],
    message:
      'is for what framework stands for: set framework, or leave it out and write the paths of assets and classes out',
    cel: '!has(self.basePath) || has(self.framework)',
    holds: ({ basePath, framework }) => basePath === undefined || framework !== undefined,
  },
  {
    path: ['sidecar', 'assets', 'source'],
    message:
      'ImageVolume needs folders that are known in advance: each from must begin with "/" and have no "*", or workingDir of the worker must be set; write them down in assets',
    cel: `self.sidecar.assets.source != 'ImageVolume' || (${KNOWN})`,
    holds: (spec) =>
      spec.sidecar.assets.source !== 'ImageVolume' ||
      assetsOf(spec).every(({ from }) => !from.includes('*') && (from.startsWith('/') || hasFolder(spec))),
  },
];
