/** Real apps by `corelane run FOLDER`, as their authors start them. How long each took is printed, and no more. */
import { jest } from '@jest/globals';
import { RunProcess } from '../../../e2e/harness/engine/run-process.ts';
import { application } from './application.ts';

jest.setTimeout(900_000);
afterEach(() => RunProcess.endAll());

const HYPERNOVA = {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ one: { name: 'page', data: {} } }),
};

test.each([
  ['express', '/', {}],
  ['fastify', '/', {}],
  ['hypernova', '/batch', HYPERNOVA],
  ['next', '/', {}],
  ['nuxt', '/', {}],
  ['astro', '/', {}],
])('%s', async (name, path, init) => {
  const run = new RunProcess([await application(name), '--port', '28080']);
  const response = await fetch(`${await run.url()}${path}`, { ...init, signal: AbortSignal.timeout(60_000) });
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('page')]);
  const [, took] = await run.says(/ is ready after (.*)$/m);
  console.log(`${name}: a page can be had after ${took}`);
  expect(await run.end('SIGTERM')).toBe(0);
  expect(await run.leftovers()).toEqual([]);
});
