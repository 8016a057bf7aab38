/** How many workers a pod gets, what of its CPU and memory each of them, and how many pods there are. */
import type { V1Container } from '@kubernetes/client-node';
import { bestWorkersPerPod, cpus } from '../check/cpu.ts';
import { WORKERS_PER_POD_MAX } from '../src/api/names.ts';
import { parseQuantity } from '../src/api/scalars.ts';
import { specShape } from '../src/api/spec.ts';
import type { Draft } from './draft.ts';
import type { Path } from './manifests.ts';

const MIB = 2 ** 20;
/** Node for `auto` where none is given: the most common one. */
const NODE_CPU = 3.92;

export interface Wanted {
  /** Index of the container that renders. */
  worker: number;
  /** A number, `auto`, or as many as the container asks for CPUs. */
  workersPerPod?: number | 'auto';
  /** CPUs that pods of a node can have. */
  nodeCpu?: number;
  /** Whether the container starts several processes, which then shared its memory. */
  hasSeveralProcesses: boolean;
  /** Pods of the Deployment, where it says so. */
  replicas?: number;
}

export interface Capacity {
  workersPerPod: number;
  /** Pods that render as much as so many pods of the Deployment. */
  podsFor(podsBefore: number): number;
}

/** Decides on the workers, writes `workersPerPod`, `replicas` and the resources of a worker, and says so. */
export function writeCapacity(draft: Draft, wanted: Wanted): Capacity {
  const container = draft.container(wanted.worker);
  const path: Path = ['spec', 'template', 'spec', 'containers', wanted.worker, 'resources'];
  const { requests, limits } = container.resources ?? {};
  const asked = requests?.cpu ?? limits?.cpu;
  const cpu = asked === undefined ? undefined : parseQuantity(asked);
  const units = Math.min(WORKERS_PER_POD_MAX, Math.max(1, Math.round(cpu ?? 1)));
  if (units > 1) divide(draft, path, container, { units, isMemoryShared: wanted.hasSeveralProcesses });
  const workersPerPod = chosen(draft, wanted, units);
  // Two pods stay two: one that is lost must not take all with it.
  const podsFor = (pods: number) => (pods < 2 ? pods : Math.max(2, Math.ceil((pods * units) / workersPerPod)));
  draft.set('workersPerPod', workersPerPod);
  sayCpu(draft, path, { cpu, units, workersPerPod, wanted, podsFor, container });
  return { workersPerPod, podsFor };
}

function chosen(draft: Draft, { workersPerPod, nodeCpu = NODE_CPU, replicas = 2 }: Wanted, units: number): number {
  if (workersPerPod !== 'auto') return workersPerPod ?? units;
  const parsed = specShape.safeParse({ workersPerPod: 1, template: draft.template() });
  if (!parsed.success) return units;
  const most = Math.min(16, Math.max(1, Math.floor((replicas * units) / 2)));
  return Math.max(1, bestWorkersPerPod(parsed.data, nodeCpu, most));
}

/** The part of each worker of what the container asks for. */
function divide(
  draft: Draft,
  path: Path,
  { resources }: V1Container,
  { units, isMemoryShared }: { units: number; isMemoryShared: boolean },
): void {
  const parts: { path: Path; said: string }[] = [];
  for (const list of ['requests', 'limits'] as const) {
    const { cpu, memory } = resources?.[list] ?? {};
    const part = cpu === undefined ? undefined : parseQuantity(cpu);
    if (part !== undefined) draft.replace([...path, list, 'cpu'], cpuText(part / units));
    const bytes = memory === undefined || !isMemoryShared ? undefined : parseQuantity(memory);
    if (bytes === undefined) continue;
    const each = `${Math.ceil(bytes / units / MIB)}Mi`;
    draft.replace([...path, list, 'memory'], each);
    parts.push({ path: [...path, list, 'memory'], said: `${memory} became ${each}` });
  }
  const [first, ...rest] = parts;
  if (first === undefined) return;
  draft.say(first.path, {
    code: 'C007',
    level: 'info',
    also: rest.map((part) => draft.pathOf(part.path)),
    what: `${parts.map(({ said }) => said).join(', ')} for each of ${units} workers`,
    why: 'Its processes shared the memory of the container, and each worker is a container of its own',
    wayOut: 'Measure one process (kubectl exec, ps) and set what it needs.',
  });
}

function cpuText(value: number): string {
  return Number.isInteger(value) ? String(value) : `${Math.round(1000 * value)}m`;
}

interface Told extends Capacity {
  cpu: number | undefined;
  units: number;
  wanted: Wanted;
  container: V1Container;
}

function sayCpu(draft: Draft, path: Path, told: Told): void {
  const { cpu, units, workersPerPod, wanted } = told;
  const fleet = fleetText(told);
  const at =
    cpu === undefined
      ? path
      : [...path, draft.get([...path, 'requests', 'cpu']) === undefined ? 'limits' : 'requests', 'cpu'];
  const isChosen = wanted.workersPerPod !== undefined;
  if (cpu === undefined) {
    draft.say(at, {
      code: 'C002',
      level: 'decide',
      what: `no CPU request; workersPerPod: ${workersPerPod}${fleet}`,
      why: 'Each worker asks for 1 CPU then, where the Deployment asked for none',
      wayOut: 'Look at what the pods use (kubectl top pods); set requests.cpu of the worker if 1 is not right.',
    });
  } else if (units > 1) {
    draft.say(at, {
      code: 'C002',
      level: isChosen ? 'info' : 'decide',
      what: `${cpus(cpu)} CPU became workers with ${cpus(cpu / units)} each; workersPerPod: ${workersPerPod}${fleet}`,
      why: `One process renders on one CPU${memoryText(told)}`,
      wayOut: 'Keep it, or choose with --workers-per-pod N, or auto with --node-cpu.',
    });
  } else if (cpu !== 1) {
    draft.say(at, {
      code: 'C002',
      level: 'decide',
      what: `a worker asks for ${cpus(cpu)} CPU; workersPerPod: ${workersPerPod}${fleet}`,
      why:
        cpu < 1
          ? 'On a busy node a render gets no more than that, and takes as much longer'
          : 'One process renders on one CPU',
      wayOut: 'Ask for "1" and divide the pods by what that adds, or keep it.',
    });
  } else if (workersPerPod !== units) {
    draft.say('spec.replicas', {
      code: 'C002',
      level: 'info',
      what: `workersPerPod: ${workersPerPod}${fleet}`,
      why: isChosen ? 'As --workers-per-pod says' : 'By the size of the container',
      wayOut: 'Nothing to do.',
    });
  }
}

function fleetText({ wanted: { replicas }, workersPerPod, podsFor }: Told): string {
  if (replicas === undefined) return '';
  const pods = podsFor(replicas);
  return `; ${replicas} ${replicas === 1 ? 'pod becomes' : 'pods become'} ${pods} with ${pods * workersPerPod} ${pods * workersPerPod === 1 ? 'worker' : 'workers'} in all`;
}

function memoryText({ wanted: { hasSeveralProcesses }, container, workersPerPod }: Told): string {
  const memory = container.resources?.limits?.memory;
  if (hasSeveralProcesses || memory === undefined) return '';
  return `; each worker keeps the memory of the one process, so a pod may take ${workersPerPod} x ${memory}`;
}
