/**
 * As many namespaces as an operator may have: whether its watches fit into the memory that the chart gives it.
 *
 * A load test: its verdict is a number of bytes, and depends on when V8 collects.
 */
import { figure } from '../support/figure.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';

/** `resources.limits.memory` of the chart. */
const LIMIT_MIB = 320;
const NAMESPACES_MAX = 100;

afterEach(() => OperatorProcess.killAll());

test('a hundred namespaces, each with a RenderService, fit into the memory of the chart', async () => {
  const one = await World.create(sharedServer(), 'rights-load-1');
  const worlds = [one];
  while (worlds.length < NAMESPACES_MAX) worlds.push(await one.alsoIn(`rights-load-${worlds.length + 1}`));
  for (const world of worlds) await world.createRenderService('shop', { replicas: 0 });
  const namespace = worlds.map((world) => world.namespace).join(',');
  const operator = await OperatorProcess.start({ ...one.settings('operator-0'), namespace });
  await operator.untilLeading();
  for (const world of worlds) await world.untilApplied('shop');
  const mib = (await operator.sum('process_resident_memory_bytes')) / 2 ** 20;
  figure('resident memory of an operator with 100 namespaces', mib, 'MiB', `< ${LIMIT_MIB} MiB`);
  expect(mib).toBeLessThan(LIMIT_MIB);
});
