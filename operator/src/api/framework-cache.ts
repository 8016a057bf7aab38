/** Framework presets of the cache: cookies of draft and preview mode, and headers of the cache key. */
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

/** Next answers one URL with a document, or with data for its router in the browser, depending on these. */
const HEADERS: Partial<Record<Framework, string[]>> = {
  Next: ['RSC', 'Next-Router-State-Tree', 'Next-Router-Prefetch', 'Next-Router-Segment-Prefetch'],
};

/** Names of cookies with which a request is rendered for itself: those of the spec, and those of its framework. */
export function bypassCookiesOf({ cache, framework }: RenderServiceSpec): string[] {
  return [...new Set([...cache.bypass.cookies, ...((framework && COOKIES[framework]) ?? [])])];
}

/** Names of the headers in the cache key, each once: those of the spec, and those of its framework. */
export function keyHeadersOf({ cache, framework }: RenderServiceSpec): string[] {
  const names = [...cache.key.headers, ...((framework && HEADERS[framework]) ?? [])];
  return names.filter((name, index) => names.findIndex((one) => one.toLowerCase() === name.toLowerCase()) === index);
}
