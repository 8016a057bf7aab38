/** A change of pods and the way back, without load; rollout.load.test.ts has the same and more under load. */
import { Fleet } from '../harness/cluster/fleet.ts';
import { untilReady } from '../harness/cluster/renderservice.ts';
import { changeOnce, rolloutOf, untilServed } from './rollout.ts';

const PODS = 1;
const fleet = new Fleet('rollout-smoke');

// As many rest as the service has: the way back starts none.
beforeAll(() => fleet.create(PODS, { rollout: { rolling: { maxSurge: 1 }, retain: { replicas: PODS } } }), 400_000);

afterAll(() => fleet.remove());

test('a change: the revision before rests, and gets nothing any more', () => changeOnce(fleet, PODS), 300_000);

test('undo: its pods are there', async () => {
  const before = (await rolloutOf(fleet))?.revisions.find(({ restsUntil }) => restsUntil)?.revision as string;
  await fleet.rollout('undo');
  await untilServed(fleet, before);
  await untilReady(fleet.namespace, fleet.name);
  expect((await rolloutOf(fleet))?.revision).toBe(before);
}, 300_000);
