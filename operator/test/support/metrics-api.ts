/**
 * metrics.k8s.io in a cluster without kubelets: a CustomResourceDefinition of that group. So the real API server serves
 * it, with its label selectors and its RBAC, and a test says what the pods use. The real metrics-server is in the
 * stories.
 */
import { type ApiClient, type Json, StatusError } from './api-client.ts';
import { eventually } from './eventually.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const NAME = 'pods.metrics.k8s.io';
const ROOT = '/apis/metrics.k8s.io/v1beta1';

/** Brings the Metrics API up, empty. */
export async function installMetricsApi(admin: ApiClient): Promise<void> {
  await eventually('the Metrics API of before is gone', async () => {
    expect(await admin.find(`${DEFINITIONS}/${NAME}`)).toBeUndefined();
  });
  await admin.post(DEFINITIONS, {
    metadata: { name: NAME, annotations: { 'api-approved.kubernetes.io': 'unapproved, for tests only' } },
    spec: {
      group: 'metrics.k8s.io',
      scope: 'Namespaced',
      names: { plural: 'pods', kind: 'PodMetrics', listKind: 'PodMetricsList' },
      versions: [
        {
          name: 'v1beta1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  });
  await eventually('the Metrics API answers', () => admin.get(`${ROOT}/pods`));
}

export async function removeMetricsApi(admin: ApiClient): Promise<void> {
  await admin.delete(`${DEFINITIONS}/${NAME}`);
}

/**
 * Says of every worker of these pods how much CPU it uses, and of the proxies that they are busy, which must not
 * matter.
 */
export async function reportCpu(admin: ApiClient, pods: Json[], millicores: number): Promise<void> {
  await Promise.all(
    pods.map(async ({ metadata, spec }) => {
      const usage = (name: string) => ({ cpu: name.startsWith('worker-') ? `${millicores * 1_000_000}n` : '3' });
      const names = [...spec.containers, ...spec.initContainers].map(({ name }: Json) => name);
      const { name, namespace, labels } = metadata;
      const body = {
        apiVersion: 'metrics.k8s.io/v1beta1',
        kind: 'PodMetrics',
        metadata: { name, namespace, labels },
        timestamp: new Date().toISOString(),
        window: '15s',
        containers: names.map((container: string) => ({ name: container, usage: usage(container) })),
      };
      const path = `${ROOT}/namespaces/${namespace}/pods`;
      try {
        await admin.post(path, body);
      } catch (error) {
        if (!(error instanceof StatusError && error.code === 409)) throw error;
        await admin.patch(`${path}/${name}`, { timestamp: body.timestamp, containers: body.containers });
      }
    }),
  );
}
