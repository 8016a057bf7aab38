/**
 * A program that asks its own port without end: the time-out of renders must be long enough for the levels it counts.
 */
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { page, startAsking } from './own-requests.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await startAsking('4s');
});
afterAll(() => pod?.stop());

test('a page that asks for itself without end is given up, and costs no more than its worker', async () => {
  expect((await pod.get(page('deep', { deep: 'endless' }))).status).toBe(504);
  const begun = pod.events({ event: 'begin', id: 'deep' }).length;
  figure('renders begun by a page that asks for itself without end', begun, '', '< 40');
  expect(begun).toBeLessThan(40);
  await until('it serves again', async () => (await pod.get(page('after'))).status === 200);
});
