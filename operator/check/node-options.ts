/** C006: NODE_OPTIONS that Corelane or the command would replace. */
import type { Finding } from './finding.ts';
import { nodeVersion } from './image.ts';
import { commandField, commandLine, type Rule, workerOf } from './workload.ts';

const NAME = 'NODE_OPTIONS';
/** A script that gives the variable another value, or none. */
const SETS = /\b(NODE_OPTIONS=|unset\s+NODE_OPTIONS\b)|(-u|--unset)[ =]?NODE_OPTIONS\b/;
const KEEPS = /\$[{(]?NODE_OPTIONS\b/;
const PRELOAD = /(^|["'\s])(-r|--require)[= ]/;

/** Whether a script puts a module in front of the value that it finds. */
function preloadsInFront(line: string): boolean {
  const [, value = ''] = line.split(`${NAME}=`);
  const kept = value.search(KEEPS);
  return kept >= 0 && PRELOAD.test(value.slice(0, kept));
}

/** Whether the supervisor can begin anew without such a module (process.execve): from Node.js 22.15 and 23.11 on. */
function dropsModules({ major, minor = Number.POSITIVE_INFINITY }: { major: number; minor?: number }): boolean {
  return major > 23 || (major === 23 && minor >= 11) || (major === 22 && minor >= 15);
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
    const version = nodeVersion(workload, worker.image ?? '');
    if (version && !dropsModules(version) && preloadsInFront(line)) {
      findings.push({
        code: 'C006',
        level: 'warning',
        object: workload.object,
        path: `${path}.${commandField(worker)}`,
        what: `the command preloads a module in front of $${NAME}`,
        why: 'Before Node.js 22.15 the supervisor loads it, too: if it listens on a port, the program gets EADDRINUSE',
        wayOut: `Put the module behind: ${NAME}="$${NAME} -r ./agent.cjs".`,
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
