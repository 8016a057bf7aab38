/**
 * Argo CD's own comparison of RenderServices in Git with what a real API server has made of them. A sync is
 * `kubectl apply`, whose code Argo CD uses.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Json } from '../../operator/test/support/api-client.ts';
import { ApiServer, repository } from '../../operator/test/support/api-server.ts';
import { BARE_LISTS } from '../../operator/test/support/bare-lists.ts';
import { eventually } from '../../operator/test/support/eventually.ts';
import { podTemplate, renderService, World } from '../../operator/test/support/world.ts';
import { BUILD_TIMEOUT_MS, Comparison, type Pair } from './comparison.ts';

const files = globSync('examples/{*,autoscaling/*,frameworks/*/renderservice,gitops/kustomize/base/*}.yaml', {
  cwd: repository,
}).sort();

/** RenderServices of all examples, in one namespace, each with the name of its file. */
function examples(namespace: string): Json[] {
  return files.flatMap((file) => {
    const objects = parseAllDocuments(readFileSync(join(repository, file), 'utf8')).map((one) => one.toJS() as Json);
    const name = file.replace(/^examples\/(.*?)(\/renderservice)?\.yaml$/, '$1').replaceAll('/', '-');
    return objects
      .filter((object) => object?.kind === 'RenderService')
      .map((object, index) => ({
        ...object,
        metadata: { ...object.metadata, namespace, name: index === 0 ? name : `${name}-${index}` },
      }));
  });
}

let comparison: Comparison;
let server: ApiServer;

beforeAll(async () => {
  comparison = await Comparison.build();
  server = await ApiServer.start('argocd');
  await eventually('the API server publishes the schema of RenderServices', async () => {
    const { definitions } = await server.admin().get('/openapi/v2');
    expect(Object.keys(definitions)).toContain('dev.corelane.v1alpha1.RenderService');
  });
}, BUILD_TIMEOUT_MS);

afterAll(() => server?.remove());

const WAYS = {
  'without ServerSideApply': { namespace: 'client-side', options: [] },
  'with ServerSideApply=true': {
    namespace: 'server-side',
    options: ['--server-side', '--field-manager=argocd-controller'],
  },
};

describe.each(Object.entries(WAYS))('%s', (_way, { namespace, options }) => {
  const isServerSide = options.length > 0;
  let world: World;
  let lists: Pair;

  async function sync(manifests: Json[]): Promise<Pair[]> {
    await world.kubectl.apply({ apiVersion: 'v1', kind: 'List', items: manifests }, ...options);
    return await Promise.all(
      manifests.map(async (config) => ({ config, live: await world.get('RenderService', config.metadata.name) })),
    );
  }

  const outOfSync = (pairs: Pair[]) => comparison.outOfSync(pairs, isServerSide ? server.adminKubeconfig : undefined);

  beforeAll(async () => {
    world = new World(server, namespace);
    await world.admin.post('/api/v1/namespaces', { metadata: { name: namespace } });
    [lists] = (await sync([renderService(namespace, 'lists', BARE_LISTS)])) as [Pair];
  });

  test('every example is Synced', async () => {
    const pairs = await sync(examples(namespace));
    expect(pairs.length).toBeGreaterThan(20);
    expect(await outOfSync(pairs)).toEqual([]);
  });

  test('items of lists without the fields that have a default are Synced', async () => {
    expect(await outOfSync([lists])).toEqual([]);
  });

  test('another value in an item is OutOfSync', async () => {
    const config = structuredClone(lists.config);
    config.spec.template.spec.containers[1].image = 'corelane.test/mesh:2';
    expect(await outOfSync([{ ...lists, config }])).toMatchObject([{ name: 'lists' }]);
  });

  // So the definition has no defaults there (operator/gen/crd.ts).
  test('a field that the API server adds to an item is OutOfSync with ServerSideApply=true only', async () => {
    const live = structuredClone(lists.live);
    live.spec.classes[0].replay = true;
    expect(await outOfSync([{ ...lists, live }])).toMatchObject(isServerSide ? [{ name: 'lists' }] : []);
  });
});

test('without ServerSideApply a null in Git is Synced', async () => {
  const world = new World(server, 'default');
  const pod = { nodeSelector: null, affinity: null, tolerations: null };
  const config = renderService('default', 'nulls', {
    template: { ...podTemplate({}, pod), metadata: { creationTimestamp: null } },
  });
  await world.kubectl.apply(config);
  expect(await comparison.outOfSync([{ config, live: await world.get('RenderService', 'nulls') }])).toEqual([]);
});
