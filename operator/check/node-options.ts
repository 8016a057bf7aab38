/** C006: NODE_OPTIONS that Corelane or the command would replace. */
import type { Finding } from './finding.ts';
import { commandField, commandLine, type Rule, workerOf } from './workload.ts';

const NAME = 'NODE_OPTIONS';
/** A script that gives the variable another value, or none. */
const SETS = /\b(NODE_OPTIONS=|unset\s+NODE_OPTIONS\b)|(-u|--unset)[ =]?NODE_OPTIONS\b/;
const KEEPS = /\$[{(]?NODE_OPTIONS\b/;

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
    if (!workload.spec.runtime.instrument) return [];
    const image = workload.surroundings.images[worker.image ?? ''];
    const findings: Finding[] = [];
    const line = commandLine(worker, image);
    if (SETS.test(line) && !KEEPS.test(line)) {
      findings.push({
        code: 'C006',
        level: 'warning',
        object: workload.object,
        path: `${path}.${commandField(worker)}`,
        what: `the command sets ${NAME}`,
        why: 'Corelane enters through that variable, and does not watch a server that does not get it',
        wayOut: `Keep its value: ${NAME}="$${NAME} --flag".`,
      });
    }
    const set = image?.env.find((entry) => entry.startsWith(`${NAME}=`))?.slice(NAME.length + 1);
    if (set && !worker.env?.some(({ name }) => name === NAME)) {
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
