/**
 * Others who write our objects again and again are told by name, and not fought at full speed.
 *
 * A load test: on a slow machine the operator is allowed more repairs meanwhile than are counted here.
 */
import type { KindName } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { figure } from '../support/figure.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, TOLD } from '../support/told.ts';
import { sharedServer, World } from '../support/world.ts';

let world: World;
let operator: OperatorProcess;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'under-pressure-load');
  operator = await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

/** Whether it is told that somebody fights for an object of this RenderService. */
async function isContended(name: string): Promise<boolean> {
  return (await world.condition(name, 'ObjectsInSync'))?.reason === 'Contended';
}

test('another controller that sets a field of ours again and again is told by name, and not fought at full speed', async () => {
  await world.createRenderService('fought');
  await world.untilApplied('fought');
  const repairs = () => operator.sum('corelane_operator_writes_total', ({ what }) => what === 'Service foreign-fields');
  const before = await repairs();
  const service = world.path('Service', 'fought');
  for (let round = 0; round < 100; round += 1) {
    await world.admin.patch(`${service}?fieldManager=kube-vip`, {
      spec: { sessionAffinity: 'None', externalIPs: ['192.0.2.7'] },
    });
    if (await isContended('fought')) break;
    await eventually('it is taken back, or held', async () => {
      const { spec } = await world.get('Service', 'fought');
      expect(spec.externalIPs === undefined || (await isContended('fought'))).toBe(true);
    });
  }
  await eventually('it is told', async () => {
    expect(await world.condition('fought', 'ObjectsInSync')).toMatchObject({
      status: 'False',
      reason: 'Contended',
      message: expect.stringMatching(asTold(TOLD.contended)),
    });
  });
  expect((await world.condition('fought', 'ObjectsInSync')).message).toMatch(/^Service "fought": "kube-vip" sets/);
  const repaired = (await repairs()) - before;
  figure('repairs of a field that another controller keeps setting', repaired, '', '30');
  expect(repaired).toBe(30);
  expect(await world.condition('fought', 'Ready')).toBeDefined();
  const notes = (await world.events('fought')).filter(({ reason }) => reason === 'Contended');
  expect(notes).toHaveLength(1);
});

/** The name of the configuration that the pods of a RenderService have. */
async function configOf(name: string): Promise<string> {
  return (await world.deployment(name)).spec.template.metadata.annotations['corelane.dev/config'];
}

test.each<[what: string, kind: KindName, name: (service: string) => string | Promise<string>]>([
  ['service', 'Service', (name) => name],
  ['settings', 'ConfigMap', (name) => `${name}-live`],
  ['config', 'ConfigMap', configOf],
])('so is one that takes away the mark by which we know what we have applied: %s', async (what, kind, nameOf) => {
  const service = `unmarked-${what}`;
  await world.createRenderService(service);
  await world.untilApplied(service);
  const path = world.path(kind, await nameOf(service));
  const mark = 'corelane.dev/applied-hash';
  for (let round = 0; round < 100 && !(await isContended(service)); round += 1) {
    await world.admin.patch(path, { metadata: { annotations: { [mark]: null } } });
    await eventually('it is put back, or that is held', async () => {
      const { metadata } = await world.admin.get(path);
      expect(metadata.annotations?.[mark] !== undefined || (await isContended(service))).toBe(true);
    });
  }
  expect(await isContended(service)).toBe(true);
});

test('so is one that deletes an object', async () => {
  await world.createRenderService('deleted');
  await world.untilApplied('deleted');
  const path = world.path('PodDisruptionBudget', 'deleted');
  for (let round = 0; round < 100 && !(await isContended('deleted')); round += 1) {
    if (await world.admin.find(path)) await world.admin.delete(path);
    await eventually('it is made again, or that is held', async () => {
      expect((await world.admin.find(path)) !== undefined || (await isContended('deleted'))).toBe(true);
    });
  }
  expect((await world.condition('deleted', 'ObjectsInSync')).message).toContain('somebody has deleted it');
});

test('so is one that writes the status of a RenderService', async () => {
  await world.createRenderService('judged');
  await world.untilApplied('judged');
  const path = `${world.path('RenderService', 'judged')}/status`;
  for (let round = 0; round < 100 && !(await isContended('judged')); round += 1) {
    const { conditions } = (await world.get('RenderService', 'judged')).status;
    const others = conditions.map((one: object) => ({ ...one, message: `by another, ${round}` }));
    await world.admin.patch(path, { status: { conditions: others } });
    // The write that tells it waits for a minute.
    await eventually('it is written back', async () => {
      expect((await world.condition('judged', 'Ready')).message).not.toMatch(/^by another/);
    });
  }
  expect((await world.condition('judged', 'ObjectsInSync')).message).toContain('somebody changes its status');
});
