/** A program that is built for a path which its RenderService does not name: its files take render slots. */
import { logs } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 1 }, { command: ['node', '/app/base-path.cjs'] });
});
afterAll(() => pod?.stop());

test('the worker says once which base path is missing', async () => {
  const said = async () =>
    (await logs(pod.workers[0] ?? '')).split('\n').filter((line) => line.includes('serves the files of'));
  for (const path of ['/_next/static/a.js', '/']) expect((await pod.get(path)).status).toBe(404);
  for (const path of ['/health', '/favicon.ico']) expect((await pod.get(path)).status).toBe(200);
  expect((await pod.get('/shop/about')).status).toBe(200);
  for (let file = 0; file < 7; file += 1) {
    const { headers } = await pod.get(`/shop/_next/static/${file % 2 === 0 ? `${file}.js` : `${file}.css?dpl=1`}`);
    expect(headers['content-type']).toMatch(/javascript|css/);
  }
  const [line, ...more] = await until('it is told', async () => {
    const lines = await said();
    return lines.length > 0 ? lines : undefined;
  });
  expect(line).toContain('serves the files of /shop/_next/static/ itself');
  expect(line).toContain('set basePath: /shop beside framework');
  expect(more).toEqual([]);
});
