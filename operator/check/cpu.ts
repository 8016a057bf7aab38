/** C002, C003, C015: the CPU of a worker, of a pod, of a node. */
import type { V1Container } from '@kubernetes/client-node';
import { WORKERS_PER_POD_MAX } from '../src/api/names.ts';
import { parseQuantity } from '../src/api/scalars.ts';
import { DEFAULT_CPU } from '../src/api/scaling.ts';
import type { RenderServiceSpec } from '../src/api/spec.ts';
import type { Finding } from './finding.ts';
import { type Rule, toDecide, type Workload, workerOf } from './workload.ts';

/** An idle Node.js worker with its runtime, garbage collection and a page now and then stay below it. */
const SMALL_CPU = 0.1;
/** Less than this part of a node left over is not worth another size of pods. */
const UNUSED_SHARE = 0.15;

/** CPU that a container asks for: its request, else its limit, as the API server has it. */
function requestOf({ resources }: V1Container): number | undefined {
  const text = resources?.requests?.cpu ?? resources?.limits?.cpu;
  return text === undefined ? undefined : parseQuantity(text);
}

/** CPU that a pod with `workersPerPod` workers asks for, as the scheduler reckons it. */
function podCpu(spec: RenderServiceSpec, workersPerPod = spec.workersPerPod): number {
  const { worker } = workerOf({ spec });
  const init = spec.template.spec?.initContainers ?? [];
  const sum = (containers: V1Container[]) =>
    containers.reduce((total, container) => total + (requestOf(container) ?? 0), 0);
  const sidecars = init.filter(({ restartPolicy }) => restartPolicy === 'Always');
  const beside = (spec.template.spec?.containers ?? []).filter((container) => container !== worker);
  const running = workersPerPod * (requestOf(worker) ?? 1) + proxiesCpu(spec) + sum(beside) + sum(sidecars);
  // Init containers run before, one at a time; the largest counts if it is larger than all that runs later.
  return Math.max(running, ...init.map((container) => requestOf(container) ?? 0));
}

function proxiesCpu({ sidecar }: RenderServiceSpec): number {
  return (parseQuantity(sidecar.nginx.cpu) ?? 0) + (parseQuantity(sidecar.haproxy.cpu) ?? 0);
}

/**
 * CPUs that the pods of a machine with so many vCPUs can have: what GKE and EKS leave of them (6 % of the first, 1 % of
 * the second, 0.5 % of the next two, 0.25 % of the rest are kept). E.g. 4 -> 3.92.
 */
export function allocatableCpu(vcpus: number): number {
  const kept = [0.06, 0.01, 0.005, 0.005];
  const first = kept.reduce((sum, share, index) => sum + share * Math.min(1, Math.max(0, vcpus - index)), 0);
  return vcpus - first - 0.0025 * Math.max(0, vcpus - kept.length);
}

/** Most workers that a node has room for with pods of `workersPerPod`. */
function workersOfNode(spec: RenderServiceSpec, workersPerPod: number, nodeCpu: number): number {
  // Half a thousandth: sums of decimal fractions are not exact.
  return workersPerPod * Math.floor((nodeCpu + 0.0005) / podCpu(spec, workersPerPod));
}

/**
 * The number of workers of a pod with which a node of `nodeCpu` holds most workers; of several the largest, which has
 * the fewest proxies. 0 where not even one fits.
 */
export function bestWorkersPerPod(spec: RenderServiceSpec, nodeCpu: number, max = WORKERS_PER_POD_MAX): number {
  const numbers = Array.from({ length: max }, (_unused, index) => index + 1);
  return numbers.reduce((best, number) => {
    const workers = workersOfNode(spec, number, nodeCpu);
    return workers > 0 && workers >= workersOfNode(spec, Math.max(1, best), nodeCpu) ? number : best;
  }, 0);
}

/** CPUs for people: at most two decimals. */
export function cpus(value: number): string {
  return String(Number(value.toFixed(2)));
}

/** C002 of a RenderService; those of a conversion come from the converter. */
const workerCpu: Rule = {
  codes: ['C002'],
  find(workload) {
    const { worker, path } = workerOf(workload);
    const { object } = workload;
    const findings: Finding[] = [];
    const limit = parseQuantity(worker.resources?.limits?.cpu ?? '1') ?? 1;
    if (limit < 1) {
      findings.push({
        code: 'C002',
        level: toDecide(workload, 'warning'),
        object,
        path: `${path}.resources.limits.cpu`,
        what: `a CPU limit of ${cpus(limit)}`,
        why: 'It stops every render for part of each 100 ms, also while the node is idle',
        wayOut: 'Leave the limit out, and ask for requests.cpu: "1".',
      });
    }
    const request = requestOf(worker);
    if (workload.origin === 'RenderService' && request !== undefined && request !== 1) {
      findings.push({
        code: 'C002',
        level: 'info',
        object,
        path: `${path}.resources.requests.cpu`,
        what: `a worker asks for ${cpus(request)} CPU`,
        why: request < 1 ? 'On a busy node a render gets no more than that' : 'A Node.js process renders on one',
        wayOut: 'Ask for 1, unless it is meant.',
      });
    }
    return findings;
  },
};

