/** Rules about the cache, between its fields and with the memory of the proxies. */
import { quantityOf } from './scalars.ts';
import type { SpecRule } from './spec-rule.ts';

/** nginx with the cache on holds what render/model/budget.ts lets in whatever the limit is (a test compares). */
export const CACHE_MEMORY_MIN = '160Mi';

const LIMIT = 'self.sidecar.nginx.memoryLimit';

export const cacheRules: SpecRule[] = [
  {
    path: ['sidecar', 'nginx', 'memoryLimit'],
    message: `must be at least ${CACHE_MEMORY_MIN} with cache.enabled: who looks for a page takes more than who does not (docs/edge.md); make it larger, or leave the cache off`,
    cel: `!self.cache.enabled || !isQuantity(${LIMIT}) || quantity(${LIMIT}).compareTo(quantity('${CACHE_MEMORY_MIN}')) >= 0`,
    holds: ({ cache, sidecar }) =>
      !cache.enabled || quantityOf(sidecar.nginx.memoryLimit) >= quantityOf(CACHE_MEMORY_MIN),
  },
];
