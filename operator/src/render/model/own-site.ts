/** Requests that renders send to their own site: they have places beside the renders (docs/adr/0059). */
import type { RenderServiceSpec } from '../../api/spec.ts';
import { longestMs, type Timeouts } from './timeouts.ts';

export interface OwnSite {
  /**
   * Backends of HAProxy. The first is for what a render sends, the next for what such a request sends, and so on:
   * a request waits for a deeper pool only, so no pool waits for itself.
   */
  pools: string[];
  /** Requests of one pool that a worker gets at a time. */
  placesPerWorker: number;
  /** A mark counts for at least so long, because a render, or a handler, may use it at its end. */
  lifeSeconds: number;
}

/** A page that asks an API route, which asks for the session: deeper chains are rare. Also SAID of own-site.cjs. */
const DEPTH = 2;
/**
 * A page sends some requests at once, and other pages do so at the same time. More would let whoever has a mark give
 * a worker more work beside its render.
 */
const PLACES_PER_WORKER = 8;

/** For a defaulted spec; undefined without the worker runtime, which sends the marks. */
export function ownSite({ runtime }: RenderServiceSpec, timeouts: Timeouts): OwnSite | undefined {
  if (!runtime.instrument) return undefined;
  return {
    pools: Array.from({ length: DEPTH }, (_unused, index) => `own-site-${index + 1}`),
    placesPerWorker: PLACES_PER_WORKER,
    lifeSeconds: Math.ceil(longestMs(timeouts) / 1000),
  };
}
