/** C020: what the operator says of a RenderService that runs. */
import type { Finding } from './finding.ts';
import type { Level } from './levels.ts';
import type { Rule } from './workload.ts';

/** Conditions with the status in which they are bad news. */
const BAD: Record<string, { status: string; level: Level }> = {
  Stalled: { status: 'True', level: 'error' },
  WorkersHealthy: { status: 'False', level: 'error' },
  Ready: { status: 'False', level: 'error' },
  CapacityAvailable: { status: 'False', level: 'warning' },
  ConcurrencyTuned: { status: 'False', level: 'warning' },
  SchemaInStep: { status: 'False', level: 'warning' },
  ObjectsInSync: { status: 'False', level: 'warning' },
};

export const conditionsRule: Rule = {
  codes: ['C020'],
  skipped: ({ surroundings }) =>
    surroundings.conditions === undefined ? 'it does not run here: ask a cluster' : undefined,
  find({ object, surroundings }) {
    const conditions = surroundings.conditions ?? [];
    const isStalled = conditions.some(({ type, status }) => type === 'Stalled' && status === 'True');
    return conditions.flatMap(({ type, status, reason, message }): Finding[] => {
      const bad = Object.hasOwn(BAD, type) ? BAD[type] : undefined;
      // Of a stalled one Ready says the same again.
      if (!bad || bad.status !== status || (type === 'Ready' && isStalled)) return [];
      return [
        {
          code: 'C020',
          level: bad.level,
          object,
          path: `status.conditions[${type}]`,
          what: message.replace(/[.]$/, ''),
          why: `The operator says so (${type} is ${status}, ${reason})`,
          wayOut: 'Do what it says; docs/why-no-pods.md has more.',
        },
      ];
    });
  },
};
