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
    ...['--set', 'podMonitor.haproxy.enabled=true', '--set', 'podMonitor.workers.detail=true'],
    ...['--set', 'prometheusRule.enabled=true', '--set', 'prometheusRule.labels.release=p'],
    ...['--set', 'grafanaDashboards.enabled=true', '--set', 'grafanaDashboards.annotations.grafana_folder=Corelane'],
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

interface Rule {
  alert?: string;
  for?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
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
    ['crds.keep=always', '/crds/keep'],
    ['image.digest=latest', '/image/digest'],
    ['image.repository=', '/image/repository'],
    ['logLevel=loud', '/logLevel'],
    ['replicaCount=2', 'replicaCount'],
    ['podMonitor.interval=often', '/podMonitor/interval'],
    ['podMonitor.sampleLimit=0', '/podMonitor/sampleLimit'],
    ['podMonitor.workers.detail=some', '/podMonitor/workers/detail'],
    ['podMonitor.haproxy.metrics={haproxy_*}', '/podMonitor/haproxy/metrics/0'],
    ['podMonitor.haproxy.detail=true', '/podMonitor/haproxy'],
    ['prometheusRule.disabled.CorelaneGone=true', 'CorelaneGone'],
    ['prometheusRule.customRules.CorelaneSaturated.for=long', '/prometheusRule/customRules/CorelaneSaturated/for'],
    ['prometheusRule.customRules.CorelaneSaturated.expr=1', '/prometheusRule/customRules/CorelaneSaturated'],
    ['prometheusRule.runbookUrl=example.com', '/prometheusRule/runbookUrl'],
    ['admissionPolicy.enabled=maybe', '/admissionPolicy/enabled'],
    ['grafanaDashboards.namespace=Grafana', '/grafanaDashboards/namespace'],
    ['grafanaDashboards.folder=Corelane', '/grafanaDashboards'],
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
    const args = [
      '-strict',
      '-summary',
      '-skip',
      'ServiceMonitor,PodMonitor,PrometheusRule',
      '-schema-location',
      location,
    ];
    const summary = await run('kubeconform', args, { input: text });
    expect(summary).toMatch(/Invalid: 0, Errors: 0/);
    expect(summary).not.toMatch(/Valid: 0,/);
  });

  test('kubeconform would see a typo', async () => {
    const text = (await template('--set', 'crds.enabled=false')).replace('imagePullPolicy', 'imagePulPolicy');
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
    // The CRD of this server is not one that kubectl has applied, which would be a warning.
    const text = (await template('--set', 'crds.enabled=false')).replaceAll(
      `namespace: ${NAMESPACE}`,
      `namespace: ${namespace}`,
    );
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

  /** Endpoints of the PodMonitor. */
  async function endpointsOf(...values: string[]): Promise<Record<string, unknown>[]> {
    const all = await manifests('--set', 'podMonitor.enabled=true', ...values);
    const monitor = all.find(({ kind }) => kind === 'PodMonitor') as unknown as {
      spec: { podMetricsEndpoints: Record<string, unknown>[] };
    };
    return monitor.spec.podMetricsEndpoints;
  }

  /** Every series says which RenderService it is about, and which revision of it. */
  const WHOSE = [
    { sourceLabels: ['__meta_kubernetes_pod_label_corelane_dev_renderservice'], targetLabel: 'renderservice' },
    { sourceLabels: ['__meta_kubernetes_pod_label_pod_template_hash'], targetLabel: 'revision' },
  ];

  /** Whatever else a page says. Which series are the pods', operator/test/unit/alerts.test.ts knows. */
  const only = (regex: RegExp) => [{ sourceLabels: ['__name__'], regex: expect.stringMatching(regex), action: 'keep' }];

  test('let Prometheus scrape one page of each pod, by default without details', async () => {
    const page = {
      ...{ port: 'stats', path: '/corelane/metrics', interval: '15s' },
      ...{ relabelings: WHOSE, metricRelabelings: only(/^corelane_\(/) },
    };
    expect(await endpointsOf()).toEqual([page]);
    expect(await endpointsOf('--set', 'podMonitor.workers.detail=true,podMonitor.interval=1m')).toEqual([
      { ...page, interval: '1m', params: { detail: ['1'] } },
    ]);
  });

  test("let it scrape parts of HAProxy's exporter, as a target that differs in a label", async () => {
    const metrics = '{haproxy_backend_current_queue,haproxy_process_idle_time_percent}';
    const [page, haproxy] = await endpointsOf(
      ...['--set', 'podMonitor.haproxy.enabled=true', '--set', `podMonitor.haproxy.metrics=${metrics}`],
    );
    expect(page).toMatchObject({ path: '/corelane/metrics' });
    expect(haproxy).toEqual({
      port: 'stats',
      path: '/metrics',
      interval: '15s',
      params: { 'no-maint': [''], metrics: [metrics.slice(1, -1)] },
      relabelings: [...WHOSE, { sourceLabels: ['__metrics_path__'], targetLabel: 'metrics_path' }],
      metricRelabelings: only(/^haproxy_\.\+$/),
    });
    // The default is a choice: all would be thousands of series a pod.
    const [, all] = await endpointsOf('--set', 'podMonitor.haproxy.enabled=true');
    expect(all?.params).toMatchObject({ metrics: [expect.stringMatching(/^haproxy_\w+(,haproxy_\w+){5,15}$/)] });
  });

  test('have a fuse for pods that have more series than they should', async () => {
    const limit = async (...values: string[]) =>
      (await manifests('--set', 'podMonitor.enabled=true', ...values)).find(({ kind }) => kind === 'PodMonitor')?.spec;
    expect(await limit()).toMatchObject({ sampleLimit: 5000 });
    expect(await limit('--set', 'podMonitor.sampleLimit=20000')).toMatchObject({ sampleLimit: 20_000 });
  });

  /** The rules of the PrometheusRule, of all groups; none if there is no such object. */
  async function alertingOf(...values: string[]): Promise<Rule[]> {
    const object = (await manifests(...values)).find(({ kind }) => kind === 'PrometheusRule');
    return groupsOf(object as never).flatMap((group) => group.rules);
  }

  const groupsOf = (object?: { spec: { groups: { name: string; rules: Rule[] }[] } }) => object?.spec.groups ?? [];

  test('bring the rules of files/rules.yaml, as they are, where they are wanted', async () => {
    expect(await alertingOf()).toEqual([]);
    const all = await manifests('--set', 'prometheusRule.enabled=true', '--set', 'prometheusRule.labels.release=p');
    const object = all.find(({ kind }) => kind === 'PrometheusRule');
    expect(object).toMatchObject({ apiVersion: 'monitoring.coreos.com/v1', metadata: { labels: { release: 'p' } } });
    const file = parse(readFileSync(join(ROOT, CHART, 'files/rules.yaml'), 'utf8')) as { groups: unknown };
    expect(groupsOf(object as never)).toEqual(file.groups);
  });

  test('leave out alerts, and change others, as the values say', async () => {
    const before = await alertingOf('--set', 'prometheusRule.enabled=true');
    const after = await alertingOf(
      ...['--set', 'prometheusRule.enabled=true', '--set', 'prometheusRule.additionalRuleLabels.team=web'],
      ...['--set', 'prometheusRule.additionalRuleAnnotations.board=b'],
      ...['--set', 'prometheusRule.disabled.CorelaneSaturated=true,prometheusRule.disabled.CorelaneRendersStuck=false'],
      ...['--set', 'prometheusRule.customRules.CorelaneRendersStuck.for=5m'],
      ...['--set', 'prometheusRule.customRules.CorelaneScalingAtMaximum.severity=page'],
      ...['--set', 'prometheusRule.runbookUrl=https://example.com/runbooks/'],
    );
    const expected = before
      .filter(({ alert }) => alert !== 'CorelaneSaturated')
      .map((rule) => {
        if (!rule.alert) return rule;
        const labels: Record<string, string> = { ...rule.labels, team: 'web' };
        if (rule.alert === 'CorelaneScalingAtMaximum') labels.severity = 'page';
        const runbook_url = `https://example.com/runbooks/${rule.alert}`;
        const changed = { ...rule, labels, annotations: { ...rule.annotations, board: 'b', runbook_url } };
        return rule.alert === 'CorelaneRendersStuck' ? { ...changed, for: '5m' } : changed;
      });
    expect(after).toEqual(expected);
    expect(after.length).toBe(before.length - 1);
  });

  test('bring the dashboards of files/dashboards, as they are, where Grafana looks for them', async () => {
    const dashboards = async (...values: string[]) =>
      (await manifests(...values)).filter(({ metadata }) => metadata.name.includes('-dashboard-'));
    expect(await dashboards()).toEqual([]);
    const on = ['--set', 'grafanaDashboards.enabled=true'];
    const all = (await dashboards(...on)) as unknown as (Manifest & { data: Record<string, string> })[];
    expect(all.map(({ kind, metadata }) => `${kind} ${metadata.namespace} ${metadata.name}`)).toEqual(
      ['fleet', 'operator', 'service'].map((name) => `ConfigMap ${NAMESPACE} corelane-dashboard-${name}`),
    );
    for (const { metadata, data } of all) {
      expect(metadata.labels.grafana_dashboard).toBe('1');
      const [[file, text] = []] = Object.entries(data);
      expect(`${text}\n`).toBe(readFileSync(join(ROOT, CHART, 'files/dashboards', file as string), 'utf8'));
      expect(Buffer.byteLength(text as string)).toBeLessThan(2 ** 19);
    }
    const others = await dashboards(
      ...[...on, '--set', 'grafanaDashboards.namespace=monitoring', '--set', 'grafanaDashboards.labels.team=web'],
      ...['--set', 'grafanaDashboards.annotations.grafana_folder=Corelane'],
    );
    for (const { metadata } of others)
      expect(metadata).toMatchObject({
        namespace: 'monitoring',
        labels: { grafana_dashboard: '1', team: 'web' },
        annotations: { grafana_folder: 'Corelane' },
      });
    expect(others).toHaveLength(3);
  });

  test("leave to the operator's series the namespace that they are about", async () => {
    const all = await manifests('--set', 'serviceMonitor.enabled=true');
    expect(all.find(({ kind }) => kind === 'ServiceMonitor')?.spec).toMatchObject({
      endpoints: [{ port: 'metrics', path: '/metrics', honorLabels: true }],
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
    expect(everywhere).toHaveLength(8);
    expect(bindings(everywhere).map(({ spec }) => spec.matchResources)).toEqual(Array(4).fill(undefined));
    const selectorOf = (...values: string[]) => ({
      namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }] },
    });
    // Those about what tenants write.
    const selected = async (...values: string[]) =>
      bindings(await of(...values))
        .filter(({ metadata }) => /-(tenants|labels)$/.test(metadata.name))
        .map(({ spec }) => spec.matchResources);
    expect(await selected('--set', 'scope=namespace')).toEqual(Array(2).fill(selectorOf(NAMESPACE)));
    expect(await selected(...(VARIANTS['some namespaces'] as string[]))).toEqual(
      Array(2).fill(selectorOf('shop', 'blog')),
    );
    expect(await of('--set', 'admissionPolicy.enabled=false')).toEqual([]);
  });

  test('take other names, of the objects and of the account, in all places', async () => {
    const all = await manifests(...(VARIANTS['other names'] as string[]));
    const names = all.map(({ kind, metadata }) =>
      kind === 'ServiceAccount' ? `account ${metadata.name}` : metadata.name,
    );
    const fixed = ['account acme', 'renderservices.corelane.dev'];
    expect(names.filter((name) => !/^lane(-|$)/.test(name)).sort()).toEqual(fixed);
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

describe('the CRD', () => {
  const own = parse(readFileSync(join(ROOT, 'crds/corelane.dev_renderservices.yaml'), 'utf8')) as Manifest;
  const crdOf = async (...values: string[]) =>
    (await manifests(...values)).find(({ kind }) => kind === 'CustomResourceDefinition') as
      | (Manifest & { metadata: { annotations?: object } })
      | undefined;

  test('is in the templates, so that an upgrade of the release upgrades it, and is the very one of crds/', async () => {
    const crd = await crdOf();
    expect([crd?.metadata.name, crd?.spec]).toEqual([own.metadata.name, own.spec]);
  });

  test('outlives the release unless the values say otherwise, and is left out where another release has it', async () => {
    expect((await crdOf())?.metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' });
    expect((await crdOf('--set', 'crds.keep=false'))?.metadata.annotations).toBeUndefined();
    expect(await crdOf('--set', 'crds.enabled=false')).toBeUndefined();
  });

  test('leaves client-side apply, which keeps a copy in an annotation, room below its 256 KiB', () => {
    expect(JSON.stringify(own).length).toBeLessThan(200_000);
  });
});
