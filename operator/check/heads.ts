/** C023: a bound of heads that a proxy has no memory for. */
import { headerBytesMax, MEMORY_STEPS } from '../src/api/header-size.ts';
import { quantityOf, sizeBytes } from '../src/api/scalars.ts';
import type { Rule } from './workload.ts';

const KIB = 1024;

export const headsRule: Rule = {
  codes: ['C023'],
  find({ spec, object }) {
    const { buffering, sidecar } = spec;
    const wanted = sizeBytes(buffering.maxHeaderSize);
    const bytesMax = headerBytesMax(spec);
    if (bytesMax >= wanted) return [];
    const { nginx, haproxy } = sidecar;
    const smaller = quantityOf(nginx.memoryLimit) <= quantityOf(haproxy.memoryLimit) ? 'nginx' : 'haproxy';
    // The steps ascend: below this memory a proxy takes only smaller heads.
    const needed = MEMORY_STEPS.findLast((step) => step.bytesMax < wanted)?.below;
    return [
      {
        code: 'C023',
        level: 'warning',
        object,
        path: `spec.sidecar.${smaller}.memoryLimit`,
        what: `heads may have ${bytesMax / KIB}Ki, although buffering.maxHeaderSize is ${buffering.maxHeaderSize}`,
        why: `${sidecar[smaller].memoryLimit} has no room for larger ones: a larger request is 431, a larger response 502`,
        wayOut: `Give both proxies a memoryLimit of ${needed} or more, or set maxHeaderSize: ${bytesMax / KIB}Ki.`,
      },
    ];
  },
};
