/** Makes the page of `corelane dashboard` of its source: for the npm package, and in a clone for who has no package. */
import { fileURLToPath } from 'node:url';
import type { BuildResult } from 'esbuild';

type Bundle = BuildResult<{ write: false; metafile: true }>;

/** Browsers of the last two years. */
const TARGETS = ['chrome115', 'firefox115', 'safari17'];

export async function bundlePage(): Promise<Bundle> {
  const { build } = await import('esbuild');
  return build({
    absWorkingDir: fileURLToPath(new URL('../../..', import.meta.url)),
    entryPoints: { page: 'operator/page/main.tsx' },
    outdir: 'operator/cli',
    bundle: true,
    minify: true,
    format: 'esm',
    target: TARGETS,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    charset: 'utf8',
    legalComments: 'none',
    write: false,
    metafile: true,
    logLevel: 'warning',
  });
}
