import { reviews } from '../../work.mjs';

/** A promise that is not awaited is streamed: the page is there before. */
export function load() {
  return { now: new Date().toISOString(), reviews: reviews() };
}
