/** Real apps by `corelane run FOLDER`, as their authors start them. How long each took is printed, and no more. */
import { jest } from '@jest/globals';
import { batch, exampleFolder } from '../../../e2e/harness/engine/examples.ts';
import { RunProcess } from '../../../e2e/harness/engine/run-process.ts';
import { application } from './application.ts';

jest.setTimeout(900_000);
/** Those of this folder. */
const APPLICATIONS = ['express', 'fastify'];

afterEach(() => RunProcess.endAll());

test.each([
  ['express', '/', {}],
  ['fastify', '/', {}],
  ...['next', 'nuxt', 'sveltekit', 'react-router', 'astro', 'angular'].map((name) => [name, '/', {}] as const),
  ['hypernova', ...batch('page')],
] as const)('%s', async (name, path, init) => {
  const folder = APPLICATIONS.includes(name) ? await application(name) : await exampleFolder(name);
  const run = new RunProcess([folder, '--port', '28080']);
  const response = await fetch(`${await run.url()}${path}`, { ...init, signal: AbortSignal.timeout(60_000) });
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('page')]);
  const [, took] = await run.says(/ is ready after (.*)$/m);
  console.log(`${name}: a page can be had after ${took}`);
  expect(await run.end('SIGTERM')).toBe(0);
  expect(await run.leftovers()).toEqual([]);
});
