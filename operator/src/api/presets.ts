/**
 * What `framework` stands for. A field that the resource has takes the place of what the preset says of it; cookies and
 * headers of the cache, and variables of the worker, are added to the resource's own.
 */
import type { V1EnvVar } from '@kubernetes/client-node';
import { classRequests, classRequestsMax } from './class-rules.ts';
import { durationMs } from './scalars.ts';
import type { Asset } from './spec/assets.ts';
import { concurrencyBounds } from './spec/concurrency.ts';
import { ORDERED_MAX, PREFETCH } from './spec/priority.ts';
import type { RenderServiceSpec } from './spec.ts';

type Framework = NonNullable<RenderServiceSpec['framework']>;
type RequestClass = NonNullable<RenderServiceSpec['classes']>[number];

interface Preset {
  /**
   * Nothing but what has a hash in its name: of the rest the application may want to see each request (redirects,
   * access rules, headers of its own). Relative to the image's WORKDIR, which is where these frameworks are built.
   */
  assets: Asset[];
  /** Requests for pictures in another size, which threads make. */
  pictures?: RequestClass['match'];
  /** Requests for the data of a page that run its loaders and render nothing, by paths that no page can have. */
  data?: RequestClass['match'];
  /** With one of these cookies a request is rendered for itself: draft and preview mode. */
  bypassCookies?: string[];
  /** In the cache key. */
  keyHeaders?: string[];
  /** Variables of the workers. */
  env?: Record<string, string>;
  /** Its router in the browser asks for the pages of all links in sight. */
  looksAhead?: boolean;
}

/** Of incremental rendering, by the name that Next and the adapters of the others have given it. */
const PRERENDER_BYPASS = '__prerender_bypass';

/** By framework; `base` is the path below which the application is served, or empty. */
const PRESETS: Record<Framework, (base: string) => Preset> = {
  Next: (base) => ({
    assets: [immutable(`${base}/_next/static/`, '.next/static')],
    pictures: [{ pathPrefix: `${base}/_next/image` }],
    // Of the Pages Router. What the App Router asks for (`?_rsc=`) is a page by its path, and renders.
    data: [{ pathPrefix: `${base}/_next/data`, method: 'GET' }],
    bypassCookies: [PRERENDER_BYPASS, '__next_preview_data'],
    // It answers one URL with a document, or with data for its router in the browser, depending on these.
    keyHeaders: ['RSC', 'Next-Router-State-Tree', 'Next-Router-Prefetch', 'Next-Router-Segment-Prefetch'],
    // By this name it asks its own port. Else that is the pod's name, on whose address nothing listens.
    env: { HOSTNAME: '127.0.0.1' },
    looksAhead: true,
  }),
  Nuxt: (base) => ({
    assets: [immutable(`${base}/_nuxt/`, '.output/public/_nuxt', { mutable: [`${base}/_nuxt/builds/latest.json`] })],
    pictures: [{ pathPrefix: `${base}/_ipx` }],
    bypassCookies: [PRERENDER_BYPASS, 'previewToken'],
  }),
  SvelteKit: (base) => ({
    assets: [immutable(`${base}/_app/immutable/`, `build/client${base}/_app/immutable`)],
    data: [{ pathSuffix: '/__data.json', method: 'GET' }],
    bypassCookies: [PRERENDER_BYPASS],
  }),
  ReactRouter: (base) => ({
    assets: [immutable(`${base}/assets/`, 'build/client/assets')],
    data: [{ pathSuffix: '.data', method: 'GET' }],
  }),
  Astro: (base) => ({
    assets: [immutable(`${base}/_astro/`, 'dist/client/_astro')],
    pictures: [{ pathPrefix: `${base}/_image` }],
    bypassCookies: [PRERENDER_BYPASS],
  }),
  Angular: (base) => ({ assets: [immutable(`${base}/`, 'dist/*/browser', { hashedNames: true })] }),
};

function immutable(path: string, from: string, more: Partial<Asset> = {}): Asset {
  return {
    ...{ path, from, immutable: true, hashedNames: false, mutable: [], maxAge: '0s', headers: {}, missing: 'Worker' },
    ...more,
  };
}

function presetOf({ basePath = '', framework }: RenderServiceSpec): Preset | undefined {
  return framework && PRESETS[framework](basePath);
}

/** The assets of a defaulted spec. */
export function assetsOf(spec: RenderServiceSpec): Asset[] {
  return spec.assets ?? presetOf(spec)?.assets ?? [];
}

/** Beyond this number the places of classes might be more than a worker keeps an account of (api/live.ts). */
const CONCURRENCY_MAX = 256;

/**
 * The classes of a defaulted spec. Those of a preset have shorter queues where nginx has memory for fewer requests, and
 * are not there if it has none for their places: no resource is refused for its preset.
 */
