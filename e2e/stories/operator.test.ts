/** The operator itself on a real cluster: installation, changes of a spec, a steady state. */
import { apply, eventually, kubectl } from '../harness/cluster/cluster.ts';
import { OPERATOR_NAMESPACE } from '../harness/cluster/operator.ts';
import { untilAllWorkersUp, untilReady } from '../harness/cluster/renderservice.ts';
import {
  changeDeadline,
  leader,
  MANIFEST,
  metricsOf,
  NAME,
  NAMESPACE,
  prepareNamespace,
  removeNamespace,
  replicasOf,
} from './operator.ts';

/** Writes of the leader so far that were for this story: other stories may still be going. */
async function writesOf(pod: string): Promise<number> {
  const lines = (await kubectl(['-n', OPERATOR_NAMESPACE, 'logs', pod])).split('\n');
  return lines.filter((line) => line.includes('"msg":"written"') && line.includes(`"key":"${NAMESPACE}/`)).length;
}

beforeAll(prepareNamespace, 400_000);

afterAll(removeNamespace);

describe('the operator', () => {
  test('turns an applied RenderService into a Deployment and into ready pods', async () => {
    await apply(MANIFEST);
    await eventually('the Deployment', 60_000, replicasOf);
    await untilReady(NAMESPACE, NAME);
  });

  test('brings every change of a spec to the Deployment', async () => {
    for (const seconds of [601, 602, 603]) await changeDeadline(seconds);
  });

  test('writes nothing in a steady state', async () => {
    await untilAllWorkersUp(NAMESPACE, NAME);
    const holder = await leader();
    const before = await writesOf(holder);
    expect(before).toBeGreaterThan(0);
    // An annotation that nobody uses makes the operator look at the resource again.
    for (const value of ['one', 'two', 'three']) {
      await kubectl(['-n', NAMESPACE, 'annotate', 'renderservice', NAME, `example.com/look=${value}`, '--overwrite']);
    }
    const reconciles = async () =>
      Number(/reconcile_duration_seconds_count\{result="done"\} (\d+)/.exec(await metricsOf(holder))?.[1]);
    const seen = await reconciles();
    await kubectl(['-n', NAMESPACE, 'annotate', 'renderservice', NAME, 'example.com/look-']);
    await eventually('another reconcile', 60_000, async () => ((await reconciles()) > seen ? true : undefined));
    expect(await writesOf(holder)).toBe(before);
  });
});
