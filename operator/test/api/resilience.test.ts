/** API servers restart, forget history and are away; the operator comes through without help and without noise. */
import { eventually } from '../support/eventually.ts';
import { CONTROLLERS } from '../support/global-setup.ts';
import { expectRecovery, expectToSurviveCompaction, spawnOperator, useServer } from './resilience.ts';

describe('with an API server with a watch cache', () => {
  const site = useServer('jest-cache', { controllers: CONTROLLERS });

  test('a restart of the API server passes', async () => {
    await site.server.stop();
    expect(await site.operator.status('/livez')).toBe(200);
    await site.server.comeBack();
    await expectRecovery(site);
  });

  test('history that is gone makes the watches begin anew', () => expectToSurviveCompaction(site));

  test('an operator that is started while the API server is away comes up when it is back', async () => {
    await site.operator.kill();
    await site.server.stop();
    const operator = await spawnOperator(site.world);
    site.operator = operator;
    await eventually('the process answers', async () => expect(await operator.status('/livez')).toBe(200));
    await eventually('it has tried in vain', async () => {
      expect(await operator.sum('corelane_operator_watch_errors_total')).toBeGreaterThan(0);
    });
    expect(await operator.status('/readyz')).toBe(503);
    await site.server.comeBack();
    await expectRecovery(site);
  });
});