const nodeFit: Rule = {
  codes: ['C003'],
  skipped: ({ surroundings }) =>
    surroundings.nodes === undefined || surroundings.nodes.length === 0
      ? 'tell the size of a node with --node-cpu 4, or ask a cluster'
      : undefined,
  find(workload) {
    const nodes = workload.surroundings.nodes ?? [];
    const largest = nodes.toSorted((one, other) => other.cpu - one.cpu)[0];
    if (!largest) return [];
    const { spec } = workload;
    const asked = podCpu(spec);
    return asked > largest.cpu + 0.0005 ? [tooLarge(workload, largest)] : [...idleCpu(workload, largest)];
  },
};

interface Node {
  cpu: number;
  name: string;
}

function tooLarge(workload: Workload, node: Node): Finding {
  const { spec, object } = workload;
  const { worker, path } = workerOf({ spec });
  const init = (spec.template.spec?.initContainers ?? []).findIndex((one) => (requestOf(one) ?? 0) > node.cpu);
  if (init >= 0) return tooLargeInit(workload, node, init);
  const each = requestOf(worker) ?? 1;
  const others = podCpu(spec) - spec.workersPerPod * each;
  const fits = Array.from({ length: spec.workersPerPod }, (_unused, index) => spec.workersPerPod - index).find(
    (number) => podCpu(spec, number) <= node.cpu + 0.0005,
  );
  return {
    code: 'C003',
    level: 'error',
    object,
    path: fits === undefined ? `${path}.resources.requests.cpu` : 'spec.workersPerPod',
    what: `a pod asks for ${cpus(podCpu(spec))} CPU (${spec.workersPerPod} x ${cpus(each)} and ${cpus(others)} for proxies and others), and ${node.name} has ${cpus(node.cpu)}`,
    why: NO_NODE,
    wayOut:
      fits === undefined
        ? `Ask for less than ${cpus(Math.max(0, node.cpu - others))} CPU for a worker, or use larger nodes.`
        : `Set workersPerPod: ${fits}, which fits (${cpus(podCpu(spec, fits))} CPU), or use larger nodes.`,
  };
}

function tooLargeInit({ spec, object }: Workload, node: Node, index: number): Finding {
  const container = spec.template.spec?.initContainers?.[index] as V1Container;
  return {
    code: 'C003',
    level: 'error',
    object,
    path: `spec.template.spec.initContainers[${index}].resources.requests.cpu`,
    what: `init container ${container.name} asks for ${cpus(requestOf(container) ?? 0)} CPU, and ${node.name} has ${cpus(node.cpu)}`,
    why: NO_NODE,
    wayOut: 'Ask for less, or use larger nodes.',
  };
}

const NO_NODE = 'No node has room for it, so pods stay Pending';

function* idleCpu({ spec, object }: Workload, node: Node): Generator<Finding> {
  const now = workersOfNode(spec, spec.workersPerPod, node.cpu);
  const better = bestWorkersPerPod(spec, node.cpu, 16);
  const then = better === 0 ? 0 : workersOfNode(spec, better, node.cpu);
  const unused = node.cpu - (now / spec.workersPerPod) * podCpu(spec);
  if (then <= now || unused < UNUSED_SHARE * node.cpu) return;
  yield {
    code: 'C003',
    level: 'info',
    object,
    path: 'spec.workersPerPod',
    what: `${node.name} (${cpus(node.cpu)} CPU) holds ${now} workers in pods of ${spec.workersPerPod}`,
    why: `${cpus(unused)} CPU are left over`,
    wayOut: `With workersPerPod: ${better} it holds ${then}.`,
  };
}

const smallPercent: Rule = {
  codes: ['C015'],
  find(workload) {
    const { scaling } = workload.spec;
    if (!scaling || scaling.occupancy) return [];
    const { abovePercent } = (scaling.cpu ?? DEFAULT_CPU).scaleUp;
    const request = requestOf(workerOf(workload).worker) ?? 1;
    const threshold = (request * abovePercent) / 100;
    if (threshold >= SMALL_CPU - 0.0005) return [];
    return [
      {
        code: 'C015',
        level: 'warning',
        object: workload.object,
        path: 'spec.scaling',
        what: `${abovePercent} % of ${cpus(request)} CPU is ${Math.round(1000 * threshold)}m`,
        why: 'A worker that hardly works uses as much, so the fleet grows to maxReplicas',
        wayOut: 'Give a worker requests.cpu: "1", or scale by occupancy: {}.',
      },
    ];
  },
};

export const cpuRules: Rule[] = [workerCpu, nodeFit, smallPercent];
