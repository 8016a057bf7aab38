/**
 * Rights that come a moment after they are needed.
 *
 * A load test: the operator waits 1.5 s for rights, and the test must give them within that time.
 */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';
import { createReady } from './status.ts';

let world: World;
let operator: OperatorProcess;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'status-load');
  operator = await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

test('rights that come a moment later are waited for', async () => {
  await createReady(world, 'forbidden');
  const role = world.path('Role', 'corelane');
  const { rules } = await world.admin.get(role);
  const without = rules.filter(({ resources }: Json) => !resources.includes('deployments'));
  const refused = () =>
    operator.sum('corelane_operator_api_request_duration_seconds_count', ({ code }) => code === '403');
  const before = await refused();
  await world.admin.patch(role, { rules: without });
  try {
    await world.patchSpec('forbidden', { template: podTemplate({ image: 'corelane.test/app:2' }) });
    // The operator waits 1.5 s for rights; a look each 0.1 s would be a good part of that.
    await eventually('a refusal', async () => expect(await refused()).toBeGreaterThan(before), { everyMs: 10 });
  } finally {
    await world.admin.patch(role, { rules });
  }
  await eventually('the Deployment has the new template', async () => {
    const { spec } = await world.deployment('forbidden');
    expect(spec.template.spec.containers[0].image).toBe('corelane.test/app:2');
  });
  const events = await world.events('forbidden');
  expect(events.filter(({ type }) => type === 'Warning')).toEqual([]);
});
