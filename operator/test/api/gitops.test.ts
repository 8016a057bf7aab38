/** What kubectl and Kustomize make of RenderServices that are kept in Git. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { resourceSchema, type Schema } from '../../gen/crd.ts';
import type { Json } from '../support/api-client.ts';
import { repository } from '../support/api-server.ts';
import { BARE_LISTS } from '../support/bare-lists.ts';
import { podTemplate, renderService, sharedServer, World } from '../support/world.ts';

const EXAMPLES = join(repository, 'examples/gitops/kustomize');
let folder: string;

beforeAll(() => {
  // Kustomize goes by real paths.
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'corelane-')));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The objects that `kubectl kustomize` makes of a folder, by kind. */
async function kustomize(path: string): Promise<Record<string, Json>> {
  const text = await sharedServer().kubectl().run('kustomize', path);
  const objects = parseAllDocuments(text).map((document) => document.toJS() as Json);
  return Object.fromEntries(objects.map((object) => [object.kind, object]));
}

/** A folder with these objects, and what its kustomization.yaml has beside them. */
function written(name: string, objects: Json[], kustomization: Json): string {
  const path = join(folder, name);
  mkdirSync(path);
  writeFileSync(join(path, 'objects.yaml'), objects.map((object) => stringify(object)).join('---\n'));
  writeFileSync(join(path, 'kustomization.yaml'), stringify({ resources: ['objects.yaml'], ...kustomization }));
  return path;
}

const component = (name: string) => ({ components: [relative(join(folder, name), join(EXAMPLES, 'corelane'))] });

test('an overlay changes name, image, replicas, labels and one variable, and names follow', async () => {
  const { RenderService, Ingress, ConfigMap } = await kustomize(join(EXAMPLES, 'production'));
  expect(ConfigMap?.metadata.name).toMatch(/^production-storefront-[a-z0-9]{10}$/);
  expect(Ingress?.spec.rules[0].http.paths[0].backend.service.name).toBe('production-storefront');
  expect(RenderService).toEqual({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name: 'production-storefront', labels: { team: 'web' } },
    spec: {
      replicas: 6,
      template: {
        metadata: { labels: { team: 'web' } },
        spec: {
          containers: [
            {
              name: 'worker',
              image: 'ghcr.io/acme/storefront:1.5.0',
              env: [
                { name: 'LOG_LEVEL', value: 'info' },
                { name: 'API', valueFrom: { configMapKeyRef: { name: ConfigMap?.metadata.name, key: 'API' } } },
              ],
              resources: { requests: { cpu: '1', memory: '512Mi' }, limits: { memory: '512Mi' } },
            },
          ],
        },
      },
    },
  });
});

test('every name that leads to another object follows, and items of lists are merged by their keys', async () => {
  const worker = {
    envFrom: [{ configMapRef: { name: 'config' } }, { secretRef: { name: 'secret' } }],
    env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'secret', key: 'a' } } }],
  };
  const pod = {
    imagePullSecrets: [{ name: 'secret' }],
    serviceAccountName: 'account',
    volumes: [
      { name: 'a', configMap: { name: 'config' } },
      { name: 'b', secret: { secretName: 'secret' } },
      { name: 'c', projected: { sources: [{ configMap: { name: 'config' } }, { secret: { name: 'secret' } }] } },
      { name: 'd', persistentVolumeClaim: { claimName: 'claim' } },
    ],
  };
  const shop = {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name: 'shop' },
    spec: {
      fallback: { configMap: { name: 'config' } },
      tracing: { endpoint: 'http://collector:4318', headersFrom: { name: 'secret', key: 'a' } },
      classes: [
        { name: 'api', match: [{ pathPrefix: '/api/' }] },
        { name: 'events', match: [{ path: '/events' }], concurrency: 50 },
      ],
      template: podTemplate(worker, pod),
    },
  };
  const objects = [
    shop,
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'config' }, data: { a: 'b' } },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'secret' }, stringData: { a: 'b' } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'account' } },
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'claim' }, spec: {} },
    {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'shop' },
      spec: { scaleTargetRef: { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', name: 'shop' } },
    },
    {
      apiVersion: 'keda.sh/v1alpha1',
      kind: 'ScaledObject',
      metadata: { name: 'shop' },
      spec: { scaleTargetRef: { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', name: 'shop' } },
    },
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: { name: 'shop' },
      spec: { rules: [{ backendRefs: [{ name: 'shop', port: 80 }] }] },
    },
  ];
  const patch = {
    ...shop,
    spec: {
      classes: [{ name: 'api', concurrency: 5 }],
      template: { spec: { containers: [{ name: 'worker', env: [{ name: 'B', value: 'b' }] }] } },
    },
  };
  const { RenderService, HorizontalPodAutoscaler, ScaledObject, HTTPRoute } = await kustomize(
    written('names', objects, { ...component('names'), nameSuffix: '-2', patches: [{ patch: stringify(patch) }] }),
  );
  const { spec } = RenderService as Json;
  const text = JSON.stringify(spec);
  expect(text.match(/:"(config|secret|account|claim)"/g)).toBeNull();
  expect(text.match(/:"(config|secret|account|claim)-2"/g)).toHaveLength(12);
  const targets = [HorizontalPodAutoscaler, ScaledObject].map((one) => one?.spec.scaleTargetRef.name);
  expect([...targets, HTTPRoute?.spec.rules[0].backendRefs[0].name]).toEqual(['shop-2', 'shop-2', 'shop-2']);
  expect(spec.classes).toEqual([{ ...shop.spec.classes[0], concurrency: 5 }, shop.spec.classes[1]]);
  const [container] = spec.template.spec.containers;
  expect([container.image, container.env.map(({ name }: Json) => name).sort()]).toEqual([
    'corelane.test/app:1',
    ['A', 'B'],
  ]);
});

