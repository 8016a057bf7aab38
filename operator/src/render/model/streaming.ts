/** How soon what a worker writes goes to its client. */
import type { RenderServiceSpec } from '../../api/spec.ts';

export interface Streaming {
  /** Which responses nginx sends as they come, as our module calls it. */
  mode: 'auto' | 'always' | 'never';
  /**
   * Whether a pod sends small pieces of a response to another one at once. Else the kernel holds them back until there
   * are more, for 200 ms.
   */
  sendsToPeersAtOnce: boolean;
}

const MODES = { Auto: 'auto', Always: 'always', Never: 'never' } as const;

/** What the proxies of one pod do for a defaulted spec. */
export function streaming(spec: RenderServiceSpec): Streaming {
  return { mode: MODES[spec.streaming], sendsToPeersAtOnce: spec.streaming !== 'Never' };
}
