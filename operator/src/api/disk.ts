/** Part of nginx' disk (sidecar.nginx.ephemeralStorageLimit) that is for bodies; the rest is for responses. */
export const BODIES_SHARE = 1 / 8;
