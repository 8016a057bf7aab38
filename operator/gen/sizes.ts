/** Tables of what a pod asks for and of what nginx admits, from the code that decides it. */
import { CACHE_MEMORY_MIN } from '../src/api/cache-rules.ts';
import { sizeBytes } from '../src/api/scalars.ts';
import type { RenderServiceSpecInput } from '../src/api/spec.ts';
import { renderServiceSpec } from '../src/api/validated-spec.ts';
import { podTemplate } from '../src/plan/pod-template.ts';
import { budget } from '../src/render/model/budget.ts';
import { table } from './block.ts';

const MIB = 1024 ** 2;
const LIMITS = ['128Mi', '256Mi', '512Mi', '1Gi'];

function specOf(input: Partial<RenderServiceSpecInput>) {
  const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
  return renderServiceSpec.parse({ template, ...input });
}

/** Requests and limits of the containers of a pod, by default. */
export function requestsOfPod(): string {
  const metadata = { name: 'shop', namespace: 'shop', uid: '', generation: 1, resourceVersion: '' };
  const { spec } = podTemplate({ metadata, spec: specOf({}) }, 'shop', { image: 'sidecar' });
  const added = (spec?.initContainers ?? []).map(({ name, restartPolicy, resources: { requests, limits } = {} }) => [
    restartPolicy ? `\`${name}\`` : `\`${name}\` (an init container: has ended when the workers start)`,
    requests?.cpu ?? '',
    // One that has ended has the resources of a worker, which says what namespaces want.
    requests?.memory ?? 'yours',
    limits?.memory ?? 'yours',
  ]);
  const worker = spec?.containers[0]?.resources?.requests?.cpu ?? '';
  return table(['', 'CPU', 'memory', 'memory limit'], [['each worker', worker, 'yours', 'yours'], ...added]);
}

/** What nginx takes by default, in a sentence, and what other limits come to. */
export function whatNginxAdmits(): string {
  const { nginxConnections, requests, bodies, largeBodies, responseFileBytes } = budget(specOf({}));
  const count = (value: number) => value.toLocaleString('en');
  const rows = LIMITS.map((memoryLimit) => {
    const sidecar = { nginx: { memoryLimit, memory: '32Mi' } };
    const admitted = budget(specOf({ sidecar }));
    // The least with which it may be on.
    const cached =
      sizeBytes(memoryLimit) < sizeBytes(CACHE_MEMORY_MIN)
        ? '-'
        : count(budget(specOf({ sidecar, cache: { enabled: true } })).requests);
    return [memoryLimit, count(admitted.nginxConnections), count(admitted.requests), count(admitted.bodies), cached];
  });
  return [
    `By default: ${count(nginxConnections)} connections, ${requests} requests, ${bodies} of them with a body, ${largeBodies} of those on disk, ${Math.floor(responseFileBytes / MIB)} MiB for a response.`,
    '',
    table(['`memoryLimit`', 'connections', 'requests', 'with a body', 'requests with the cache'], rows),
  ].join('\n');
}
