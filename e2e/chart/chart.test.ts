/** The Helm chart: lint, values schema, templates against the API server's own schemas, and a dry run on it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { rules } from '../../operator/src/kube/rbac.ts';
import { readSettings } from '../../operator/src/settings.ts';
import { ROOT, run } from '../harness/cluster/shell.ts';
import { writeSchemas } from './schemas.ts';

const CHART = 'charts/corelane';
const NAMESPACE = 'corelane';
/** The settings that an operator cannot do without. */
const ENVIRONMENT = { CORELANE_SIDECAR_IMAGE: 's:1', CORELANE_POD_NAME: 'p', CORELANE_POD_NAMESPACE: 'n' };
const DIGEST = `sha256:${'a'.repeat(64)}`;
const SPREAD = '{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule"}';
const SPREAD_OF_OTHERS = SPREAD.replace('{', '{"labelSelector":{"matchLabels":{"app":"other"}},');
const FROM_A_SECRET = '{"name":"HTTPS_PROXY","valueFrom":{"secretKeyRef":{"name":"proxy","key":"url"}}}';
/** Combinations of values that take every branch of the templates. */
const VARIANTS: Record<string, string[]> = {
  defaults: [],
  'one namespace': ['--set', 'scope=namespace', '--set', 'aggregatedRoles.enabled=false,admissionPolicy.enabled=false'],
  'some namespaces': [
    '--set',
    'scope=namespaces',
    '--set',
    'namespaces={shop,blog}',
    '--set',
    'podMonitor.enabled=true',
  ],
  digests: ['--set', `image.digest=${DIGEST}`, '--set', `sidecar.image.digest=${DIGEST}`],
  'all switches': [
    ...['--set', 'serviceMonitor.enabled=true', '--set', 'podMonitor.enabled=true', '--set', 'replicas=3'],
    ...['--set', 'priorityClassName=system-cluster-critical', '--set', 'imagePullSecrets[0].name=pull'],
    ...['--set', 'tolerations[0].operator=Exists', '--set', 'nodeSelector.disk=ssd', '--set', 'podLabels.team=web'],
    ...[
      '--set',
      'podAnnotations.note=x',
      '--set',
      'serviceAccount.annotations.role=y',
      '--set',
      'podMonitor.labels.release=p',
    ],
    ...['--set-json', `topologySpreadConstraints=[${SPREAD},${SPREAD_OF_OTHERS}]`, '--set', 'scaling.periodSeconds=5'],
    ...['--set-json', `extraEnv=[{"name":"NODE_EXTRA_CA_CERTS","value":"/ca.pem"},${FROM_A_SECRET}]`],
  ],
  'one replica': ['--set', 'replicas=1'],
  'other names': ['--set', 'fullnameOverride=lane,nameOverride=renders,serviceAccount.name=acme'],
  'an account that is there': ['--set', 'serviceAccount.create=false,serviceAccount.name=acme'],
  openshift: ['--set', 'podSecurityContext.runAsUser=null,podSecurityContext.runAsGroup=null'],
};

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string; labels: Record<string, string> };
  rules?: unknown;
  roleRef?: { kind: string };
  subjects?: { name: string }[];
  spec: {
    replicas?: number;
    matchResources?: unknown;
    selector: { matchLabels: Record<string, string> };
    template: {
      spec: { containers: { image: string; env: { name: string; value?: string }[] }[] } & Record<string, unknown>;
    };
  };
}

// The API server of the api project (operator/test/support/global-setup.ts).
process.env.KUBECONFIG = process.env.CORELANE_TEST_KUBECONFIG;

