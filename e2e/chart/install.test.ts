/** charts/install.yaml: what a cluster takes, in the order of the file, with images that one can put in. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { ROOT, run } from '../harness/cluster/shell.ts';

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
}

// The API server of the api project (operator/test/support/global-setup.ts).
process.env.KUBECONFIG = process.env.CORELANE_TEST_KUBECONFIG;

const text = readFileSync(join(ROOT, 'charts/install.yaml'), 'utf8');
const manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
const CLUSTER_WIDE =
  /^(CustomResourceDefinition|Namespace|ClusterRole|ClusterRoleBinding|ValidatingAdmissionPolicy.*)$/;

test('has the CRD first, then the namespace that all the rest is in', () => {
  expect(manifests.slice(0, 2).map(({ kind, metadata }) => [kind, metadata.name])).toEqual([
    ['CustomResourceDefinition', 'renderservices.corelane.dev'],
    ['Namespace', 'corelane'],
  ]);
  const namespaced = manifests.filter(({ kind }) => !CLUSTER_WIDE.test(kind));
  expect(namespaced.map(({ metadata }) => metadata.namespace)).toEqual(namespaced.map(() => 'corelane'));
  expect(namespaced.map(({ kind }) => kind)).toContain('Deployment');
});

test('does not say that Helm manages it', () => {
  const labels = manifests.flatMap(({ metadata }) => Object.keys(metadata.labels ?? {}));
  expect(labels).toContain('app.kubernetes.io/name');
  expect(labels.filter((label) => /managed-by|helm/.test(label))).toEqual([]);
});

test.each(['operator', 'sidecar'])('names the image of the %s once, so that a sed can put in another', (name) => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  expect(text.split(`ghcr.io/corelane/${name}:${version}`)).toHaveLength(2);
});

test('is accepted by the API server', async () => {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'corelane' } };
  await run('kubectl', ['apply', '-f', '-'], { input: JSON.stringify(namespace) });
  const options = ['--server-side', '--force-conflicts', '--dry-run=server', '--warnings-as-errors'];
  const told = await run('kubectl', ['apply', ...options, '-f', 'charts/install.yaml']);
  expect(told.trim().split('\n')).toHaveLength(manifests.length);
});