export function classesOf(spec: RenderServiceSpec): RequestClass[] {
  if (spec.classes) return spec.classes;
  const wanted = presetClasses(spec);
  const { workersPerPod } = spec;
  const places = classRequests({ workersPerPod, classes: wanted.map((one) => withQueue(one, 0)) });
  // Half of the rest is for streams without a slot (render/model/budget.ts).
  const room = Math.floor((classRequestsMax(spec) - places) / (2 * wanted.length));
  if (room < 1 || concurrencyBounds(spec).max > CONCURRENCY_MAX) return [];
  return wanted.map((one) => withQueue(one, Math.min(one.queue.maxLength, room)));
}

function presetClasses(spec: RenderServiceSpec): RequestClass[] {
  const { pictures, data } = presetOf(spec) ?? {};
  const common = { cache: true, replay: true };
  const classes: RequestClass[] = [];
  if (pictures)
    classes.push({
      ...{ name: 'image', match: pictures, concurrency: 2, ...common },
      // A page has some twenty pictures.
      ...{ queue: { maxLength: 40, timeout: '30s' }, timeouts: { idle: '60s', drain: '10s' } },
    });
  // A program whose `concurrency` is a number may bear no second request of any kind.
  if (data && spec.concurrency === 'Auto')
    classes.push({
      ...{ name: 'data', match: data, concurrency: 4, ...common },
      // As long as a page may take.
      ...{ queue: { maxLength: 20, timeout: '10s' }, timeouts: { idle: spec.timeouts.render, drain: '10s' } },
    });
  return classes;
}

function withQueue(one: RequestClass, maxLength: number): RequestClass {
  return { ...one, queue: { ...one.queue, maxLength } };
}

/** Who waits for whom in a defaulted spec. */
export function priorityOf(spec: RenderServiceSpec): RenderServiceSpec['priority'] {
  if (spec.priority || !presetOf(spec)?.looksAhead) return spec.priority;
  const orderedMs = durationMs(spec.queue.timeout) + durationMs(PREFETCH.delay);
  return orderedMs <= durationMs(ORDERED_MAX) ? { classes: [PREFETCH] } : undefined;
}

/** Names of cookies with which a request is rendered for itself: those of the spec, and those of its framework. */
export function bypassCookiesOf(spec: RenderServiceSpec): string[] {
  return [...new Set([...spec.cache.bypass.cookies, ...(presetOf(spec)?.bypassCookies ?? [])])];
}

/** Names of the headers in the cache key, each once: those of the spec, and those of its framework. */
export function keyHeadersOf(spec: RenderServiceSpec): string[] {
  const names = [...spec.cache.key.headers, ...(presetOf(spec)?.keyHeaders ?? [])];
  return names.filter((name, index) => names.findIndex((one) => one.toLowerCase() === name.toLowerCase()) === index);
}

/** Variables of the workers, for a container that does not set them itself. */
export function presetEnv(spec: RenderServiceSpec): V1EnvVar[] {
  return Object.entries(presetOf(spec)?.env ?? {}).map(([name, value]) => ({ name, value }));
}

/** What the preset of a defaulted spec sets, a phrase each; nothing of what the resource says itself. */
export function presetPhrases(spec: RenderServiceSpec): string[] {
  const preset = presetOf(spec);
  if (!preset) return [];
  const classes = spec.classes ? [] : classesOf(spec);
  const left = spec.classes ? [] : presetClasses(spec).filter(({ name }) => !classes.some((one) => one.name === name));
  return [
    ...(spec.assets ? [] : preset.assets.map(({ path, from }) => `nginx serves ${path} from ${from}`)),
    ...classes.map(
      ({ name, match, concurrency }) =>
        `${match.map(pathOf).join(', ')} is class ${name}, ${concurrency} at a time in each worker`,
    ),
    ...left.map(({ name }) => `there is no class ${name}: sidecar.nginx.memoryLimit is too small`),
    ...(spec.concurrency === 'Auto' ? ['concurrency is Auto'] : []),
    ...(!spec.priority && priorityOf(spec) ? ['pages go before prefetches'] : []),
    ...(preset.bypassCookies ? [`the cookies ${preset.bypassCookies.join(', ')} bypass the cache`] : []),
    ...(preset.keyHeaders ? [`the cache key has ${preset.keyHeaders.join(', ')}`] : []),
    ...presetEnv(spec).map(({ name, value }) => `${name} is ${value} unless env or envFrom is about it`),
  ];
}

function pathOf({ pathPrefix, path, pathSuffix }: RequestClass['match'][number]): string {
  return pathPrefix ?? path ?? `*${pathSuffix}`;
}
