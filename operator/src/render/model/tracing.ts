/** Traces that begin in the pod, and spans of it. */
import type { RenderServiceSpec } from '../../api/spec.ts';

/** One of `flags` and `sampledPercent` is there. */
export interface Tracing {
  /** The trace-flags of each new trace. */
  flags?: '00' | '01';
  /** Chance decides; above 0 and below 100. */
  sampledPercent?: number;
  /** Whether spans are made of sampled requests. */
  hasSpans: boolean;
}

/** The traces of a defaulted spec; undefined if none begins in the pod. */
export function tracing({ tracing }: RenderServiceSpec): Tracing | undefined {
  if (tracing === undefined) return undefined;
  const hasSpans = tracing.endpoint !== undefined;
  if (tracing.samplingPercent <= 0) return { flags: '00', hasSpans };
  return tracing.samplingPercent >= 100
    ? { flags: '01', hasSpans }
    : { sampledPercent: tracing.samplingPercent, hasSpans };
}
