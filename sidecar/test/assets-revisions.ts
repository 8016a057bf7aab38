/** A service with files of two revisions, for the tests of a rollout. */
import { APP_FILES, AppFiles } from '../../e2e/harness/engine/app-files.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';

/** As the operator names them: a pod remembers what it has found by that. */
export const [OLD, NEW] = ['7f3a9c21d0', '19be04aa3c'];

const IMMUTABLE = { path: '/_next/static/', from: `${APP_FILES}/static`, immutable: true } as const;
export const SPEC: Partial<RenderServiceSpecInput> = {
  workersPerPod: 1,
  assets: [
    IMMUTABLE,
    { ...IMMUTABLE, path: '/only/', missing: 'NotFound' },
    { path: '/public/', from: `${APP_FILES}/static` },
  ],
};
export const oldFiles = new AppFiles({
  'static/old.js': 'old',
  'static/both.js': 'of the old one',
  'static/large.js': Buffer.alloc(2_000_000, 'old '),
});
export const newFiles = new AppFiles({ 'static/new.js': 'new', 'static/both.js': 'of the new one' });
