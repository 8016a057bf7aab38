/** KEDA as its own files install it, on a test's API server. It has the rights of its own roles and no more. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Json } from '../../operator/test/support/api-client.ts';
import { type ApiServer, repository } from '../../operator/test/support/api-server.ts';
import { eventually } from '../../operator/test/support/eventually.ts';
import { run } from '../harness/cluster/shell.ts';

const NAMESPACE = 'keda';
const SERVICE = 'keda-metrics-apiserver';
const RBAC = 'rbac.authorization.k8s.io';
const USER = [{ apiGroup: RBAC, kind: 'User', name: 'keda' }];
/** The first time on a machine it is compiled. */
const BUILD_TIMEOUT_MS = 40 * 60_000;

/** Resolves when KEDA's metrics are served by the API server. */
export async function installKeda(server: ApiServer): Promise<void> {
  const output = await run(join(repository, 'e2e/cluster/keda.sh'), [], { timeoutMs: BUILD_TIMEOUT_MS });
  const config = /^KEDA_CONFIG=(.*)$/m.exec(output)?.[1];
  if (!config) throw new Error(`keda.sh names no folder: ${output}`);
  const kubectl = server.kubectl();
  const read = (file: string) => parseAllDocuments(readFileSync(file, 'utf8')).map((one) => one.toJS() as Json);
  // kubectl apply would keep a copy in an annotation, for which the definitions are too large.
  for (const file of globSync(join(config, 'crd/bases/*.yaml')).sort())
    for (const definition of read(file)) await kubectl.create(definition);
  await kubectl.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  for (const role of read(join(config, 'rbac/role.yaml'))) {
    await kubectl.create(role);
    await kubectl.create(binding(role));
  }
  // What its metrics adapter has, as every server behind the API server.
  await kubectl.create(
    binding({ kind: 'ClusterRole', metadata: { name: 'system:auth-delegator' } }, 'keda-auth-delegator'),
  );
  await kubectl.create(
    binding({
      kind: 'Role',
      metadata: { name: 'extension-apiserver-authentication-reader', namespace: 'kube-system' },
    }),
  );
  for (const definition of ['scaledobjects.keda.sh', 'scaledjobs.keda.sh', 'cloudeventsources.eventing.keda.sh'])
    await kubectl.run('wait', '--for=condition=Established', `crd/${definition}`, '--timeout=60s');
  await server.startKeda();
  // The API server has no network of pods: it reaches the adapter by its name.
  await kubectl.create({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: SERVICE, namespace: NAMESPACE },
    spec: { type: 'ExternalName', externalName: SERVICE, ports: [{ port: 443 }] },
  });
  await kubectl.create({
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1beta1.external.metrics.k8s.io' },
    spec: {
      ...{ group: 'external.metrics.k8s.io', version: 'v1beta1', groupPriorityMinimum: 100, versionPriority: 100 },
      service: { name: SERVICE, namespace: NAMESPACE, port: 443 },
      caBundle: server.authority,
    },
  });
  await eventually(
    "KEDA's metrics are served",
    async () => {
      const { status } = await server
        .admin()
        .get('/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io');
      expect(status.conditions).toMatchObject([{ type: 'Available', status: 'True' }]);
    },
    { timeoutMs: 120_000, everyMs: 500 },
  );
}

function binding({ kind, metadata: { name, namespace } }: Json, called = name): Json {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: `${kind}Binding`,
    metadata: { name: called, namespace },
    roleRef: { apiGroup: RBAC, kind, name },
    subjects: USER,
  };
}
