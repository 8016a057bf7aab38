/**
 * Rights that come a moment after they are needed, and refusals, which come at once.
 *
 * A load test: the operator waits 1.5 s for rights, and the test must give them within that time.
 */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { figure } from '../support/figure.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, renderService, sharedServer, World } from '../support/world.ts';
import { createReady } from './status.ts';
import { quota } from './why-no-pods.ts';

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

describe('a condition says within two seconds of kubectl apply what only the operator knows', () => {
  const TOLD_MS = 2_000;

  async function toldAfterMs(name: string, reason: string): Promise<number> {
    await world.kubectl.apply(renderService(world.namespace, name));
    const applied = performance.now();
    await eventually(
      `${name} is refused`,
      async () => expect(await world.condition(name, 'Stalled')).toMatchObject({ status: 'True', reason }),
      { everyMs: 20 },
    );
    return performance.now() - applied;
  }

  test('a name that is taken', async () => {
    await world.admin.post(world.path('Service'), { metadata: { name: 'taken' }, spec: { ports: [{ port: 80 }] } });
    const ms = await toldAfterMs('taken', 'NotOwned');
    figure('time from kubectl apply to the condition: a name that is taken', ms, 'ms', `< ${TOLD_MS} ms`);
    expect(ms).toBeLessThan(TOLD_MS);
  });

  test('an object that admission forbids', async () => {
    await quota(world, { 'count/poddisruptionbudgets.policy': '0' });
    const ms = await toldAfterMs('forbidden-budget', 'Rejected');
    figure('time from kubectl apply to the condition: an object that admission forbids', ms, 'ms', `< ${TOLD_MS} ms`);
    expect(ms).toBeLessThan(TOLD_MS);
  });
});
