/** Which container of a pod template becomes the workers. */
import type { V1Container } from '@kubernetes/client-node';
import { WORKER_CONTAINER } from './names.ts';

/** The container that becomes the workers: the one named "worker", or the only one. */
export function workerTemplate(containers: V1Container[]): V1Container | undefined {
  return containers.length === 1 ? containers[0] : containers.find(({ name }) => name === WORKER_CONTAINER);
}
