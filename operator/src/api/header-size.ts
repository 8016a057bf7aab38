/** The bound of heads that holds: `buffering.maxHeaderSize`, or less where a proxy has no memory for that. */
import { quantityOf, sizeBytes } from './scalars.ts';
import type { RenderServiceSpec } from './spec.ts';

const KIB = 1024;
/** The largest head that a proxy takes whose memory limit is below `below` (render/model/budget.ts), ascending. */
export const MEMORY_STEPS = [
  { below: '160Mi', bytesMax: 16 * KIB },
  { below: '256Mi', bytesMax: 64 * KIB },
];

/** Bytes of the largest head for a defaulted spec. */
export function headerBytesMax({ buffering, sidecar }: RenderServiceSpec): number {
  const memory = Math.min(quantityOf(sidecar.nginx.memoryLimit), quantityOf(sidecar.haproxy.memoryLimit));
  const step = MEMORY_STEPS.find(({ below }) => memory < quantityOf(below));
  return Math.min(sizeBytes(buffering.maxHeaderSize), step?.bytesMax ?? Number.POSITIVE_INFINITY);
}
