/** C005: several processes in one container. */
import type { V1Container } from '@kubernetes/client-node';
import type { Finding } from './finding.ts';
import { commandField, commandLine, type ImageConfig, type Rule, workerOf } from './workload.ts';

/** Variables by which a program decides how many processes it starts; 1 is fine. */
const COUNT = /^(WEB_CONCURRENCY|NODE_CLUSTER_\w+|CLUSTER_WORKERS|NITRO_CLUSTER_WORKERS|PM2_INSTANCES)$/;
const PM2 = /(^|[\s/])pm2(-runtime|-docker|-dev)?(\s|$)/;
const PM2_COUNT = /(^|\s)(-i|--instances)[= ]?(max|0|-1|[2-9]|[1-9][0-9]+)\b/;
const PM2_FILE = /(ecosystem|process|pm2)[\w.-]{0,100}\.(config\.)?(c?js|json|ya?ml)\b/;
const CLUSTER =
  /(^|[\s/])(throng|naught|sticky-cluster|cluster-service|recluster)\b|(^|[\s/.-])cluster(\.[cm]?[jt]s)?(\s|$)/;

interface Sign {
  level: 'warning' | 'error';
  /** Behind the path of the container. */
  field: string;
  what: string;
  wayOut: string;
}

/** Signs of several processes, in the command, the arguments and the environment of a container. */
function* signs(worker: V1Container, image: ImageConfig | undefined): Generator<Sign> {
  const line = commandLine(worker, image);
  const field = commandField(worker);
  if (PM2.test(line)) yield pm2(line, field);
  else if (CLUSTER.test(line) || PM2_COUNT.test(line)) {
    const what = `"${short(line)}" starts several processes`;
    yield { level: 'error', field, what, wayOut: 'Start the server itself: node server.js.' };
  }
  yield* variables(worker);
}

function* variables(worker: V1Container): Generator<Sign> {
  for (const { name, value = '' } of worker.env ?? []) {
    const what = `${name}=${short(value)}`;
    const field = `env[${name}]`;
    if (name === 'NITRO_PRESET' && value.includes('cluster'))
      yield { level: 'error', field, what, wayOut: 'Build with the preset node-server.' };
    if (COUNT.test(name) && !['', '1'].includes(value)) yield { level: 'error', field, what, wayOut: 'Set it to "1".' };
  }
}

function pm2(line: string, field: string): Sign {
  const wayOut = 'Start the server itself: node server.js.';
  const several = PM2_COUNT.test(line) || PM2_FILE.test(line);
  if (several) return { level: 'error', field, what: `"${short(line)}" lets PM2 start several processes`, wayOut };
  return { level: 'warning', field, what: 'PM2 stands between the worker runtime and the server', wayOut };
}

function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 80 ? `${line.slice(0, 77)}...` : line;
}

/** Whether a container starts several processes for its port, as far as one can see. */
export function hasSeveralProcesses(worker: V1Container, image?: ImageConfig): boolean {
  return [...signs(worker, image)].some(({ level }) => level === 'error');
}

export const processesRule: Rule = {
  codes: ['C005'],
  find(workload) {
    const { worker, path } = workerOf(workload);
    const image = workload.surroundings.images[worker.image ?? ''];
    return [...signs(worker, image)].map(
      ({ level, field, what, wayOut }): Finding => ({
        code: 'C005',
        level,
        object: workload.object,
        path: `${path}.${field}`,
        what,
        why:
          level === 'error'
            ? 'All of them together get the one request that their worker has at a time; workersPerPod replaces them'
            : 'It works: the supervisor finds the server below it, at the price of one more process for each worker',
        wayOut,
      }),
    );
  },
};
