/** Fields on what is added to the pods: the proxies' resources. */
import { z } from 'zod';
import { quantity } from '../scalars.ts';
import { assetFiles } from './assets.ts';

/**
 * Resources of a container that Corelane adds.
 * @param memoryLimitMin holds the connections and requests that render/budget.ts lets in whatever the limit is
 */
function proxyResources(cpu: string, memory: string, memoryLimit: string, memoryLimitMin: string) {
  return {
    cpu: quantity()
      .default(cpu)
      .describe('CPU request, which is also its share where all CPUs are busy (sidecar/README.md has figures).'),
    cpuLimit: quantity()
      .optional()
      .describe(
        'CPU limit. Unless given there is none, because throttling a proxy delays every request; but where the worker has a CPU limit, the proxy has the same one, at most 1 and at least its request. A proxy has one thread, so a limit of 1 does not throttle it (docs/pod-template.md#resources).',
      ),
    memory: quantity().default(memory).describe('Memory request.'),
    memoryLimit: quantity(memoryLimitMin)
      .default(memoryLimit)
      .describe('Memory limit. How many connections and requests the proxy takes follows from it (docs/edge.md).'),
  };
}

export const sidecar = z
  .strictObject({
    nginx: z
      .strictObject({
        ...proxyResources('50m', '32Mi', '512Mi', '64Mi'),
        // kubelet counts the container's log, of which it keeps 50Mi.
        ephemeralStorageLimit: quantity('64Mi')
          .default('16Gi')
          .describe(
            'Most that bodies and responses may take of the disk, and the ephemeral-storage limit of the container. What could exceed it is refused before (docs/edge.md).',
          ),
      })
      .prefault({})
      .describe('Resources of the nginx container.'),
    haproxy: z
      .strictObject(proxyResources('50m', '48Mi', '256Mi', '80Mi'))
      .prefault({})
      .describe('Resources of the HAProxy container.'),
    assets: assetFiles,
  })
  .prefault({})
  .describe('The two proxy containers that Corelane adds to each pod.');
