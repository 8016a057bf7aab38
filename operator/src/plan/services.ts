/** The Service in front of the pods, and the headless one by which pods find each other. */
import { PORTS } from '../api/names.ts';
import type { RenderService } from '../api/resource.ts';
import { type PlannedObject, peersName, plannedObject, selectorLabels, servingLabels } from './objects.ts';

/**
 * Service that clients use.
 * @param canRest see `servingLabels`
 */
export function service(renderService: RenderService, canRest: boolean): PlannedObject {
  const { type, port, appProtocol, labels, annotations, ...policies } = renderService.spec.service;
  return plannedObject(renderService, {
    apiVersion: 'v1',
    kind: 'Service',
    name: renderService.metadata.name,
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    content: {
      spec: {
        type,
        selector: servingLabels(renderService, canRest),
        // By number: of several ports named "http" in a pod the first wins, and other containers stand before nginx.
        ports: [{ name: 'http', port, protocol: 'TCP', targetPort: PORTS.http, ...(appProtocol && { appProtocol }) }],
        // externalTrafficPolicy, ipFamilies and their like have the same names and values there.
        ...policies,
      },
    },
  });
}

/** Headless Service whose DNS name lists the pods that are ready. */
export function peersService(renderService: RenderService): PlannedObject {
  return plannedObject(renderService, {
    apiVersion: 'v1',
    kind: 'Service',
    name: peersName(renderService),
    content: {
      spec: {
        type: 'ClusterIP',
        clusterIP: 'None',
        selector: selectorLabels(renderService),
        ports: [{ name: 'peers', port: PORTS.peers, protocol: 'TCP', targetPort: PORTS.peers }],
      },
    },
  });
}
