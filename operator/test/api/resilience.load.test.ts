/**
 * API servers die and come back, again and again, and have no watch cache; the operator comes through without help and
 * without noise.
 *
 * A load test: API servers of their own are started many times, and memory is measured.
 */
import { figure } from '../support/figure.ts';
import { CONTROLLERS } from '../support/global-setup.ts';
import { expectRecovery, expectToSurviveCompaction, keepRunning, useServer } from './resilience.ts';

/** Far above what garbage collection leaves lying about, far below a leaked cache or connection per reconnect. */
const MEMORY_GROWTH_MAX_BYTES = 64 * 2 ** 20;

describe('with an API server with a watch cache', () => {
  const site = useServer('jest-cache-load', { controllers: CONTROLLERS });

  test('an API server that dies and comes back passes', async () => {
    await site.server.stop('by kill');
    await site.server.comeBack();
    await expectRecovery(site);
  });

  test('a network that goes and comes several times costs no memory', async () => {
    const memoryBytes = await site.operator.sum('process_resident_memory_bytes');
    for (let round = 0; round < 3; round += 1) {
      await site.server.stop('by kill');
      await site.server.comeBack();
      await keepRunning(site);
    }
    await expectRecovery(site);
    const growth = (await site.operator.sum('process_resident_memory_bytes')) - memoryBytes;
    figure('memory growth of the operator over three deaths of the API server', growth / 2 ** 20, 'MiB', '< 64 MiB');
    expect(growth).toBeLessThan(MEMORY_GROWTH_MAX_BYTES);
    expect(site.operator.log).not.toMatch(/unhandled|uncaught/i);
  });
});

describe('with an API server without a watch cache, where a compaction hits every watch', () => {
  const site = useServer('jest-direct', { noWatchCache: true });

  test('history that is gone makes the watches begin anew', () => expectToSurviveCompaction(site));
});
