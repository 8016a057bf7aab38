/**
 * API servers that fail while RenderServices come, change and go, for many rounds, and a leader whose writes stay on
 * the way. `HOSTILE_SEED` repeats a run.
 *
 * A load test: it waits for back-offs of up to a minute, and for a Lease of 15 s.
 */
import { eventually } from '../support/eventually.ts';
import { figure } from '../support/figure.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { api, end, prepare, testRounds, throughProxy, world } from './failing-rounds.ts';

/** `HOSTILE_ROUNDS=300` takes seven minutes. */
const ROUNDS = Number(process.env.HOSTILE_ROUNDS ?? 50);
/** So often everything comes to rest, and is looked at. */
const ROUNDS_UNTIL_REST = 50;

describe('an API server that fails in many ways', () => {
  testRounds('failing-load', ROUNDS, ROUNDS_UNTIL_REST);

  test('all that can happen has happened', () => {
    expect(Object.keys(api.happened)).toHaveLength(16);
  });
});

describe('who leads', () => {
  afterEach(end);

  /** A lease is another one's after this time at the earliest, and its holder writes for two thirds of it. */
  const LEASE_MS = 15_000;

  test('what a leader has sent is over before another one leads', async () => {
    await prepare('failing-leader');
    const leader = await throughProxy('operator-a');
    await leader.untilReady();
    await leader.untilLeading();
    const names = ['one', 'two', 'three', 'four'];
    for (const name of names) await world.createRenderService(name);
    for (const name of names) await world.untilApplied(name);
    const standby = await OperatorProcess.start(world.settings('operator-b'));
    // The leader cannot renew, and what it writes from the middle of its time on stays on the way.
    api.holds = (method) => method !== 'GET';
    const renewed = Date.parse((await world.get('Lease', 'corelane')).spec.renewTime);
    await eventually('half of the time has passed', () => expect(Date.now() - renewed).toBeGreaterThan(LEASE_MS / 3));
    await eventually(
      'another one leads',
      async () => {
        const name = names.pop();
        if (name) await world.patchSpec(name, { service: { port: 8080 } });
        expect(await standby.isLeading()).toBe(true);
      },
      { everyMs: 1_000 },
    );
    const writes = api.held.filter(({ path }) => !path.includes('/leases/'));
    expect(writes).not.toEqual([]);
    expect(writes.filter(({ isGivenUp }) => !isGivenUp)).toEqual([]);
    const heldMs = Date.now() - renewed;
    figure('time from the last Lease renewal to the next leader', heldMs / 1000, 's', `>= ${LEASE_MS / 1000} s`);
    expect(heldMs).toBeGreaterThanOrEqual(LEASE_MS);
  });
});
