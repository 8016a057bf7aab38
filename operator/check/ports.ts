/** C004: what a worker listens on beside $PORT. */
import type { V1Container } from '@kubernetes/client-node';
import type { Finding } from './finding.ts';
import {
  commandField,
  commandLine,
  type ImageConfig,
  nodeOptionsByField,
  type Rule,
  variablesFrom,
  type Workload,
  workerOf,
} from './workload.ts';

/** A port that the command line fixes: `next start -p 3000`, `--port=3000`. `$(PORT)` is what it should be. */
const FIXED_PORT = /(?:^|\s)(-p|--port)[= ]?([0-9]{2,5})(?=\s|$)/;
const INSPECTOR = /--inspect(-brk|-wait)?([= ]\S*)?(?=\s|$)/;
/** Variables that servers read before PORT: those of Nitro (Nuxt, SolidStart, Analog) and of Nuxt 2. */
export const PORT_VARIABLES = ['NITRO_PORT', 'NUXT_PORT'];

interface Place {
  object: string;
  /** Of the container. */
  path: string;
}

/** The port by which requests come in: the one that is named so, else the first. */
export function httpPort(ports: V1Container['ports'], wanted?: string | number): number | undefined {
  const all = ports ?? [];
  const found =
    all.find(({ name, containerPort }) => wanted !== undefined && (name === wanted || containerPort === wanted)) ??
    all.find(({ name = '' }) => /^(http|web|http-web|app)$/.test(name)) ??
    all[0];
  return found?.containerPort;
}

/** Findings on declared ports beside the one for requests. */
export function secondPorts(worker: V1Container, http: number | undefined, { object, path }: Place): Finding[] {
  const ports = worker.ports ?? [];
  return ports.flatMap(({ containerPort, name }, index): Finding[] => {
    if (containerPort === http) return [];
    return [
      {
        code: 'C004',
        level: 'decide',
        object,
        path: `${path}.ports[${index}]`,
        what: `the worker listens on ${containerPort}${name ? ` (${name})` : ''} beside its HTTP port`,
        why: 'All workers of a pod share one network, so only the first gets that port, and no Service leads to it',
        wayOut:
          'Give each worker a port of its own (a base + WORKER_INDEX), push metrics instead, or use those of the worker runtime (docs/metrics.md).',
      },
    ];
  });
}

/** Ports that the image exposes, where the template declares none. */
function exposed(worker: V1Container, image: ImageConfig | undefined): V1Container['ports'] {
  if (worker.ports) return worker.ports;
  return image?.exposedPorts.map((port) => ({ containerPort: Number.parseInt(port, 10) }));
}

/** The findings on variables that take the place of PORT. Corelane's PORT itself wins over any other one. */
function otherPorts(workload: Workload): Finding[] {
  const { worker, path } = workerOf(workload);
  const env = (worker.env ?? []).map(({ name }) => ({ name, at: `${path}.env[${name}]` }));
  const brought = variablesFrom(workload.surroundings.configMaps, worker).map(([name]) => ({
    name,
    at: `${path}.envFrom`,
  }));
  return [...env, ...brought]
    .filter(({ name }) => PORT_VARIABLES.includes(name))
    .map(({ name, at }) => ({
      code: 'C004',
      level: 'decide',
      object: workload.object,
      path: at,
      what: `${name} fixes the port of the server`,
      why: 'The server reads it before PORT, so all workers of a pod want the same port, and none listens on its own',
      wayOut: `Leave ${name} out.`,
    }));
}

export const portsRule: Rule = {
  codes: ['C004'],
  find(workload) {
    const { worker, path } = workerOf(workload);
    const { object } = workload;
    const image = workload.surroundings.images[worker.image ?? ''];
    const ports = exposed(worker, image);
    const findings = secondPorts({ ...worker, ports }, httpPort(ports), { object, path });
    findings.push(...otherPorts(workload));
    const line = commandLine(worker, image);
    const [, option, port] = FIXED_PORT.exec(line) ?? [];
    if (port !== undefined) {
      findings.push({
        code: 'C004',
        level: 'decide',
        object,
        path: `${path}.${worker.args ? 'args' : commandField(worker)}`,
        what: `the server is told to listen on ${port} (${option})`,
        why: 'Each worker has a port of its own, in PORT',
        wayOut: `Write "$(PORT)" for ${port}, or leave ${option} out where the server reads PORT.`,
      });
    }
    const inspector = nodeOptionsByField(workload).find(({ text }) => INSPECTOR.test(text));
    if (inspector) {
      findings.push({
        code: 'C004',
        level: 'decide',
        object,
        path: inspector.path,
        what: 'the inspector of Node.js is open (--inspect)',
        why: 'All workers of a pod want its one port, who reaches it can run any code, and no stuck worker is killed',
        wayOut: 'Leave it out; npx corelane profile needs no inspector.',
      });
    }
    return findings;
  },
};
