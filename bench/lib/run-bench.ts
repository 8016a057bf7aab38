/** What all benches begin and end with. */
import { prepare, removeAll } from '../../e2e/harness/engine/docker.ts';

/**
 * Runs `work` once engine and images are there. Whatever happens, and on SIGINT and SIGTERM, no container stays behind.
 */
export async function runBench(work: () => Promise<void>): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      process.stderr.write(`\n${signal}: removing containers ...\n`);
      removeAll().finally(() => process.exit(130));
    });
  }
  try {
    await prepare();
    await work();
  } finally {
    await removeAll();
  }
}
