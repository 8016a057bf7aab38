/** C006: NODE_OPTIONS from where the plan cannot see it. */
import type { V1Container, V1EnvFromSource } from '@kubernetes/client-node';
import type { Finding } from './finding.ts';
import { type Rule, toDecide, type Workload, workerOf } from './workload.ts';

const NAME = 'NODE_OPTIONS';

/** What a source of `envFrom` has to do with NODE_OPTIONS; undefined where it is known to have nothing. */
function source(workload: Workload, { configMapRef, secretRef, prefix = '' }: V1EnvFromSource) {
  const name = configMapRef?.name ?? secretRef?.name ?? '';
  const known = configMapRef && workload.surroundings.configMaps.find(({ metadata }) => metadata?.name === name);
  const what = `${configMapRef ? 'ConfigMap' : 'Secret'} ${name}`;
  if (!known)
    return {
      level: toDecide(workload, 'info'),
      what: `${what} may have ${NAME}`,
      rest: 'Nothing to do if not. Else repeat',
    };
  const has = Object.keys(known.data ?? {}).some((key) => `${prefix}${key}` === NAME);
  return has ? { level: 'decide' as const, what: `${NAME} comes from ${what}`, rest: 'Repeat' } : undefined;
}

/** Findings on the sources of `envFrom`. */
function fromSources(workload: Workload, { envFrom }: V1Container, path: string): Finding[] {
  return (envFrom ?? []).flatMap((entry, index): Finding[] => {
    const found = source(workload, entry);
    if (!found) return [];
    return [
      {
        code: 'C006',
        level: found.level,
        object: workload.object,
        path: `${path}.envFrom[${index}]`,
        what: found.what,
        why: 'Corelane enters through that variable, and what envFrom says of it is replaced',
        wayOut: `${found.rest} it in env of the worker: it is kept there.`,
      },
    ];
  });
}

export const nodeOptionsRule: Rule = {
  codes: ['C006'],
  skipped(workload) {
    const { worker } = workerOf(workload);
    const isKnown = worker.image !== undefined && worker.image in workload.surroundings.images;
    if (isKnown || worker.env?.some(({ name }) => name === NAME) || !workload.spec.runtime.instrument) return undefined;
    return 'the image is not on this machine, so what it sets itself is not known';
  },
  find(workload) {
    const { worker, path } = workerOf(workload);
    const own = worker.env?.find(({ name }) => name === NAME);
    if (!workload.spec.runtime.instrument || own) return [];
    const image = workload.surroundings.images[worker.image ?? ''];
    const set = image?.env.find((entry) => entry.startsWith(`${NAME}=`))?.slice(NAME.length + 1);
    const findings = [...fromSources(workload, worker, path)];
    if (set !== undefined && set !== '') {
      findings.push({
        code: 'C006',
        level: 'decide',
        object: workload.object,
        path: `${path}.image`,
        what: `the image sets ${NAME}=${set.slice(0, 100)}`,
        why: 'Corelane enters through that variable, and the one of the image is replaced',
        wayOut: 'Repeat it in env of the worker: it is kept there.',
      });
    }
    return findings;
  },
};
