/** The chart's ValidatingAdmissionPolicies on a test's API server. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { ApiClient, type Json, pathOf } from './api-client.ts';
import { type ApiServer, repository } from './api-server.ts';
import { eventually } from './eventually.ts';

const run = promisify(execFile);

/** The policies and their bindings as the chart has them, but about user `operator` instead of the chart's account. */
async function policies(): Promise<Json[]> {
  const { stdout } = await run('helm', [
    ...['template', 'corelane', join(repository, 'charts/corelane'), '--namespace', 'corelane'],
    ...['--kube-version', '1.36.0', '--show-only', 'templates/admission-policies.yaml'],
  ]);
  const account = 'system:serviceaccount:corelane:corelane';
  if (!stdout.includes(account)) throw new Error(`the chart's policies do not speak of ${account}`);
  return parseAllDocuments(stdout.replaceAll(account, 'operator')).map((document) => document.toJS());
}

/** Installs them, and resolves when all are enforced: the API server takes a moment to compile a new one. */
export async function installAdmissionPolicies(server: ApiServer): Promise<void> {
  const admin = server.admin();
  const namespace = 'admission-policies';
  await admin.post('/api/v1/namespaces', { metadata: { name: namespace } });
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const rights = [
    { apiGroups: ['', 'corelane.dev'], resources: ['configmaps', 'renderservices'], verbs: ['create'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['patch'] },
    { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['impersonate'] },
  ];
  await admin.post(`${rbac}/clusterroles`, { metadata: { name: namespace }, rules: rights });
  await admin.post(`${rbac}/namespaces/${namespace}/rolebindings`, {
    metadata: { name: namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: namespace },
    subjects: ['operator', namespace].map((name) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name })),
  });
  for (const object of await policies()) {
    const plural = object.kind === 'ValidatingAdmissionPolicy' ? 'policies' : 'policybindings';
    await admin.post(`/apis/admissionregistration.k8s.io/v1/validatingadmission${plural}`, object);
  }
  const containers = [{ name: 'a', image: 'a:1' }];
  const withPod = (pod: object) => ({ spec: { template: { spec: { containers, ...pod } } } });
  const labelled = { metadata: { name: 'forbidden', labels: { 'example.com/a': 'b' } } };
  const forbidden = [
    { user: 'operator', path: pathOf('ConfigMap', namespace), object: {} },
    { user: namespace, path: pathOf('RenderService', namespace), object: withPod({ hostPID: true }) },
    { user: namespace, path: pathOf('RenderService', namespace), object: { ...withPod({}), ...labelled } },
  ];
  for (const { user, path, object } of forbidden) {
    const client = new ApiClient(server.adminKubeconfig, user);
    const metadata = { name: 'forbidden' };
    await untilEnforced(user, () => client.post(`${path}?dryRun=All`, { ...kindOf(path), metadata, ...object }));
  }
  await admin.post(pathOf('Pod', namespace), {
    metadata: { name: 'a' },
    spec: { containers: [{ name: 'a', image: 'a:1' }] },
  });
  const client = new ApiClient(server.adminKubeconfig, 'operator');
  const labels = { a: 'b' };
  const path = `${pathOf('Pod', namespace, 'a')}?dryRun=All`;
  await untilEnforced("the operator's pods", () => client.patch(path, { metadata: { labels } }));
}

async function untilEnforced(whom: string, tried: () => Promise<unknown>): Promise<void> {
  await eventually(`the policy about ${whom} is enforced`, async () => {
    const outcome = await tried().then(
      () => 'it was accepted',
      (error: Error) => error.message,
    );
    if (!outcome.includes('ValidatingAdmissionPolicy')) throw new Error(outcome);
  });
}

function kindOf(path: string): object {
  return path.includes('corelane.dev') ? { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService' } : {};
}
