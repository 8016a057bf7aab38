/** Rules about the cache, between its fields and with the memory of the proxies. */
import { durationMs, quantityOf } from './scalars.ts';
import { isDuration, type SpecRule } from './spec-rule.ts';

/** nginx with the cache on holds what render/model/budget.ts lets in whatever the limit is (a test compares). */
export const CACHE_MEMORY_MIN = '160Mi';

const LIMIT = 'self.sidecar.nginx.memoryLimit';

/** A path of `cache` with a slash at its end, in CEL and here: /shop and /shop/ are one. */
const slashed = (path: string) => `(${path}.endsWith('/') ? ${path} : ${path} + '/')`;
const withSlash = (path: string) => (path.endsWith('/') ? path : `${path}/`);

/** Times of pages are whole seconds: less than one of them would be another time, or none. */
const isWhole = (text: string) => durationMs(text) === 0 || durationMs(text) >= 1_000;
const whole = (field: string) =>
  `!${isDuration(field)} || duration(${field}) == duration('0s') || duration(${field}) >= duration('1s')`;

function wholeSeconds(field: 'staleWhileRevalidate' | 'staleIfError'): SpecRule {
  return {
    path: ['cache', field],
    message: 'must be 0s or at least 1s: times of pages are whole seconds',
    cel: whole(`self.cache.${field}`),
    holds: ({ cache }) => isWhole(cache[field]),
  };
}

export const cacheRules: SpecRule[] = [
  {
    path: ['cache', 'ttl'],
    message:
      'each value must be 0s or at least 1s: times of pages are whole seconds; for a page that everybody gets anew write 0s, for one render for all who ask at the same time 1s',
    cel: `self.cache.ttl.all(t, ${whole('t.value')})`,
    holds: ({ cache }) => cache.ttl.every(({ value }) => isWhole(value)),
  },
  {
    path: ['cache', 'ttl'],
    message: 'each pathPrefix must be there once only, with or without a slash at its end: a page is kept for one time',
    cel: `self.cache.ttl.all(t, self.cache.ttl.exists_one(o, ${slashed('o.pathPrefix')} == ${slashed('t.pathPrefix')}))`,
    holds: ({ cache }) => new Set(cache.ttl.map(({ pathPrefix }) => withSlash(pathPrefix))).size === cache.ttl.length,
  },
  {
    path: ['cache', 'ttl'],
    message: 'each pathPrefix must be one that the cache is for: add it to cache.paths, or leave it out',
    cel: `self.cache.ttl.all(t, self.cache.paths.exists(p, ${slashed('t.pathPrefix')}.startsWith(${slashed('p')}) || ${slashed('p')}.startsWith(${slashed('t.pathPrefix')})))`,
    holds: ({ cache }) =>
      cache.ttl
        .map(({ pathPrefix }) => withSlash(pathPrefix))
        .every((one) => cache.paths.map(withSlash).some((path) => one.startsWith(path) || path.startsWith(one))),
  },
  wholeSeconds('staleWhileRevalidate'),
  wholeSeconds('staleIfError'),
  {
    path: ['cache', 'key', 'query'],
    message:
      'names says nothing with mode All, with which every parameter counts: set mode to Only or Except, or leave names out',
    cel: "self.cache.key.query.mode != 'All' || self.cache.key.query.names.size() == 0",
    holds: ({ cache: { key } }) => key.query.mode !== 'All' || key.query.names.length === 0,
  },
  {
    path: ['sidecar', 'nginx', 'memoryLimit'],
    message: `must be at least ${CACHE_MEMORY_MIN} with cache.enabled: who looks for a page takes more than who does not (docs/edge.md); make it larger, or leave the cache off`,
    cel: `!self.cache.enabled || !isQuantity(${LIMIT}) || quantity(${LIMIT}).compareTo(quantity('${CACHE_MEMORY_MIN}')) >= 0`,
    holds: ({ cache, sidecar }) =>
      !cache.enabled || quantityOf(sidecar.nginx.memoryLimit) >= quantityOf(CACHE_MEMORY_MIN),
  },
];
