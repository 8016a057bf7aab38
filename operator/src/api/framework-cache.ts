/** What the cache knows of frameworks: cookies of their draft or preview mode, and headers that make another page. */
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

/** One URL of Next is a document and what its router in the browser asks for, of the tree that is there already. */
const HEADERS: Partial<Record<Framework, string[]>> = {
  Next: ['RSC', 'Next-Router-State-Tree', 'Next-Router-Prefetch', 'Next-Router-Segment-Prefetch'],
};

/** Names of cookies with which a request is rendered for itself: those of the spec, and those of its framework. */
export function bypassCookiesOf({ cache, framework }: RenderServiceSpec): string[] {
  return [...new Set([...cache.bypass.cookies, ...((framework && COOKIES[framework]) ?? [])])];
}

/** Names of headers that make another page, each once: those of the spec, and those of its framework. */
export function keyHeadersOf({ cache, framework }: RenderServiceSpec): string[] {
  const names = [...cache.key.headers, ...((framework && HEADERS[framework]) ?? [])];
  return names.filter((name, index) => names.findIndex((one) => one.toLowerCase() === name.toLowerCase()) === index);
}
