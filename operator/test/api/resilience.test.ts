/** API servers restart, die, forget history and are away; the operator comes through without help and without noise. */
import { ApiServer, type StartOptions } from '../support/api-server.ts';
import { eventually, settled } from '../support/eventually.ts';
import { CONTROLLERS } from '../support/global-setup.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { World } from '../support/world.ts';

const NAMES = ['one', 'two', 'three'];
/** Far above what garbage collection leaves lying about, far below a leaked cache or connection per reconnect. */
const MEMORY_GROWTH_MAX_BYTES = 64 * 2 ** 20;

let server: ApiServer;
let world: World;
let operator: OperatorProcess;

/** An installation for all namespaces; the other test files have one for a single namespace. */
function spawn(): Promise<OperatorProcess> {
  return OperatorProcess.spawn({ ...world.settings('operator-0'), namespace: '' });
}

/** As kubelet does: starts the process again if it has ended. That is right only when its Lease has run out. */
async function keepRunning(): Promise<void> {
  if (operator.hasEnded) {
    expect(await operator.exitCode(0)).toBe(1);
    expect(operator.log).toContain('"result":"lost"');
    operator = await spawn();
  }
  await operator.untilReady();
  await operator.untilLeading(60_000);
}

/** Every watch that matters still brings changes, and they are acted upon. */
async function expectToWork(): Promise<void> {
  const { spec } = await world.get('Service', 'one');
  const port = spec.ports[0].port + 1;
  await world.patchSpec('one', { service: { port } });
  await world.admin.delete(world.path('PodDisruptionBudget', 'two'));
  await world.admin.patch(await world.deploymentPath('three'), { spec: { replicas: 9 } });
  await eventually(
    'a change of the spec reaches the Service, a deleted budget is back, a changed Deployment is repaired',
    async () => {
      if (operator.hasEnded) await keepRunning();
      expect((await world.get('Service', 'one')).spec.ports[0].port).toBe(port);
      await world.get('PodDisruptionBudget', 'two');
      expect((await world.deployment('three')).spec.replicas).toBe(2);
    },
    { timeoutMs: 60_000 },
  );
}

/** What `expectToWork` changes; all else must be as it was. */
const TOUCHED = /^(RenderService\/(one|two|three)|Service\/one|PodDisruptionBudget\/two|Deployment\/three-\w+)$/;

function untouched(versions: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(versions).filter(([name]) => !TOUCHED.test(name)));
}

let atRest: Record<string, string>;
let memoryBytes: number;

/** A server for the tests of one `describe`, with an operator that has settled. */
function useServer(name: string, options: StartOptions): void {
  beforeAll(async () => {
    server = await ApiServer.start(name, options);
    world = await World.create(server, 'resilience', 'cluster');
    operator = await spawn();
    await operator.untilReady();
    await operator.untilLeading();
    for (const one of NAMES) await world.createRenderService(one);
    await Promise.all(NAMES.map((one) => eventually(`${one} is applied`, () => world.deployment(one))));
    await settled('all objects', () => world.resourceVersions());
    memoryBytes = await operator.sum('process_resident_memory_bytes');
  });

  afterAll(async () => {
    await OperatorProcess.killAll();
    await server?.remove();
  });

  beforeEach(async () => {
    atRest = await settled('all objects', () => world.resourceVersions());
  });
}

/** The operator works again and has written to nothing that it had no reason to write to. */
async function expectRecovery(): Promise<void> {
  await keepRunning();
  await expectToWork();
  const after = await settled('all objects', () => world.resourceVersions());
  expect(untouched(after)).toEqual(untouched(atRest));
}

/** History that is gone makes the watches begin anew. */
async function expectToSurviveCompaction(): Promise<void> {
  const { metadata } = await world.admin.get(world.path('ServiceAccount'));
  // Other people's changes move the revision on; the operator's watches see none of them.
  for (let index = 0; index < 30; index += 1) {
    await world.admin.post(world.path('ConfigMap'), { metadata: { generateName: 'noise-' } });
  }
  atRest = await settled('all objects', () => world.resourceVersions());
  await server.compact();
  await server.stop('by kill');
  await server.comeBack();
  // The premise: a watch from before is refused, so the operator's cannot simply go on.
  const old = `${world.path('ServiceAccount')}?watch=1&resourceVersion=${metadata.resourceVersion}&timeoutSeconds=2`;
  expect(JSON.stringify(await world.admin.get(old).catch(({ status }) => status))).toContain('"code":410');
  await expectRecovery();
}

describe('with an API server with a watch cache', () => {
  useServer('jest-cache', { controllers: CONTROLLERS });

  test('a restart of the API server passes', async () => {
    await server.stop();
    expect(await operator.status('/livez')).toBe(200);
    await server.comeBack();
    await expectRecovery();
  });

  test('an API server that dies and comes back passes', async () => {
    await server.stop('by kill');
    await server.comeBack();
    await expectRecovery();
  });

  test('history that is gone makes the watches begin anew', expectToSurviveCompaction);

  test('an operator that is started while the API server is away comes up when it is back', async () => {
    await operator.kill();
    await server.stop();
    operator = await spawn();
    await eventually('the process answers', async () => expect(await operator.status('/livez')).toBe(200));
    await eventually('it has tried in vain', async () => {
      expect(await operator.sum('corelane_operator_watch_errors_total')).toBeGreaterThan(0);
    });
    expect(await operator.status('/readyz')).toBe(503);
    await server.comeBack();
    await expectRecovery();
    memoryBytes = await operator.sum('process_resident_memory_bytes');
  });

  test('a network that goes and comes several times costs no memory', async () => {
    for (let round = 0; round < 3; round += 1) {
      await server.stop('by kill');
      await server.comeBack();
      await keepRunning();
    }
    await expectRecovery();
    const growth = (await operator.sum('process_resident_memory_bytes')) - memoryBytes;
    expect(growth).toBeLessThan(MEMORY_GROWTH_MAX_BYTES);
    expect(operator.log).not.toMatch(/unhandled|uncaught/i);
  });
});

describe('with an API server without a watch cache, where a compaction hits every watch', () => {
  useServer('jest-direct', { noWatchCache: true });

  test('history that is gone makes the watches begin anew', expectToSurviveCompaction);
});
