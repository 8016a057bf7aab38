/** Part of nginx' disk (sidecar.nginx.ephemeralStorageLimit) that is for bodies; the rest is for responses. */
export const BODIES_SHARE = 1 / 8;

/**
 * Disk of the cache's own volume, in units of cache.maxSize: nginx looks after it every ten seconds, and what is just
 * being written counts for nothing until it is whole.
 */
export const CACHE_DISK_FACTOR = 2;
