/** C007: the memory of a worker against what V8 takes. */
import { parseQuantity } from '../src/api/scalars.ts';
import { nodeOptionsOf, type Rule, workerOf } from './workload.ts';

const MIB = 2 ** 20;
/** V8 and the worker runtime take some 100 MiB before the first page. */
const LIMIT_MIN_MIB = 256;
/** The part that Corelane lets V8 fill (docs/runtime.md). */
const OLD_SPACE_SHARE = 0.75;
/** A heap of 250 MB of small objects, and its snapshot: eight times as much was too little, sixteen times enough. */
const SNAPSHOT_HEAPS = 16;

export const memoryRule: Rule = {
  codes: ['C007'],
  find(workload) {
    const { worker, path } = workerOf(workload);
    const { object } = workload;
    const text = worker.resources?.limits?.memory;
    const limitMib = text === undefined ? undefined : (parseQuantity(text) ?? 0) / MIB;
    if (limitMib === undefined) {
      return [
        {
          code: 'C007',
          level: 'info',
          object,
          path: `${path}.resources.limits.memory`,
          what: 'a worker has no memory limit',
          why: 'V8 chooses the size of its heap by the memory of the node',
          wayOut: 'Set one: V8 then gets three quarters of it.',
        },
      ];
    }
    if (limitMib < LIMIT_MIN_MIB) {
      return [
        {
          code: 'C007',
          level: 'error',
          object,
          path: `${path}.resources.limits.memory`,
          what: `a worker may take ${Math.floor(limitMib)}Mi`,
          why: `Node.js and the worker runtime need some 100Mi of it before the first page`,
          wayOut: `Set at least ${LIMIT_MIN_MIB}Mi.`,
        },
      ];
    }
    const options = nodeOptionsOf(workload);
    // The last one counts.
    const [, flag, size] = [...options.matchAll(/(--max-(?:old-space|heap)-size)[= ]([0-9]{1,9})/g)].at(-1) ?? [];
    const most = Math.floor(OLD_SPACE_SHARE * limitMib);
    const heapMib = Number(size ?? most);
    if (heapMib <= most) {
      const neededMib = SNAPSHOT_HEAPS * heapMib;
      if (limitMib >= neededMib || !options.includes('--heapsnapshot-near-heap-limit')) return [];
      return [
        {
          code: 'C007',
          level: 'warning',
          object,
          path: `${path}.resources.limits.memory`,
          what: `--heapsnapshot-near-heap-limit with a heap of ${heapMib} MiB and a limit of ${Math.floor(limitMib)}Mi`,
          why: 'A snapshot takes several times the heap: the kernel kills the worker first, and the file has 0 bytes',
          wayOut: `For as long as you look for the leak, set --max-old-space-size=${Math.floor(limitMib / SNAPSHOT_HEAPS)}, or ${heapMib} with a limit of ${neededMib}Mi.`,
        },
      ];
    }
    return [
      {
        code: 'C007',
        level: 'error',
        object,
        path: `${path}.resources.limits.memory`,
        what: `${flag}=${size} with a limit of ${Math.floor(limitMib)}Mi for each worker`,
        why: 'The kernel kills the worker before V8 collects garbage',
        wayOut: `Leave the flag out (Corelane sets ${most}), or raise the limit to ${Math.ceil(Number(size) / OLD_SPACE_SHARE)}Mi.`,
      },
    ];
  },
};
