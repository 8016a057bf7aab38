/**
 * Writes charts/install.yaml, the chart as `kubectl apply --server-side -f` takes it, for those without Helm:
 *   node operator/gen/install.ts           writes
 *   node operator/gen/install.ts --check   writes nothing, exit 1 if it differs
 * Wants helm 3 on PATH (e2e/cluster/tools.sh).
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FILE = 'charts/install.yaml';
const NAMESPACE = 'corelane';
/** The oldest that the chart allows. */
const OLDEST_KUBERNETES = '1.33.0';
const HEAD = `\
# Corelane with the default values of its chart: CRD, namespace, operator. Made by "make generate" from charts/corelane;
# do not edit.
#
#   kubectl apply --server-side -f install.yaml
#
# To upgrade, apply the file of the new version. Two lines name images, one each: ghcr.io/corelane/operator and
# ghcr.io/corelane/sidecar. docs/install.md says how to take others.
`;

/** Helm does not manage what kubectl applies, and these labels are how others recognize what it does manage. */
const OF_HELM = /^ +(app\.kubernetes\.io\/managed-by: Helm|helm\.sh\/chart: \S+)\n/gm;
/** A comment that helm writes before each document. */
const SOURCE = /^# Source: .*\n/gm;

/** The CRD first, then the namespace, then what `helm template` has rendered, without what only Helm needs. */
function installManifest(crd: string, rendered: string): string {
  const namespace = `apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${NAMESPACE}\n`;
  const objects = rendered
    .replaceAll(OF_HELM, '')
    .replaceAll(SOURCE, '')
    .replace(/^---\n/, '');
  return `${HEAD}${[crd, namespace, objects].join('---\n')}`;
}

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
// Without a version, a helm that was built from the module proxy takes the cluster for one of Kubernetes 1.20.
const options = ['--namespace', NAMESPACE, '--kube-version', OLDEST_KUBERNETES, '--set', 'crds.enabled=false'];
const rendered = execFileSync('helm', ['template', 'corelane', 'charts/corelane', ...options], { encoding: 'utf8' });
const manifest = installManifest(readFileSync('crds/corelane.dev_renderservices.yaml', 'utf8'), rendered);
if (!process.argv.includes('--check')) writeFileSync(FILE, manifest);
else if (manifest !== readFileSync(FILE, 'utf8')) {
  console.error(`${FILE} differs from what the chart renders: run "make generate" and commit the result.`);
  process.exit(1);
}
