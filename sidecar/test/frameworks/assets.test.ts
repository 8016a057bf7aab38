/** `framework: NAME` for apps as the frameworks build them: all files of a page come from nginx; it takes one slot. */
import { jest } from '@jest/globals';
import { Pod, until } from '../../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../../operator/src/api/names.ts';
import { application } from './application.ts';

jest.setTimeout(900_000);

const FRAMEWORKS = [
  {
    framework: 'Next',
    app: 'next',
    command: ['node', '.next/standalone/server.js'],
    files: /\/_next\/static\/[^"\\]+/g,
  },
  { framework: 'Nuxt', app: 'nuxt', command: ['node', '.output/server/index.mjs'], files: /\/_nuxt\/[^"\\]+/g },
] as const;
const RENDERS = 'corelane_worker_render_duration_seconds_count';

test.each(FRAMEWORKS)('$framework', async ({ framework, app, command, files }) => {
  // The image's WORKDIR, below which the framework has built its files.
  const worker = { folder: await application(app), command: [...command], options: ['--workdir', '/app'] };
  const pod = await Pod.start({ workersPerPod: 1, framework }, worker);
  try {
    const page = await pod.get('/');
    const found = [...new Set(page.body.match(files))];
    expect(found.length).toBeGreaterThan(2);
    const answers = await Promise.all(found.map((path) => pod.get(path)));
    for (const { status, headers } of answers) {
      expect([status, headers['server-timing']]).toEqual([200, undefined]);
      expect(headers['content-type']).toMatch(
        /^(text\/(javascript|css); charset=utf-8|application\/json|font\/|image\/)/,
      );
    }
    const mutable = found.filter((_path, index) => !/immutable/.test(answers[index]?.headers['cache-control'] ?? ''));
    expect(mutable.filter((path) => !path.includes('/builds/latest.json'))).toEqual([]);
    const line = await until('the page is counted', async () => {
      const { body } = await pod.get('/workers/0/metrics', { port: PORTS.stats });
      return body.split('\n').find((one) => one.startsWith(RENDERS));
    });
    expect(line).toMatch(/ 1$/);
  } finally {
    await pod.stop();
  }
});
