/**
 * `corelane convert` and `check` against a real API server: it takes the Deployments that are converted, and what
 * becomes of them.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, parseAllDocuments, stringify } from 'yaml';
import type { Json } from '../support/api-client.ts';
import { repository } from '../support/api-server.ts';
import { bareEnvironment } from '../support/bare-environment.ts';
import { eventually } from '../support/eventually.ts';
import { podTemplate, renderService, sharedServer, World } from '../support/world.ts';

const run = promisify(execFile);
const GOLDEN = join(repository, 'operator/test/unit/convert/golden');
const names = (ending: string) =>
  readdirSync(GOLDEN)
    .filter((file) => file.endsWith(ending))
    .map((file) => file.slice(0, -ending.length))
    .sort();
/** Whether this server has its definition, which is not so of other projects' kinds. */
function isKnown({ apiVersion, kind }: Json): boolean {
  const [group] = apiVersion.split('/');
  return (!group.includes('.') || group.endsWith('.k8s.io')) && kind !== 'VerticalPodAutoscaler';
}

let world: World;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'convert');
});

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** `corelane`, as a user of the cluster calls it. */
async function corelane(kubeconfig: string, ...args: string[]): Promise<Outcome> {
  try {
    const { stdout, stderr } = await run(process.execPath, [join(repository, 'operator/bin/corelane.mjs'), ...args], {
      env: bareEnvironment('/nonexistent', { PATH: process.env.PATH, KUBECONFIG: kubeconfig }),
    });
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as Outcome;
  }
}

/** The objects of a golden file, for the namespace of this test. */
function objects(file: string): Json[] {
  const documents = parseAllDocuments(readFileSync(join(GOLDEN, file), 'utf8'), { schema: 'yaml-1.1', merge: true });
  return (documents as { toJS(): Json }[])
    .map((document) => document.toJS())
    .filter(Boolean)
    .flatMap((value) => (value.kind === 'List' ? value.items : [value]))
    .map((value) => ({ ...value, metadata: { ...value.metadata, namespace: world.namespace } }));
}

/** As kubectl sends them: every unknown field is an error. Resolves with the number of those that were taken. */
async function dryRun(...items: Json[]): Promise<number> {
  const list = { apiVersion: 'v1', kind: 'List', items };
  const told = await world.kubectl.create(list, '--dry-run=server', '--validate=strict');
  return told.match(/ created \(server dry run\)$/gm)?.length ?? 0;
}

test.each(names('.out.yaml'))('what %s is converted to is accepted', async (name) => {
  const converted = objects(`${name}.out.yaml`);
  expect(await dryRun(...converted)).toBe(converted.length);
});

/** One case has what nobody would take, and says so; of one no definition is on this server. */
const inputs = names('.in.yaml').filter(
  (name) =>
    name !== 'knative-service' && !readFileSync(join(GOLDEN, `${name}.in.yaml`), 'utf8').includes('would refuse'),
);

test.each(inputs)('%s is itself what the API server takes', async (name) => {
  const created = objects(`${name}.in.yaml`)
    .filter(isKnown)
    .map(({ status: _status, ...rest }) => {
      // What the cluster writes by itself cannot be created.
      const { resourceVersion: _version, uid: _uid, ...metadata } = rest.metadata;
      return { ...rest, metadata };
    });
  expect(await dryRun(...created)).toBe(created.length);
});

test('the operator applies what is converted: no Deployment or Service that comes of it is refused', async () => {
  const outputs = names('.out.yaml');
  for (const name of outputs) {
    const [object] = objects(`${name}.out.yaml`);
    await world.admin.post(world.path('RenderService'), { ...object, metadata: { ...object?.metadata, name } });
  }
  const operator = await world.startOperator();
  try {
    for (const name of outputs) await world.untilApplied(name);
  } finally {
    await operator.stop();
  }
});

