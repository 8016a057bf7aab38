/** Requests that say how long they are waited for. */
import type { RenderServiceSpec } from '../../api/spec.ts';
import type { Timeouts } from './timeouts.ts';

export interface Deadlines {
  /** The header that says it in milliseconds. */
  header: string;
  /** With less than this left nothing can be rendered. */
  msMin: number;
  /** All waits end before it: a later deadline is none. */
  msMax: number;
}

const MS_MIN = 10;

/** The deadlines of a defaulted spec; undefined if nobody may say any. */
export function deadlines({ deadlines }: RenderServiceSpec, { proxyMs }: Timeouts): Deadlines | undefined {
  return deadlines && { header: deadlines.header, msMin: MS_MIN, msMax: proxyMs };
}
