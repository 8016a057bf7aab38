/**
 * What `framework` stands for. A field that the resource has takes the place of what the preset says of it; headers of
 * the cache, and variables of the worker, are added to the resource's own.
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
  /** A module answers these paths. Without it a page of the program does. */
  picturesNeedModule?: boolean;
  /** Requests for the data of a page, or for a part of it: they mostly run its loaders alone. */
  data?: RequestClass['match'];
  /** They render what the page renders, so fewer of them get their CPU beside pages. */
  dataRenders?: boolean;
  /** In the cache key. */
  keyHeaders?: string[];
  /** Variables of the workers. */
  env?: Record<string, string>;
  /** Its router in the browser asks for the pages of all links in sight. */
  looksAhead?: boolean;
}

/**
 * Cookies of draft and preview modes: Next, and incremental rendering of SvelteKit and Astro; Next's Pages Router; Nuxt
 * Content. They count whatever `framework` is: an editor who gets the published page takes the draft for lost.
 */
const DRAFT_COOKIES = ['__prerender_bypass', '__next_preview_data', 'previewToken'];

/** By framework; `base` is the path below which the application is served, or empty. */
const PRESETS: Record<Framework, (base: string) => Preset> = {
  Next: (base) => ({
    assets: [immutable(`${base}/_next/static/`, '.next/static')],
    pictures: endpoint(`${base}/_next/image`),
    // Of the Pages Router. What the App Router asks for (`?_rsc=`) is a page by its path, and renders.
    data: [{ pathPrefix: `${base}/_next/data`, method: 'GET' }],
    // It answers one URL with a document, or with data for its router in the browser, depending on these.
    keyHeaders: ['RSC', 'Next-Router-State-Tree', 'Next-Router-Prefetch', 'Next-Router-Segment-Prefetch'],
    // By this name it asks its own port. Else that is the pod's name, on whose address nothing listens.
    env: { HOSTNAME: '127.0.0.1' },
    looksAhead: true,
  }),
  Nuxt: (base) => ({
    assets: [immutable(`${base}/_nuxt/`, '.output/public/_nuxt', { mutable: [`${base}/_nuxt/builds/latest.json`] })],
    pictures: [{ pathPrefix: `${base}/_ipx` }],
    picturesNeedModule: true,
    // Of pages with rules for their cache, when a visitor follows a link. A query is no part of the path.
    data: [{ pathSuffix: '/_payload.json', method: 'GET' }],
    dataRenders: true,
  }),
  SvelteKit: (base) => ({
    assets: [immutable(`${base}/_app/immutable/`, `build/client${base}/_app/immutable`)],
    data: [{ pathSuffix: '/__data.json', method: 'GET' }],
  }),
  ReactRouter: (base) => ({
    assets: [immutable(`${base}/assets/`, 'build/client/assets')],
    data: [{ pathSuffix: '.data', method: 'GET' }],
  }),
  Astro: (base) => ({
    assets: [immutable(`${base}/_astro/`, 'dist/client/_astro')],
    pictures: endpoint(`${base}/_image`),
    // Server islands. Actions are POST.
    data: [{ pathPrefix: `${base}/_server-islands`, method: 'GET' }],
    dataRenders: true,
  }),
  Angular: (base) => ({ assets: [immutable(`${base}/`, 'dist/*/browser', { hashedNames: true })] }),
};

function immutable(path: string, from: string, more: Partial<Asset> = {}): Asset {
  return {
    ...{ path, from, immutable: true, hashedNames: false, mutable: [], maxAge: '0s', headers: {}, missing: 'Worker' },
    ...more,
  };
}