test('what is not written would have been refused', async () => {
  const [deployment] = objects('reserved-port.in.yaml');
  const template = deployment?.spec.template;
  template.spec.containers[0].name = 'worker';
  const resource = renderService(world.namespace, 'shop', { template });
  await expect(dryRun(resource)).rejects.toThrow(/ports 8998 to 9201 of a pod are Corelane's/);
});

describe('from a cluster', () => {
  const deployment = (fields: object = {}) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'shop', annotations: { 'example.com/owner': 'web' } },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'shop' } },
      template: {
        metadata: { labels: { app: 'shop', tier: 'front' } },
        spec: {
          containers: [
            {
              name: 'shop',
              image: 'corelane.test/shop:1',
              ports: [{ containerPort: 3000 }],
              readinessProbe: { httpGet: { path: '/', port: 3000 } },
              resources: { requests: { cpu: '1', memory: '512Mi' }, limits: { memory: '512Mi' } },
            },
          ],
          ...fields,
        },
      },
    },
  });

  beforeAll(async () => {
    const { admin } = world;
    await admin.post(world.path('Deployment'), deployment());
    await admin.post(world.path('Service'), {
      metadata: { name: 'shop' },
      spec: { selector: { app: 'shop' }, ports: [{ port: 8080, targetPort: 3000 }] },
    });
  });

  test('a Deployment is converted as small as it was written, and moved by the plan', async () => {
    const args = ['convert', 'deployment/shop', '-n', world.namespace, '--name', 'shop-render'];
    const { code, stdout, stderr } = await corelane(world.server.adminKubeconfig, ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('Traffic plan') });
    expect(stdout).toBe(`apiVersion: corelane.dev/v1alpha1
kind: RenderService
metadata:
  name: shop-render
  namespace: ${world.namespace}
  annotations:
    example.com/owner: web
spec:
  workersPerPod: 1
  replicas: 2
  service:
    port: 8080
  template:
    metadata:
      labels:
        tier: front
    spec:
      containers:
        - name: shop
          image: corelane.test/shop:1
          resources:
            limits:
              memory: 512Mi
            requests:
              cpu: "1"
              memory: 512Mi
`);
    const before = (await world.get('Service', 'shop')).spec.ports;
    const [, patch = ''] = /kubectl patch .* -p '(.*)'/.exec(stderr) ?? [];
    await world.kubectl.run('patch', 'service', 'shop', '--type', 'json', '-p', patch);
    const { spec } = await world.get('Service', 'shop');
    expect(spec).toMatchObject({
      selector: { 'corelane.dev/renderservice': 'shop-render', 'corelane.dev/serving': 'true' },
      ports: [{ port: 8080, targetPort: 9000 }],
    });
    const [, back = ''] = /# +kubectl patch .* -p '(.*)'/.exec(stderr) ?? [];
    await world.kubectl.run('patch', 'service', 'shop', '--type', 'json', '-p', back);
    const { selector, ports } = (await world.get('Service', 'shop')).spec;
    expect({ selector, ports }).toEqual({ selector: { app: 'shop' }, ports: before });
  });

  test('a NetworkPolicy for the old pods is read, and nothing is written without one for the new pods', async () => {
    const { admin } = world;
    const policies = `/apis/networking.k8s.io/v1/namespaces/${world.namespace}/networkpolicies`;
    await admin.post(policies, {
      metadata: { name: 'closed' },
      spec: { podSelector: { matchLabels: { app: 'shop' } }, policyTypes: ['Ingress'] },
    });
    try {
      const args = ['convert', 'deployment/shop', '-n', world.namespace, '--name', 'shop-render'];
      const { code, stdout, stderr } = await corelane(world.server.adminKubeconfig, ...args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^C010 error {3}NetworkPolicy\/closed spec\.podSelector: it selects the old pods/m);
    } finally {
      await admin.delete(`${policies}/closed`);
    }
  });

  test('a Deployment or namespace without anything is told by name', async () => {
    const { adminKubeconfig } = world.server;
    const gone = await corelane(adminKubeconfig, 'convert', 'deployment/gone', '-n', world.namespace);
    const empty = await corelane(adminKubeconfig, 'check', '-n', 'convert-empty');
    expect([gone, empty]).toMatchObject([
      { code: 1, stdout: '', stderr: `corelane: there is no Deployment gone in namespace ${world.namespace}\n` },
      { code: 1, stdout: '', stderr: expect.stringContaining('there is no RenderService in namespace convert-empty') },
    ]);
  });

  test('a RenderService is checked against nodes, LimitRanges and autoscalers', async () => {
    const { admin } = world;
    await world.createRenderService('wide', { workersPerPod: 4, scaling: { maxReplicas: 9 } });
    await admin.post('/api/v1/nodes', { metadata: { name: 'check-4' } });
    await admin.patch('/api/v1/nodes/check-4/status', { status: { allocatable: { cpu: '3920m' } } });
    await admin.post(`/api/v1/namespaces/${world.namespace}/limitranges`, {
      metadata: { name: 'limits' },
      spec: { limits: [{ type: 'Container', default: { cpu: '500m' } }] },
    });
    await admin.post(`/apis/autoscaling/v2/namespaces/${world.namespace}/horizontalpodautoscalers`, {
      metadata: { name: 'wide' },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'wide' },
        maxReplicas: 4,
        metrics: [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
        ],
      },
    });
    try {
      const args = ['check', 'renderservice/wide', '-n', world.namespace, '-o', 'json'];
      const { code, stdout } = await corelane(world.server.adminKubeconfig, ...args);
      const [{ findings }] = JSON.parse(stdout);
      const found = findings.map(({ code: id, level, object }: Json) => `${id} ${level} ${object}`);
      expect(code).toBe(2);
      expect(found).toEqual(
        expect.arrayContaining([
          'C003 error RenderService/wide',
          'C009 error HorizontalPodAutoscaler/wide',
          'C014 warning LimitRange/limits',
        ]),
      );
      const fit = findings.find(({ code: id }: Json) => id === 'C003');
      expect(`${fit.what}. ${fit.wayOut}`).toContain(
        '4.1 CPU (4 x 1 and 0.1 for proxies and others), and node check-4 has 3.92. Set workersPerPod: 3, which fits (3.1 CPU)',
      );
    } finally {
      await admin.delete('/api/v1/nodes/check-4');
    }
  });

  test('what may not be read is skipped, and told', async () => {
    await world.createRenderService('narrow', { workersPerPod: 1 });
    // The operator's own rights: RenderServices and pods, but no nodes and no LimitRanges.
    const args = ['check', 'rsvc/narrow', '-n', world.namespace, '-o', 'json'];
    const { code, stdout, stderr } = await corelane(world.server.operatorKubeconfig, ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [{ skipped }] = JSON.parse(stdout);
    expect(skipped.map(({ code: id }: Json) => id)).toEqual(expect.arrayContaining(['C003', 'C014']));
  });
});

