/** What is applied: RenderServices, and the same pods as plain objects. Computes only. */
import { parseStored, type RenderServiceResource } from '../../operator/src/api/resource.ts';
import { desiredObjects, type PlannedObject } from '../../operator/src/plan/index.ts';
import { type Shape, servicesOf } from './shape.ts';

/** Named in the template, so that no scheduler is needed: how long that takes is the same for all. */
export const NODE = 'kwok-0';
/** The service whose replicas are changed while the others roll. */
export const PROBE = 'probe';

const IMAGE = 'corelane.test/app:1';
/** What the operator of the bench gives to pods, too. */
export const SIDECAR = { image: 'corelane.test/sidecar:1' };
export const ACCESS = { namespace: 'operator', monitoring: [] };

export interface Named {
  name: string;
  namespace: string;
}

/**
 * A RenderService with all defaults.
 * @param version another one makes other pods
 */
export function renderService({ name, namespace }: Named, replicas: number, version = '1') {
  const resources = { requests: { cpu: '1', memory: '512Mi' } };
  const worker = { name: 'worker', image: IMAGE, env: [{ name: 'VERSION', value: version }], resources };
  return {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name, namespace },
    spec: { replicas, template: { spec: { nodeName: NODE, containers: [worker] } } },
  };
}

/** All RenderServices of a shape. */
export function renderServices(shape: Shape, version?: string): object[] {
  return servicesOf(shape).map((service) => renderService(service, shape.pods, version));
}

const PLAIN_KINDS = ['Service', 'PodDisruptionBudget', 'Deployment'];

/**
 * What somebody would write who has no operator: of each service a Deployment of the very same pods, a Service and a
 * PodDisruptionBudget. Neither the configuration of the proxies nor the Service by which they find each other is in it.
 */
export function plainObjects(shape: Shape): object[] {
  return servicesOf(shape).flatMap((service) => {
    const resource = renderService(service, shape.pods) as unknown as RenderServiceResource;
    const parsed = parseStored({ ...resource, metadata: { ...resource.metadata, uid: 'none', generation: 1 } });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
    return desiredObjects(parsed.renderService, SIDECAR, ACCESS)
      .filter(({ kind, metadata }) => PLAIN_KINDS.includes(kind) && !metadata.name.endsWith('-peers'))
      .map(withoutOperator);
  });
}

/** Without what only the operator reads. */
function withoutOperator({ metadata, ...content }: PlannedObject): object {
  const { name, namespace, labels } = metadata;
  return { ...content, metadata: { name, namespace, labels } };
}

/** As a file for kubectl. */
export function asFile(objects: object[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
}
