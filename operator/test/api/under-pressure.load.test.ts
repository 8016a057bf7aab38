/**
 * Others who write our objects again and again are told by name, and not fought at full speed.
 *
 * A load test: on a slow machine the operator is allowed more repairs meanwhile than are counted here.
 */
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
    const condition = await world.condition('fought', 'ObjectsInSync');
    if (condition) break;
    await eventually('it is taken back, or held', async () => {
      const { spec } = await world.get('Service', 'fought');
      const held = await world.condition('fought', 'ObjectsInSync');
      expect(spec.externalIPs === undefined || held !== undefined).toBe(true);
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

test('so is one that takes away the mark by which we know what we have applied', async () => {
  await world.createRenderService('unmarked');
  await world.untilApplied('unmarked');
  const service = world.path('Service', 'unmarked');
  const mark = 'corelane.dev/applied-hash';
  const contended = () => world.condition('unmarked', 'ObjectsInSync');
  for (let round = 0; round < 100 && !(await contended()); round += 1) {
    await world.admin.patch(service, { metadata: { annotations: { [mark]: null } } });
    await eventually('it is put back, or that is held', async () => {
      const { metadata } = await world.get('Service', 'unmarked');
      expect(metadata.annotations?.[mark] !== undefined || (await contended()) !== undefined).toBe(true);
    });
  }
  expect(await contended()).toMatchObject({ status: 'False', reason: 'Contended' });
});