/** A path with and without a slash at its end, for each setting of `trailingSlash`. A page answers paths below it. */
function endpoint(path: string): RequestClass['match'] {
  return [{ path }, { path: `${path}/` }];
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
const DATA_PLACES_MAX = 10;
const RENDERED_DATA_PLACES_MAX = 2;
/** Part of the requests of all classes that the places of `data` may be: the rest is for queues, and for streams. */
const DATA_SHARE = 1 / 4;

/**
 * The classes of a defaulted spec. Those of a preset have shorter queues where nginx has memory for fewer requests, and
 * are not there if it has none for their places: no resource is refused for its preset.
 */
export function classesOf(spec: RenderServiceSpec): RequestClass[] {
  if (spec.classes) return spec.classes;
  const wanted = presetClasses(spec, spec.concurrency === 'Auto');
  const { workersPerPod } = spec;
  const places = classRequests({ workersPerPod, classes: wanted.map((one) => withQueue(one, 0)) });
  // Half of the rest is for streams without a slot (render/model/budget.ts): each worker has one at least.
  const rest = (classRequestsMax(spec) - places) / 2;
  const room = Math.floor(rest / wanted.length);
  if (room < 1 || rest < workersPerPod || concurrencyBounds(spec).max > CONCURRENCY_MAX) return [];
  return wanted.map((one) => withQueue(one, Math.min(one.queue.maxLength, room)));
}

/** @param isAuto whether the program takes several requests at a time, so that one may run code of pages */
function presetClasses(spec: RenderServiceSpec, isAuto: boolean): RequestClass[] {
  const { pictures, picturesNeedModule, data, dataRenders } = presetOf(spec) ?? {};
  const common = { cache: true, replay: true };
  const classes: RequestClass[] = [];
  if (pictures && (isAuto || !picturesNeedModule))
    classes.push({
      ...{ name: 'image', match: pictures, concurrency: 2, ...common },
      // A page has some twenty pictures.
      ...{ queue: { maxLength: 40, timeout: '30s' }, timeouts: untilAnswered('60s') },
    });
  if (data && isAuto) {
    const placesMax = dataRenders ? RENDERED_DATA_PLACES_MAX : DATA_PLACES_MAX;
    const inWorker = Math.floor((DATA_SHARE * classRequestsMax(spec)) / spec.workersPerPod);
    classes.push({
      ...{ name: 'data', match: data, concurrency: Math.min(placesMax, Math.max(1, inWorker)), ...common },
      // A page of Astro may have many islands, and never asks again for one. Each may take as long as a page.
      ...{ queue: { maxLength: dataRenders ? 40 : 20, timeout: '10s' }, timeouts: untilAnswered(spec.timeouts.render) },
    });
  }
  return classes;
}

/** None of these is a stream without an end, so a pod that drains waits for them. */
function untilAnswered(idle: string): RequestClass['timeouts'] {
  return { idle, drain: idle };
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

/** Names of cookies with which a request is rendered for itself: those of the spec, and those of drafts. */
export function bypassCookiesOf({ cache }: RenderServiceSpec): string[] {
  return [...new Set([...cache.bypass.cookies, ...DRAFT_COOKIES])];
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

const NO_ROOM = `sidecar.nginx.memoryLimit is too small for it, or concurrency is more than ${CONCURRENCY_MAX}`;

/** What the preset of a defaulted spec sets, a phrase each; nothing of what the resource says itself. */
export function presetPhrases(spec: RenderServiceSpec): string[] {
  const preset = presetOf(spec);
  if (!preset) return [];
  const classes = spec.classes ? [] : classesOf(spec);
  const left = spec.classes ? [] : presetClasses(spec, true).filter((one) => !hasName(classes, one));
  const isWanted = (one: RequestClass) => hasName(presetClasses(spec, spec.concurrency === 'Auto'), one);
  return [
    ...(spec.assets ? [] : preset.assets.map(({ path, from }) => `nginx serves ${path} from ${from}`)),
    ...classes.map(
      ({ name, match, concurrency }) =>
        `${match.map(pathOf).join(', ')} is class ${name}, ${concurrency} at a time in each worker`,
    ),
    ...left.map((one) => `there is no class ${one.name}: ${isWanted(one) ? NO_ROOM : 'concurrency is not Auto'}`),
    ...(spec.concurrency === 'Auto' ? ['concurrency is Auto'] : []),
    ...(!spec.priority && priorityOf(spec) ? ['pages go before prefetches'] : []),
    ...(preset.keyHeaders ? [`the cache key has ${preset.keyHeaders.join(', ')}`] : []),
    ...presetEnv(spec).map(({ name, value }) => `${name} is ${value}, unless env has it or there is an envFrom`),
  ];
}

function hasName(classes: RequestClass[], { name }: RequestClass): boolean {
  return classes.some((one) => one.name === name);
}

function pathOf({ pathPrefix, path, pathSuffix }: RequestClass['match'][number]): string {
  return pathPrefix ?? path ?? `*${pathSuffix}`;
}
