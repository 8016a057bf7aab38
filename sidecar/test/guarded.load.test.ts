/** More kinds of programs that may send more than they have announced, a pod for each. Here because they take long. */
import { writeFileSync } from 'node:fs';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { expectOwnAnswers, guarding, start } from './guarded.ts';

let pod: Pod;
afterEach(() => pod?.stop());
const { isGuarded, behindTooLong, connections } = guarding(() => pod);

test.each([
  ['an image without Node.js', ['perl', '/app/plain.pl']],
  ['a process that has lost NODE_OPTIONS', ['env', '-u', 'NODE_OPTIONS', 'node', '/app/plain.cjs']],
])('%s: what it sends beyond its Content-Length is never the answer to the next request', async (_name, command) => {
  pod = await start({ command });
  await expectOwnAnswers(pod);
});

test('a program that comes back without node:http: the guard of the one before does not count', async () => {
  pod = await start({ command: ['node', '/app/plain.cjs'], env: { HTTP_FIRST: '1' } });
  await until('it is guarded', isGuarded);
  expect(await connections('guarded', 5)).toBeLessThan(5);
  writeFileSync(`${pod.notesFile}.plain`, '');
  const first = pod.server(0);
  await pod.kill(0, first, 'KILL');
  // It waits in the pod for the next process.
  expect(await behindTooLong('at-once')).toBe('behind-at-once');
  expect(pod.server(0)).not.toBe(first);
  expect(await connections('plain', 5)).toBe(5);
});

test('a program that uses cluster is guarded when all its processes are', async () => {
  pod = await start({ command: ['node', '/app/plain.cjs'], env: { HTTP_FIRST: '1', CLUSTER: '2' } });
  await until('it is guarded', isGuarded);
  expect(await behindTooLong('in-cluster')).toBe('behind-in-cluster');
});
