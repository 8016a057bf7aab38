/** C007: the memory of a worker against what V8 takes. */
import { parseQuantity } from '../src/api/scalars.ts';
import { commandLine, type Rule, workerOf } from './workload.ts';

const MIB = 2 ** 20;
/** V8 and the worker runtime take some 100 MiB before the first page. */
const LIMIT_MIN_MIB = 256;
/** The part that Corelane lets V8 fill (docs/runtime.md). */
const OLD_SPACE_SHARE = 0.75;

export const memoryRule: Rule = {
  codes: ['C007'],
  find(workload) {
    const { worker, path } = workerOf(workload);
    const { object, spec, surroundings } = workload;
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
    const options = worker.env?.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
    const flags = [...spec.runtime.nodeFlags, options, commandLine(worker, surroundings.images[worker.image ?? ''])];
    const [, size] = /--max[-_]old[-_]space[-_]size[= ]([0-9]{1,9})/.exec(flags.join(' ')) ?? [];
    const most = Math.floor(OLD_SPACE_SHARE * limitMib);
    if (size === undefined || Number(size) <= most) return [];
    return [
      {
        code: 'C007',
        level: 'error',
        object,
        path: `${path}.resources.limits.memory`,
        what: `--max-old-space-size=${size} with a limit of ${Math.floor(limitMib)}Mi for each worker`,
        why: 'The kernel kills the worker before V8 collects garbage',
        wayOut: `Leave the flag out (Corelane sets ${most}), or raise the limit to ${Math.ceil(Number(size) / OLD_SPACE_SHARE)}Mi.`,
      },
    ];
  },
};
