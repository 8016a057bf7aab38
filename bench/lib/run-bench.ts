/** What all benches begin and end with. */
import { prepare, removeAll } from '../../e2e/harness/engine/docker.ts';

/**
 * Runs `work` once engine and images are there. Whatever happens, and on SIGINT and SIGTERM, no container stays behind.
 * @param undo takes away what else `work` has made
 */
export async function runBench(work: () => Promise<void>, undo = async () => {}): Promise<void> {
  const remove = () => Promise.allSettled([removeAll(), undo()]);
  let end: Promise<void> | undefined;
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      process.stderr.write(`\n${signal}: removing containers ...\n`);
      end ??= remove().then(() => process.exit(130));
    });
  }
  try {
    await prepare();
    await work();
  } catch (error) {
    // What fails because it was taken away is no news.
    if (!end) throw error;
  } finally {
    await (end ?? remove());
  }
}
