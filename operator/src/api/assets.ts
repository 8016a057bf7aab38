/** Which assets a spec asks for: those that it names, or those that its framework makes. */

import type { Asset } from './spec/assets.ts';
import type { RenderServiceSpec } from './spec.ts';

type Framework = NonNullable<RenderServiceSpec['framework']>;

function immutable(path: string, from: string, more: Partial<Asset> = {}): Asset {
  return {
    ...{ path, from, immutable: true, hashedNames: false, mutable: [], maxAge: '0s', headers: {}, missing: 'Worker' },
    ...more,
  };
}

/**
 * Nothing but what has a hash in its name: of the rest the application may want to see each request (redirects, access
 * rules, headers of its own). Relative to the image's WORKDIR, which is where these frameworks are built.
 */
const PRESETS: Record<Framework, Asset[]> = {
  Next: [immutable('/_next/static/', '.next/static')],
  Nuxt: [immutable('/_nuxt/', '.output/public/_nuxt', { mutable: ['/_nuxt/builds/latest.json'] })],
  SvelteKit: [immutable('/_app/immutable/', 'build/client/_app/immutable')],
  ReactRouter: [immutable('/assets/', 'build/client/assets')],
  Astro: [immutable('/_astro/', 'dist/client/_astro')],
  Angular: [immutable('/', 'dist/*/browser', { hashedNames: true })],
};

/** The assets of a defaulted spec. */
export function assetsOf({ assets, framework }: RenderServiceSpec): Asset[] {
  return assets ?? (framework ? PRESETS[framework] : []);
}
