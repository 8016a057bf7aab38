/** C014: LimitRanges that give containers without a CPU limit one. */
import type { Finding } from './finding.ts';
import type { Rule } from './workload.ts';

export const limitRangesRule: Rule = {
  codes: ['C014'],
  skipped: ({ surroundings }) =>
    surroundings.limitRanges === undefined ? 'give the LimitRange with -f, or ask a cluster' : undefined,
  find({ surroundings }) {
    return (surroundings.limitRanges ?? []).flatMap(({ metadata, spec }) =>
      (spec?.limits ?? []).flatMap((limit, index): Finding[] => {
        if (limit.type !== 'Container') return [];
        // Where there is a maximum and no default, the maximum is the default.
        const field = limit._default?.cpu !== undefined || defaultOf(limit) !== undefined ? 'default' : 'max';
        const cpu = limit._default?.cpu ?? defaultOf(limit) ?? limit.max?.cpu;
        if (cpu === undefined) return [];
        return [
          {
            code: 'C014',
            level: 'warning',
            object: `LimitRange/${metadata?.name}`,
            path: `spec.limits[${index}].${field}.cpu`,
            what: `every container without a CPU limit gets one of ${cpu}`,
            why: 'The proxies have none on purpose: a throttled proxy delays every request, and a throttled worker every page',
            wayOut: `Take cpu out of ${field}; a ResourceQuota on requests.cpu bounds the namespace as well.`,
          },
        ];
      }),
    );
  },
};

/** As the field is called in YAML; the client library calls it `_default`. */
function defaultOf(limit: object): string | undefined {
  return (limit as { default?: Record<string, string> }).default?.cpu;
}
