/** A program that listens again where it listens already: what the runtime opened for it is closed. */
import { fileURLToPath } from 'node:url';
import { until } from '../../e2e/harness/engine/pod.ts';
import { Program } from './program.ts';

const WORKER = fileURLToPath(new URL('apps/worker.mjs', import.meta.url));

const TIMES = 50;

test('a `listen` that throws leaves no file open', async () => {
  // The watchdog is not what this is about.
  const program = new Program(30_000);
  try {
    await program.start(process.execPath, [WORKER], { LISTENS_AGAIN: String(TIMES) });
    const refused = await until('all of them', () => {
      const found = program.events('refused');
      return found.length === TIMES ? found : undefined;
    });
    expect(refused.map(({ id }) => id)).toEqual(Array(TIMES).fill('ERR_SERVER_ALREADY_LISTEN'));
    const files = refused.map(({ bytes = 0 }) => bytes);
    // The watchdog thread opens a handful of its own meanwhile; one for each time would be as many as there are times.
    expect(Math.max(...files) - Math.min(...files)).toBeLessThan(TIMES / 2);
  } finally {
    await program.stop();
  }
});
