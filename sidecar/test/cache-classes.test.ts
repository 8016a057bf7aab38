/** Classes of requests beside the cache: what is kept of them is by their own leave, and takes their own places. */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { herd, page, renders, statusOf } from './cache.ts';
import { mark } from './own-requests.ts';

let pod: Pod;
beforeAll(async () => {
  const classes = [
    { name: 'image', match: [{ pathPrefix: '/image' }], concurrency: 2, cache: true },
    { name: 'api', match: [{ pathPrefix: '/api' }], concurrency: 2 },
    { name: 'once', match: [{ pathPrefix: '/once' }], cache: true, replay: false },
  ];
  pod = await Pod.start({ workersPerPod: 1, cache: { enabled: true }, classes });
});
afterAll(() => pod?.stop());

test('a herd of a class takes one place of the class, and no render slot', async () => {
  const render = pod.get('/?hold=1&id=render');
  await pod.begun('render');
  // Its place is one of the class: the only render slot is taken.
  const answers = await herd(pod, `/image${page('image', 'max-age=60', '&hold=1')}`, 20);
  await pod.begun('image');
  pod.release('image');
  for (const answer of answers) expect((await answer).status).toBe(200);
  pod.release('render');
  expect((await render).status).toBe(200);
  expect(renders(pod, 'image')).toBe(1);
  const lines = await until('all are logged', async () => {
    const found = (await pod.accessLog()).filter(({ uri }) => String(uri).startsWith('/image'));
    return found.length === 20 ? found : undefined;
  });
  expect(new Set(lines.map(({ servedAs }) => servedAs))).toEqual(new Set(['image']));
  expect(lines.map(({ cache }) => cache).toSorted()).toEqual(['miss', ...Array(19).fill('waited')]);
});

test('what is kept takes no place of the class at all', async () => {
  const path = `/image${page('kept')}`;
  await pod.get(path);
  expect(statusOf(await pod.get(path))).toBe('Corelane; hit');
  expect(renders(pod, 'kept')).toBe(1);
});

test.each([
  ['says nothing of the cache', 'api'],
  ['is not replayed', 'once'],
])('a class that %s does not meet it', async (_what, name) => {
  const path = `/${name}${page(name)}`;
  const answers = [await pod.get(path), await pod.get(path)];
  expect(answers.map((answer) => [answer.status, statusOf(answer)])).toEqual(Array(2).fill([200, undefined]));
  expect(renders(pod, name)).toBe(2);
});

test('what a render sends to its own site does not wait for a page that waits for a slot', async () => {
  const render = pod.get('/?hold=1&id=asks');
  await pod.begun('asks');
  const path = page('asked');
  const visitor = pod.get(path);
  await pod.queued(1);
  const own = await Promise.all([1, 2, 3].map(() => pod.get(path, { headers: mark() })));
  expect(own.map(({ status }) => status)).toEqual([200, 200, 200]);
  // It is kept, and theirs.
  expect(renders(pod, 'asked')).toBe(1);
  expect(statusOf(await pod.get(path, { headers: mark() }))).toBe('Corelane; hit');
  pod.release('asks');
  expect((await Promise.all([render, visitor])).map(({ status }) => status)).toEqual([200, 200]);
  expect(renders(pod, 'asked')).toBe(2);
});
