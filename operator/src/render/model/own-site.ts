/** Requests that renders send to their own site: they have places beside the renders (docs/adr/0059). */
import type { RenderServiceSpec } from '../../api/spec.ts';
import type { Budget } from './budget.ts';
import { longestMs, type Timeouts } from './timeouts.ts';

export interface OwnSite {
  /**
   * Backends of HAProxy. The first is for what a render sends, the next for what such a request sends, and so on:
   * a request waits for a deeper pool only, so no pool waits for itself.
   */
  pools: string[];
  /** Requests of one pool that a worker gets at a time. */
  placesPerWorker: number;
  /** Requests of all pools that wait for such a place, in the whole pod. */
  waitingMax: number;
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
/** Part of the requests that nginx may have. A page may send hundreds at once; the rest is for visitors. */
const WAITING_SHARE = 2 / 3;

/**
 * For a defaulted spec; undefined without the worker runtime, which sends the marks.
 * @param requests those that nginx may have at a time
 */
export function ownSite(
  { runtime }: RenderServiceSpec,
  timeouts: Timeouts,
  { requests }: Pick<Budget, 'requests'>,
): OwnSite | undefined {
  if (!runtime.instrument) return undefined;
  return {
    pools: Array.from({ length: DEPTH }, (_unused, index) => `own-site-${index + 1}`),
    placesPerWorker: PLACES_PER_WORKER,
    waitingMax: Math.floor(WAITING_SHARE * requests),
    lifeSeconds: Math.ceil(longestMs(timeouts) / 1000),
  };
}
