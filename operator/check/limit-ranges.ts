/** C014: LimitRanges that take no pod of the service, and those that give containers without a CPU limit one. */
import { type ContainerRange, misfits, settings } from '../src/plan/resource-fields.ts';
import { sizedContainers } from '../src/plan/resources.ts';
import type { Finding } from './finding.ts';
import type { Rule, Workload } from './workload.ts';

export const limitRangesRule: Rule = {
  codes: ['C014'],
  skipped: ({ surroundings }) =>
    surroundings.limitRanges === undefined ? 'give the LimitRange with -f, or ask a cluster' : undefined,
  find(workload) {
    return (workload.surroundings.limitRanges ?? []).flatMap(({ metadata, spec }) =>
      (spec?.limits ?? []).flatMap((limit, index): Finding[] => {
        if (limit.type !== 'Container') return [];
        // The client library calls the field `_default`; in YAML it is called as here.
        const range = {
          ...limit,
          default: limit._default ?? (limit as { default?: object }).default,
        } as ContainerRange;
        const at = { object: `LimitRange/${metadata?.name}`, path: `spec.limits[${index}]` };
        return [...refused(workload, range, at), ...throttled(workload, range, at)];
      }),
    );
  },
};

type Place = Pick<Finding, 'object' | 'path'>;

function refused({ spec }: Workload, range: ContainerRange, at: Place): Finding[] {
  const found = misfits(sizedContainers(spec), range);
  if (found.length === 0) return [];
  return [
    {
      ...{ code: 'C014', level: 'error', ...at },
      what: 'containers of the pod are outside of it',
      why: 'The API server refuses to make such pods',
      wayOut: `Set ${settings(found)}.`,
    },
  ];
}

function throttled({ spec }: Workload, range: ContainerRange, at: Place): Finding[] {
  // Where there is a maximum and no default, the maximum is the default.
  const field = range.default?.cpu === undefined ? 'max' : 'default';
  const cpu = range[field]?.cpu;
  const isGiven = sizedContainers(spec).some(({ resources }) => resources?.limits?.cpu === undefined);
  if (!cpu || !isGiven) return [];
  return [
    {
      ...{ code: 'C014', level: 'warning', ...at },
      path: `${at.path}.${field}.cpu`,
      what: `every container without a CPU limit gets one of ${cpu}`,
      why: 'Corelane gives the proxies none unless the worker has one: a throttled proxy delays every request, and a throttled worker every page',
      wayOut: `Take cpu out of ${field}; or set sidecar.nginx.cpuLimit and sidecar.haproxy.cpuLimit to "1", which does not throttle a proxy.`,
    },
  ];
}
