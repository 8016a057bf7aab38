/** A render that something else than its program holds. */
import { execFileSync } from 'node:child_process';
import { createReadStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '../../e2e/harness/engine/pod.ts';
import { get, type Program } from './program.ts';

/** The server (apps/holds.cjs). */
export const HOLDS = fileURLToPath(new URL('apps/holds.cjs', import.meta.url));

/**
 * Holds a render for longer than a worker may stand still, and lets it go on: it is answered by the process that has
 * begun it, which takes no other request meanwhile.
 * @param file where the snapshot goes, if that is what holds it
 */
export async function expectHeld(program: Program, path: string, by: string, file = ''): Promise<void> {
  const target = join(program.folder, file);
  // Nobody reads it: that lasts for as long as the test wants.
  if (file) execFileSync('mkfifo', [target]);
  const opened = path === '/open' ? createReadStream(target) : undefined;
  await program.start(process.execPath, [HOLDS]);
  const first = (await get(program.port, '/')).body;
  const answer = get(program.port, `${path}?file=${target}`);
  await until(`it is held; ${program.output}`, () => program.output.includes(`"by":"${by}"`));
  expect((await program.health()).body).toBe('stalled\n');
  writeFileSync(join(program.folder, 'events.go'), '');
  const read = opened ?? (file ? createReadStream(target) : undefined);
  read?.resume();
  expect((await answer).body).toBe(first);
  await until('it takes requests again', async () => (await program.health()).status === 200);
  expect((await get(program.port, '/')).body).toBe(first);
  expect(program.output).not.toMatch(/"event":"(stalled|kill|restart)"/);
}