test("Kubernetes' own kinds are merged as they are without the component", async () => {
  const template = (container: object, pod: object = {}) => ({
    metadata: { labels: { app: 'mail' } },
    spec: { containers: [{ name: 'mail', ...container }], ...pod },
  });
  const kind = (apiVersion: string, name: string, spec: object) => ({
    apiVersion,
    kind: name,
    metadata: { name: 'mail' },
    spec,
  });
  const ports = [{ name: 'smtp', port: 25, targetPort: 2525 }];
  const objects = [
    kind('apps/v1', 'Deployment', {
      template: template(
        { image: 'mail:1', env: [{ name: 'A', value: 'a' }], ports: [{ containerPort: 25 }] },
        { volumes: [{ name: 'a', emptyDir: {} }], initContainers: [{ name: 'first', image: 'first:1' }] },
      ),
    }),
    kind('v1', 'Service', { ports: [...ports, { name: 'http', port: 80 }] }),
    kind('batch/v1', 'CronJob', { jobTemplate: { spec: { template: template({ image: 'mail:1' }) } } }),
    kind('networking.k8s.io/v1', 'Ingress', { rules: [{ host: 'a' }, { host: 'b' }] }),
  ];
  const changes = [
    kind('apps/v1', 'Deployment', {
      template: template(
        { env: [{ name: 'B', value: 'b' }], ports: [{ containerPort: 25, name: 'smtp' }] },
        { volumes: [{ name: 'b', emptyDir: {} }] },
      ),
    }),
    kind('v1', 'Service', { ports: [{ port: 25, targetPort: 2526 }] }),
    kind('batch/v1', 'CronJob', { jobTemplate: { spec: { template: template({ args: ['-v'] }) } } }),
    kind('networking.k8s.io/v1', 'Ingress', { rules: [{ host: 'c' }] }),
  ];
  const patches = changes.map((change) => ({ patch: stringify(change) }));
  const plain = await kustomize(written('plain', objects, { patches }));
  expect(plain.Deployment?.spec.template.spec.containers[0]).toMatchObject({ image: 'mail:1' });
  expect(await kustomize(written('beside', objects, { ...component('beside'), patches }))).toEqual(plain);
});

test('lists that are merged by a key are lists of the RenderService, and their items have it', () => {
  const itemsAt = (...path: string[]) => {
    const list = path.reduce<Schema | undefined>((node, name) => node?.properties?.[name], resourceSchema());
    return (list?.items as Schema | undefined)?.required;
  };
  expect([
    itemsAt('spec', 'assets'),
    itemsAt('spec', 'cache', 'ttl'),
    itemsAt('spec', 'classes'),
    itemsAt('spec', 'priority', 'classes'),
  ]).toEqual([
    expect.arrayContaining(['path']),
    expect.arrayContaining(['pathPrefix']),
    expect.arrayContaining(['name']),
    expect.arrayContaining(['name']),
  ]);
});

test('what is applied again is unchanged: the API server adds nothing to items of lists', async () => {
  const world = await World.create(sharedServer(), 'gitops');
  const spec = { replicas: 0, ...BARE_LISTS };
  const object = renderService(world.namespace, 'lists', spec);
  expect(await world.kubectl.apply(object)).toMatch(/ created\n$/);
  expect(await world.kubectl.apply(object)).toMatch(/ unchanged\n$/);
  await world.admin.delete(world.path('RenderService', 'lists'));
});

test('kubectl apply without --server-side has room for the definition in its annotation', async () => {
  const file = join(repository, 'crds/corelane.dev_renderservices.yaml');
  const output = await sharedServer().kubectl().run('apply', '--dry-run=server', '-f', file);
  expect(output).toMatch(/^customresourcedefinition\S* (configured|unchanged) \(server dry run\)/);
});