const folder = mkdtempSync(join(tmpdir(), 'corelane-chart-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function template(...values: string[]): Promise<string> {
  const args = ['template', 'corelane', CHART, '--namespace', NAMESPACE, '--kube-version', '1.36.0', ...values];
  return run('helm', args);
}

async function manifests(...values: string[]): Promise<Manifest[]> {
  const documents = parseAllDocuments(await template(...values)).map((document) => document.toJS() as Manifest | null);
  return documents.filter((document) => document !== null);
}

function deploymentOf(all: Manifest[]): Manifest {
  return all.find(({ kind }) => kind === 'Deployment') as Manifest;
}

test('helm lint finds nothing', async () => {
  await run('helm', ['lint', CHART, '--strict', '--quiet']);
});

describe('the values schema refuses', () => {
  test.each([
    ['scope=everywhere', '/scope'],
    ['scope=namespaces', 'takes a list'],
    ['namespaces={shop}', 'is for scope: namespaces'],
    ['scope=namespaces,namespaces={Shop}', '/namespaces/0'],
    ['replicas=0', '/replicas'],
    ['image.digest=latest', '/image/digest'],
    ['image.repository=', '/image/repository'],
    ['logLevel=loud', '/logLevel'],
    ['replicaCount=2', 'replicaCount'],
    ['podMonitor.interval=often', '/podMonitor/interval'],
    ['admissionPolicy.enabled=maybe', '/admissionPolicy/enabled'],
    ['networkPolicy.monitoring[0].cidr=10.0.0.0/8', '/networkPolicy/monitoring/0'],
    ['fullnameOverride=Lane', '/fullnameOverride'],
    ['nameOverride=9lives', '/nameOverride'],
    ['extraEnv[0].value=1', '/extraEnv/0'],
    ['extraEnv[0].name=CORELANE_NAMESPACES,extraEnv[0].value=a', 'extraEnv: the chart sets CORELANE_NAMESPACES itself'],
    ['scaling.periodSeconds=46', '/scaling/periodSeconds'],
    ['scaling.period=5s', '/scaling'],
    ['topologySpreadConstraints[0].maxSkew=1', '/topologySpreadConstraints/0'],
    ['serviceAccount.create=false', 'set serviceAccount.name'],
    ['serviceAccount.name=A', '/serviceAccount/name'],
    ['podMonitor.from[0].ipBlock.cidr=10.0.0.1', '/podMonitor/from/0/ipBlock/cidr'],
  ])('%s, and says where', async (value, place) => {
    await expect(template('--set', value)).rejects.toThrow(place);
  });
});

describe('the templates', () => {
  let location = '';
  beforeAll(async () => {
    location = writeSchemas(
      await run('kubectl', ['get', '--raw', '/openapi/v2'], { timeoutMs: 60_000 }),
      join(folder, 'schemas'),
    );
  });

  test.each(Object.keys(VARIANTS))('are valid with %s (kubeconform)', async (name) => {
    const text = await template(...(VARIANTS[name] as string[]));
    const args = ['-strict', '-summary', '-skip', 'ServiceMonitor,PodMonitor', '-schema-location', location];
    const summary = await run('kubeconform', args, { input: text });
    expect(summary).toMatch(/Invalid: 0, Errors: 0/);
    expect(summary).not.toMatch(/Valid: 0,/);
  });

  test('kubeconform would see a typo', async () => {
    const text = (await template()).replace('imagePullPolicy', 'imagePulPolicy');
    await expect(run('kubeconform', ['-strict', '-schema-location', location], { input: text })).rejects.toThrow(
      /imagePulPolicy/,
    );
  });

  test('are accepted by the API server, and pass Pod Security "restricted"', async () => {
    const namespace = 'chart-restricted';
    const labels = {
      'pod-security.kubernetes.io/enforce': 'restricted',
      'pod-security.kubernetes.io/warn': 'restricted',
    };
    await run('kubectl', ['apply', '-f', '-'], {
      input: JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } }),
    });
    // Warnings about a Deployment's pods go to standard error; as errors they fail the command.
    const text = (await template()).replaceAll(`namespace: ${NAMESPACE}`, `namespace: ${namespace}`);
    await run('kubectl', ['apply', '--dry-run=server', '--warnings-as-errors', '-f', '-'], { input: text });
    await run('kubectl', ['delete', 'namespace', namespace, '--wait=false']);
  });

  test('grant exactly the rights of operator/src/kube/rbac.ts', async () => {
    const cluster = await manifests();
    expect(cluster.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === 'corelane')?.rules).toEqual(
      rules.namespaced,
    );
    const some = await manifests(...(VARIANTS['some namespaces'] as string[]));
    expect(some.map(({ kind }) => kind)).not.toContain('ClusterRoleBinding');
    const bound = some.filter(({ kind, metadata }) => kind === 'RoleBinding' && metadata.name === 'corelane');
    expect(bound.map(({ metadata, roleRef }) => [metadata.namespace, roleRef?.kind])).toEqual([
      ['shop', 'ClusterRole'],
      ['blog', 'ClusterRole'],
    ]);
    expect(some.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === 'corelane')?.rules).toEqual(
      rules.namespaced,
    );
    const namespaced = await manifests(...(VARIANTS['one namespace'] as string[]));
    expect(namespaced.map(({ kind }) => kind)).not.toContain('ClusterRole');
    expect(namespaced.find(({ kind, metadata }) => kind === 'Role' && metadata.name === 'corelane')?.rules).toEqual(
      rules.namespaced,
    );
  });

  test('name images by tag, by digest, and by the appVersion otherwise', async () => {
    const images = async (...values: string[]) => {
      const [container] = deploymentOf(await manifests(...values)).spec.template.spec.containers;
      return [container?.image, container?.env.find(({ name }) => name === 'CORELANE_SIDECAR_IMAGE')?.value];
    };
    expect(await images()).toEqual(['ghcr.io/corelane/operator:0.1.0', 'ghcr.io/corelane/sidecar:0.1.0']);
    expect(await images('--set-string', 'image.tag=1.2')).toEqual([
      'ghcr.io/corelane/operator:1.2',
      'ghcr.io/corelane/sidecar:0.1.0',
    ]);
    expect(await images(...(VARIANTS.digests as string[]))).toEqual([
      `ghcr.io/corelane/operator@${DIGEST}`,
      `ghcr.io/corelane/sidecar@${DIGEST}`,
    ]);
  });

  test('let Prometheus scrape HAProxy, the workers and the cache of each pod, as targets that differ in a label', async () => {
    const all = await manifests(...(VARIANTS['all switches'] as string[]));
    const relabelings = [{ sourceLabels: ['__metrics_path__'], targetLabel: 'metrics_path' }];
    expect(all.find(({ kind }) => kind === 'PodMonitor')?.spec).toMatchObject({
      podMetricsEndpoints: ['/metrics', '/workers/metrics', '/cache/metrics'].map((path) => ({
        port: 'stats',
        path,
        relabelings,
      })),
    });
  });

  test('tell the operator who may read the metrics of all pods: whom the values name, and the one who is to scrape', async () => {
    const monitoring = async (...values: string[]) => {
      const [container] = deploymentOf(await manifests(...values)).spec.template.spec.containers;
      const environment = { ...ENVIRONMENT, CORELANE_MONITORING: container?.env.find(isMonitoring)?.value };
      return readSettings(environment).CORELANE_MONITORING;
    };
    const isMonitoring = ({ name }: { name: string }) => name === 'CORELANE_MONITORING';
    const prometheus = {
      namespaceSelector: {},
      podSelector: {
        matchExpressions: [
          { key: 'app.kubernetes.io/name', operator: 'In', values: ['prometheus', 'prometheus-agent'] },
        ],
      },
    };
    const named = ['--set-json', 'networkPolicy.monitoring=[{"ipBlock":{"cidr":"10.0.0.0/8"}}]'];
    expect(await monitoring()).toEqual([]);
    expect(await monitoring('--set', 'podMonitor.enabled=true')).toEqual([prometheus]);
    expect(await monitoring(...named, '--set', 'podMonitor.enabled=true')).toEqual([
      { ipBlock: { cidr: '10.0.0.0/8' } },
      prometheus,
    ]);
  });

  test('have the admission policies, for the one namespace where that is the scope, or not', async () => {
    const of = async (...values: string[]) =>
      (await manifests(...values)).filter(({ kind }) => kind.startsWith('ValidatingAdmissionPolicy'));
    const bindings = (all: Manifest[]) => all.filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding');
    const everywhere = await of();
    expect(everywhere).toHaveLength(6);
    expect(bindings(everywhere).map(({ spec }) => spec.matchResources)).toEqual(Array(3).fill(undefined));
    const selectorOf = (...values: string[]) => ({
      namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }] },
    });
    const [tenants] = bindings(await of('--set', 'scope=namespace'));
    expect(tenants?.spec.matchResources).toEqual(selectorOf(NAMESPACE));
    const [some] = bindings(await of(...(VARIANTS['some namespaces'] as string[])));
    expect(some?.spec.matchResources).toEqual(selectorOf('shop', 'blog'));
    expect(await of('--set', 'admissionPolicy.enabled=false')).toEqual([]);
  });

  test('take other names, of the objects and of the account, in all places', async () => {
    const all = await manifests(...(VARIANTS['other names'] as string[]));
    const names = all.map(({ kind, metadata }) =>
      kind === 'ServiceAccount' ? `account ${metadata.name}` : metadata.name,
    );
    expect(names.filter((name) => !/^lane(-|$)/.test(name))).toEqual(['account acme']);
    expect(all.map(({ metadata }) => metadata.labels['app.kubernetes.io/name'])).toEqual(all.map(() => 'renders'));
    expect(deploymentOf(all).spec.template.spec.serviceAccountName).toBe('acme');
    const subjects = all.flatMap(({ subjects = [] }) => subjects.map(({ name }) => name));
    expect(subjects).toEqual(['acme', 'acme']);
    // Else the operator's account could write what is not a RenderService's.
    expect(JSON.stringify(all)).toContain(`== 'system:serviceaccount:${NAMESPACE}:acme'`);
    const environment = deploymentOf(all).spec.template.spec.containers[0]?.env;
    expect(environment).toContainEqual({ name: 'CORELANE_LEASE_NAME', value: 'lane' });
  });

  test('make no account where one is there', async () => {
    const all = await manifests(...(VARIANTS['an account that is there'] as string[]));
    expect(all.map(({ kind }) => kind)).not.toContain('ServiceAccount');
    expect(deploymentOf(all).spec.template.spec.serviceAccountName).toBe('acme');
  });

  test('add variables to those that they set, and the scaling period is one that the operator takes', async () => {
    const [container] = deploymentOf(await manifests(...(VARIANTS['all switches'] as string[]))).spec.template.spec
      .containers;
    expect(container?.env).toContainEqual({ name: 'NODE_EXTRA_CA_CERTS', value: '/ca.pem' });
    expect(container?.env).toContainEqual(JSON.parse(FROM_A_SECRET));
    const period = container?.env.find(({ name }) => name === 'CORELANE_SCALING_PERIOD_SECONDS')?.value;
    expect(
      readSettings({ ...ENVIRONMENT, CORELANE_SCALING_PERIOD_SECONDS: period }).CORELANE_SCALING_PERIOD_SECONDS,
    ).toBe(5);
  });

  test('spread the operator over zones: its own pods, unless the constraint selects others', async () => {
    const { spec } = deploymentOf(await manifests(...(VARIANTS['all switches'] as string[])));
    const { matchLabels } = spec.selector;
    expect(spec.template.spec.topologySpreadConstraints).toEqual([
      { ...JSON.parse(SPREAD), labelSelector: { matchLabels } },
      JSON.parse(SPREAD_OF_OTHERS),
    ]);
  });

  test('leave user and group to OpenShift, and nothing else', async () => {
    const { securityContext } = deploymentOf(await manifests(...(VARIANTS.openshift as string[]))).spec.template.spec;
    expect(securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  });

  test('pass on replicas, priority class, tolerations and the rest', async () => {
    const { spec } = deploymentOf(await manifests(...(VARIANTS['all switches'] as string[])));
    expect(spec.replicas).toBe(3);
    expect(spec.template.spec).toMatchObject({
      priorityClassName: 'system-cluster-critical',
      tolerations: [{ operator: 'Exists' }],
      nodeSelector: { disk: 'ssd' },
      imagePullSecrets: [{ name: 'pull' }],
    });
  });
});

test('README.md has each value in its table, or leaves it to values.yaml for a reason', () => {
  const { properties } = JSON.parse(readFileSync(join(ROOT, CHART, 'values.schema.json'), 'utf8'));
  const values = parse(readFileSync(join(ROOT, CHART, 'values.yaml'), 'utf8'));
  const page = readFileSync(join(ROOT, CHART, 'README.md'), 'utf8');
  /** Their names say it all. */
  const plain = ['replicas', 'logLevel', 'concurrency', 'securityContext', 'podDisruptionBudget'];
  expect(Object.keys(properties).filter((name) => name !== 'global')).toEqual(
    expect.arrayContaining(Object.keys(values)),
  );
  expect(Object.keys(values).filter((name) => !new RegExp(`\`${name}\\b`).test(page))).toEqual(plain);
});

test('the chart has the very CRD of crds/', () => {
  const name = 'corelane.dev_renderservices.yaml';
  const [own, chart] = ['crds', `${CHART}/crds`].map((path) => readFileSync(join(ROOT, path, name), 'utf8'));
  expect(chart).toBe(own);
});
