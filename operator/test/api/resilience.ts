/** API servers that go and come, and what the operator must have done when they are back. */
import { ApiServer, type StartOptions } from '../support/api-server.ts';
import { eventually, settled } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { World } from '../support/world.ts';

const NAMES = ['one', 'two', 'three'];
/** A server for the tests of one `describe`, and an operator that works with it. */
export interface Site {
  server: ApiServer;
  world: World;
  operator: OperatorProcess;
  /** Versions of all objects before a test. */
  atRest: Record<string, string>;
}

/** An installation for all namespaces; the other test files have one for a single namespace. */
export function spawnOperator(world: World): Promise<OperatorProcess> {
  return OperatorProcess.spawn({ ...world.settings('operator-0'), namespace: '' });
}

/** As kubelet does: starts the process again if it has ended. That is right only when its Lease has run out. */
export async function keepRunning(site: Site): Promise<void> {
  await eventually('an operator is ready and leads', async () => {
    // It may end at any look: the API server may come back when the Lease has nearly run out.
    if (site.operator.hasEnded) {
      expect(await site.operator.exitCode(0)).toBe(1);
      expect(site.operator.log).toContain('"result":"lost"');
      site.operator = await spawnOperator(site.world);
    }
    expect(await site.operator.page('/readyz')).toMatchObject({ status: 200 });
    expect(await site.operator.isLeading()).toBe(true);
  });
}

/** Every watch that matters still brings changes, and they are acted upon. */
async function expectToWork(site: Site): Promise<void> {
  const { world } = site;
  const { spec } = await world.get('Service', 'one');
  const port = spec.ports[0].port + 1;
  await world.patchSpec('one', { service: { port } });
  await world.admin.delete(world.path('PodDisruptionBudget', 'two'));
  await world.admin.patch(await world.deploymentPath('three'), { spec: { replicas: 9 } });
  await eventually(
    'a change of the spec reaches the Service, a deleted budget is back, a changed Deployment is repaired',
    async () => {
      if (site.operator.hasEnded) await keepRunning(site);
      expect((await world.get('Service', 'one')).spec.ports[0].port).toBe(port);
      await world.get('PodDisruptionBudget', 'two');
      expect((await world.deployment('three')).spec.replicas).toBe(2);
    },
  );
}

/** What `expectToWork` changes; all else must be as it was. */
const TOUCHED = /^(RenderService\/(one|two|three)|Service\/one|PodDisruptionBudget\/two|Deployment\/three-\w+)$/;

function untouched(versions: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(versions).filter(([name]) => !TOUCHED.test(name)));
}

/** A server for the tests of one `describe`, with an operator that has settled. The first test finds it complete. */
export function useServer(name: string, options: StartOptions): Site {
  const site = {} as Site;
  beforeAll(async () => {
    site.server = await ApiServer.start(name, options);
    site.world = await World.create(site.server, 'resilience', 'cluster');
    site.operator = await spawnOperator(site.world);
    await site.operator.untilReady();
    await site.operator.untilLeading();
    for (const one of NAMES) await site.world.createRenderService(one);
    await Promise.all(NAMES.map((one) => eventually(`${one} is applied`, () => site.world.deployment(one))));
  });

  afterAll(async () => {
    await OperatorProcess.killAll();
    await site.server?.remove();
  });

  beforeEach(async () => {
    site.atRest = await settled('all objects', () => site.world.resourceVersions());
  });
  return site;
}

/** The operator works again and has written to nothing that it had no reason to write to. */
export async function expectRecovery(site: Site): Promise<void> {
  await keepRunning(site);
  await expectToWork(site);
  const after = await settled('all objects', () => site.world.resourceVersions());
  expect(untouched(after)).toEqual(untouched(site.atRest));
}

/** History that is gone makes the watches begin anew. */
export async function expectToSurviveCompaction(site: Site): Promise<void> {
  const { server, world } = site;
  const { metadata } = await world.admin.get(world.path('ServiceAccount'));
  // Other people's changes move the revision on; the operator's watches see none of them.
  for (let index = 0; index < 30; index += 1) {
    await world.admin.post(world.path('ConfigMap'), { metadata: { generateName: 'noise-' } });
  }
  site.atRest = await settled('all objects', () => world.resourceVersions());
  await server.compact();
  await server.stop('by kill');
  await server.comeBack();
  // The premise: a watch from before is refused, so the operator's cannot simply go on.
  const old = `${world.path('ServiceAccount')}?watch=1&resourceVersion=${metadata.resourceVersion}&timeoutSeconds=2`;
  expect(JSON.stringify(await world.admin.get(old).catch(({ status }) => status))).toContain('"code":410');
  await expectRecovery(site);
}
