/** A canary without load: it gets its share, waits for a person, and gets the rest. canary.load.test.ts has more. */
import { Fleet } from '../harness/cluster/fleet.ts';
import { untilAsked, untilRollout } from '../harness/cluster/rollout.ts';

const PODS = 1;
const SHARE = 50;
const fleet = new Fleet('canary-smoke');

beforeAll(async () => {
  const canary = { steps: [{ share: SHARE, approval: true }], analysis: { enabled: false } };
  await fleet.create(PODS, { rollout: { canary } });
}, 400_000);

afterAll(() => fleet.remove());

test('a change waits at its share for a person, who lets it have everything', async () => {
  await fleet.change({ template: { metadata: { annotations: { 'example.com/version': '2' } } } });
  const { canary, revision } = await untilAsked(fleet, SHARE, () => true);
  expect(canary).toMatchObject({ revision, attempt: 1, step: 1, appliedPods: 2 * PODS, pods: 2 * PODS });
  await fleet.rollout('promote');
  expect(await untilRollout(fleet, 'it to have everything', ({ phase }) => phase === 'Complete')).toMatchObject({
    revision,
  });
}, 400_000);
