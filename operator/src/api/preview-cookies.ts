/** Cookies of the draft or preview mode of frameworks: who has one gets a page of his own, not the published one. */
import type { RenderServiceSpec } from './spec.ts';

type Framework = NonNullable<RenderServiceSpec['framework']>;

/** Of incremental rendering, by the name that Next and the adapters of the others have given it. */
const PRERENDER_BYPASS = '__prerender_bypass';

const COOKIES: Partial<Record<Framework, string[]>> = {
  Next: [PRERENDER_BYPASS, '__next_preview_data'],
  Nuxt: [PRERENDER_BYPASS, 'previewToken'],
  SvelteKit: [PRERENDER_BYPASS],
  Astro: [PRERENDER_BYPASS],
};

/** Names of cookies with which a request is rendered for itself: those of the spec, and those of its framework. */
export function bypassCookiesOf({ cache, framework }: RenderServiceSpec): string[] {
  return [...new Set([...cache.bypass.cookies, ...((framework && COOKIES[framework]) ?? [])])];
}
