/** A program that listens again where it listens already: what the runtime opened for it is closed. */
import { fileURLToPath } from 'node:url';
import { until } from '../../e2e/harness/engine/pod.ts';
import { Program } from './program.ts';

const WORKER = fileURLToPath(new URL('apps/worker.mjs', import.meta.url));

test('a `listen` that throws leaves no file open', async () => {
  const program = new Program();
  try {
    await program.start(process.execPath, [WORKER], { LISTENS_AGAIN: '3' });
    const refused = await until('three times', () => {
      const found = program.events('refused');
      return found.length === 3 ? found : undefined;
    });
    expect(refused.map(({ id }) => id)).toEqual(Array(3).fill('ERR_SERVER_ALREADY_LISTEN'));
    const [first, , last] = refused.map(({ bytes }) => bytes);
    expect(last).toBe(first);
    expect(first).toBeLessThan(100);
  } finally {
    await program.stop();
  }
});