describe('check --server', () => {
  interface Asked {
    spec?: object;
    /** Of the RenderService. */
    labels?: Record<string, string>;
    /** Asks in the place of the administrator, in no group. */
    user?: string;
  }

  /** Findings of C024 and what is skipped, of a RenderService that is not applied. */
  async function asked({ namespace, server }: World, { spec, labels, user }: Asked = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'corelane-'));
    try {
      const [file, kubeconfig] = [join(folder, 'shop.json'), join(folder, 'kubeconfig')];
      const { metadata, ...resource } = renderService(namespace, 'shop', spec);
      writeFileSync(file, JSON.stringify({ ...resource, metadata: { ...metadata, ...(labels && { labels }) } }));
      const access = parse(readFileSync(server.adminKubeconfig, 'utf8'));
      if (user) access.users[0].user.as = user;
      writeFileSync(kubeconfig, stringify(access), { mode: 0o600 });
      const { code, stdout, stderr } = await corelane(kubeconfig, 'check', '-f', file, '--server', '-o', 'json');
      expect(stderr).toBe('');
      const [{ findings, skipped }] = JSON.parse(stdout);
      return {
        code,
        refused: findings
          .filter(({ code: id }: Json) => id === 'C024')
          .map(({ what, wayOut }: Json) => `${what}. ${wayOut}`),
        skipped: skipped.find(({ code: id }: Json) => id === 'C024')?.why,
      };
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  test('of what the cluster takes says nothing, and writes nothing', async () => {
    const other = await World.create(sharedServer(), 'check-server');
    const before = await other.resourceVersions();
    expect(await asked(other)).toEqual({
      code: 0,
      refused: [],
      skipped: undefined,
    });
    expect(await other.resourceVersions()).toEqual(before);
    expect(await other.list('Pod')).toEqual([]);
    // Its own objects are no clash.
    await other.createRenderService('shop', { replicas: 0 });
    const operator = await other.startOperator();
    try {
      await other.untilApplied('shop');
    } finally {
      await operator.stop();
    }
    const spec = { replicas: 0, workersPerPod: 3 };
    expect(await asked(other, { spec })).toMatchObject({ code: 0, refused: [] });
  });

  test('says what a LimitRange, a name that is taken and a field that there is not would lead to', async () => {
    const other = await World.create(sharedServer(), 'check-server-refuses');
    await other.admin.post(`/api/v1/namespaces/${other.namespace}/limitranges`, {
      metadata: { name: 'small' },
      spec: { limits: [{ type: 'Container', min: { cpu: '100m' } }] },
    });
    await other.admin.post(other.path('Service'), { metadata: { name: 'shop' }, spec: { ports: [{ port: 80 }] } });
    const { code, refused } = await asked(other);
    expect({ code, refused }).toEqual({
      code: 2,
      refused: [
        expect.stringMatching(/^Service "shop" exists and does not belong to this RenderService/),
        expect.stringMatching(
          /^a pod would be refused: pods "shop-\S+" is forbidden: minimum cpu usage per Container is 100m, but request is 50m\. A LimitRange of the namespace says so: set spec\.sidecar\.haproxy\.cpu and spec\.sidecar\.nginx\.cpu to at least 100m\.$/,
        ),
      ],
    });
    const template = podTemplate({ imagePullpolicy: 'Always' });
    const misspelt = await asked(other, { spec: { template } });
    expect(misspelt.refused).toEqual([
      expect.stringMatching(/^RenderService "shop" would be refused: .*imagePullpolicy/),
    ]);
  });

  test('asks about objects with the labels of the RenderService, which a policy may want', async () => {
    const other = await World.create(sharedServer(), 'check-server-labels');
    const path = '/apis/admissionregistration.k8s.io/v1/validatingadmission';
    const name = other.namespace;
    await other.admin.post(`${path}policies`, {
      metadata: { name },
      spec: {
        matchConstraints: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
          resourceRules: [
            { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['deployments'] },
          ],
        },
        validations: [{ expression: "'team' in object.metadata.?labels.orValue({})", message: 'the label "team"' }],
      },
    });
    await other.admin.post(`${path}policybindings`, {
      metadata: { name },
      spec: { policyName: name, validationActions: ['Deny'] },
    });
    await eventually('the policy is in force', async () => {
      const { refused } = await asked(other);
      expect(refused).toEqual([expect.stringMatching(/^Deployment "shop-\S+" would be refused: .*the label "team"/)]);
    });
    expect((await asked(other, { labels: { team: 'web' } })).refused).toEqual([]);
  });

  test('skips what the user has no right to', async () => {
    const other = await World.create(sharedServer(), 'check-server-rights');
    // Not the operator: its account may only write objects that have an owner.
    const user = 'pipeline';
    const verbs = ['get', 'create', 'patch'];
    const rules = [
      { apiGroups: [''], resources: ['configmaps', 'services'], verbs },
      { apiGroups: ['apps'], resources: ['deployments'], verbs },
      { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs },
      { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs },
    ];
    await other.admin.post(other.path('Role'), { metadata: { name: user }, rules });
    await other.admin.post(other.path('RoleBinding'), {
      metadata: { name: user },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: user },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    });
    const { code, refused, skipped } = await asked(other, { user });
    expect({ code, refused }).toEqual({ code: 0, refused: [] });
    expect(skipped).toMatch(/ask about RenderService "shop", a pod$/);
  });
});
