/**
 * One render for all who ask for a page at the same time: many of them, and again and again. A load test: floods, a
 * page that takes three seconds, and a number of renders by chance.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { herd, page, renders, statuses, waiters } from './cache.ts';

let pod: Pod;
beforeAll(async () => {
  const sidecar = { nginx: { memoryLimit: '4Gi' }, haproxy: { memoryLimit: '1Gi' } };
  // No more may wait for a worker than this: those who wait for a page are not among them.
  const queue = { maxLength: 8, timeout: '20s' };
  pod = await Pod.start({ workersPerPod: 2, queue, sidecar, cache: { enabled: true } });
});
afterAll(() => pod?.stop());

test('1,000 requests at once are one render', async () => {
  const path = page('many', 'max-age=600', '&hold=1');
  const answers = await herd(pod, path, 1000);
  pod.release('many');
  expect(statuses(await Promise.all(answers))).toEqual([200]);
  figure('renders for 1,000 requests for a page at once', renders(pod, 'many'), '', '1');
  expect(renders(pod, 'many')).toBe(1);
});

// Some ask just before the page is there: nginx hears that it is, and only then of the page.
test('so are 20 requests for a page that takes a millisecond, a hundred times', async () => {
  const ids = Array.from({ length: 100 }, (_unused, n) => `short-${n}`);
  for (const id of ids) await Promise.all(Array.from({ length: 20 }, () => pod.get(page(id, 'max-age=600'))));
  const wrong = ids.filter((id) => renders(pod, id) !== 1);
  figure('pages of 1 ms not rendered exactly once for 20 requests', wrong.length, `of ${ids.length}`, '0');
  expect(wrong).toEqual([]);
});

// nginx reads it in several rounds: who is told that it is there may look before the last of them.
test('so are 20 requests for a page of 2 MB, twenty times', async () => {
  const ids = Array.from({ length: 20 }, (_unused, n) => `large-${n}`);
  const path = (id: string) => page(id, 'max-age=600', '&size=2000000');
  for (const id of ids) await Promise.all(Array.from({ length: 20 }, () => pod.get(path(id))));
  const wrong = ids.filter((id) => renders(pod, id) !== 1);
  figure('pages of 2 MB not rendered exactly once for 20 requests', wrong.length, `of ${ids.length}`, '0');
  expect(wrong).toEqual([]);
});

test('who comes while a page kills its second worker is told at once', async () => {
  const path = page('kills-twice', 'max-age=600', '&ms=3000&die=1');
  const first = pod.get(path);
  await until('its second try is rendered', () => renders(pod, 'kills-twice') === 2);
  // nginx has no third try, so nobody comes back to tell them.
  const others = Array.from({ length: 5 }, () => pod.get(path));
  await waiters(pod, 5);
  const all = await Promise.all([first, ...others]);
  expect(statuses(all)).toEqual([502]);
  expect(renders(pod, 'kills-twice')).toBe(2);
});

test('a herd of several variants gets its own each', async () => {
  const path = page('variants', 'max-age=600', '&hold=1&header=Vary:Accept-Language');
  const languages = Array.from({ length: 24 }, (_unused, n) => ['de', 'fr', 'it'][n % 3] as string);
  const answers = languages.map((language) => pod.get(path, { headers: { 'accept-language': language } }));
  await waiters(pod, 23);
  pod.release('variants');
  const got = (await Promise.all(answers)).map(({ body }) => JSON.parse(body).headers['accept-language']);
  expect(got).toEqual(languages);
  figure('renders for 24 requests for three variants of a page', renders(pod, 'variants'), '', '<= 7');
  // The first render is wasted: Corelane does not know yet that the language matters. A client that looks for its
  // variant just before nginx has stored it may cause one more.
  expect(renders(pod, 'variants')).toBeLessThanOrEqual(7);
});
