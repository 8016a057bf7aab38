/** What the tests of hostile objects look for. */
import { eventually } from '../support/eventually.ts';
import type { OperatorProcess } from '../support/operator-process.ts';
import type { World } from '../support/world.ts';

/** The operator still does what it is there for. */
export async function expectToWork(world: World, operator: OperatorProcess): Promise<void> {
  await world.createRenderService('honest');
  await world.untilApplied('honest');
  expect(operator.hasEnded).toBe(false);
}

/** Waits for the message of Stalled. */
export function stalledMessage(world: World, name: string, reason: string): Promise<string> {
  return eventually(`${name} is Stalled`, async () => {
    const condition = await world.condition(name, 'Stalled');
    expect(condition).toMatchObject({ status: 'True', reason });
    return condition.message;
  });
}
