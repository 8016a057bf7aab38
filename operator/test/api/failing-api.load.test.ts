/**
 * API servers that fail while RenderServices come, change and go, for many rounds, and a leader whose writes stay on
 * the way. `HOSTILE_SEED` repeats a run.
 *
 * A load test: it waits for back-offs of up to a minute, for calls and for a Lease of 15 s.
 */
import { rename } from 'node:fs/promises';
import { eventually } from '../support/eventually.ts';
import { figure } from '../support/figure.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { endHandOver, expectHandedOver, handOver } from './failing-handover.ts';
import {
  api,
  credential,
  end,
  plugin,
  prepare,
  testRounds,
  throughPlugin,
  throughProxy,
  world,
} from './failing-rounds.ts';

/** `HOSTILE_ROUNDS=300` takes seven minutes. */
const ROUNDS = Number(process.env.HOSTILE_ROUNDS ?? 50);
/** So often everything comes to rest, and is looked at. */
const ROUNDS_UNTIL_REST = 50;

describe('an API server that fails in many ways', () => {
  testRounds('failing-load', ROUNDS, ROUNDS_UNTIL_REST);

  test('all that can happen has happened', () => {
    expect(Object.keys(api.happened)).toHaveLength(17);
  });
});

describe('two operators, each behind an API server that fails', () => {
  afterEach(endHandOver);

  test.each(Array.from({ length: Math.max(1, ROUNDS / ROUNDS_UNTIL_REST) }, (_unused, index) => index))(
    'only the holder of the Lease writes, whether a leader is killed, stops or is cut off (run %i)',
    async (run) => {
      expectHandedOver(await handOver(`failing-handovers-${run}`, ['killed', 'stopped', 'cutOff'], run));
    },
  );
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

describe('a new leader', () => {
  afterEach(end);

  test('that cannot list RenderServices is not ready, does not lead, and does both once it can', async () => {
    await prepare('failing-lists');
    const leader = await world.startOperator('operator-a');
    const standby = await throughProxy('operator-b');
    await standby.untilReady();
    api.holds = (_method, path) => path.includes('/renderservices?');
    expect(await leader.stop()).toBe(0);
    await eventually('it says so', async () =>
      expect(await standby.page('/readyz')).toEqual({
        status: 503,
        text: expect.stringMatching(/^cannot list renderservices/),
      }),
    );
    expect((await world.get('Lease', 'corelane')).spec.holderIdentity).toBe('operator-b');
    expect(await standby.isLeading()).toBe(false);
    api.holds = () => false;
    await standby.untilLeading();
    await standby.untilReady();
    await world.createRenderService('shop');
    await world.untilApplied('shop');
  });
});

describe('credentials that fail for long', () => {
  afterEach(end);

  test('an exec plugin that hangs is ended after a minute, and the operator works once it is mended', async () => {
    await prepare('failing-plugin-minute');
    const operator = await throughPlugin(await plugin('exec sleep 3600'));
    await eventually('it says so', () => expect(operator.log).toContain('they have not come in time'));
    expect([await operator.status('/livez'), await operator.status('/readyz')]).toEqual([200, 503]);
    await plugin(`echo '${credential()}'`);
    await operator.untilReady();
    await operator.untilLeading();
    await world.createRenderService('shop');
    await world.untilApplied('shop');
    expect(operator.log).not.toMatch(/unhandled|uncaught/i);
  });

  test('a leader whose exec plugin fails for longer than its Lease ends, and a new process leads once it is mended', async () => {
    await prepare('failing-plugin-lease');
    const command = await plugin(`echo '${credential()}'`);
    const leader = await throughPlugin(command);
    await leader.untilReady();
    await leader.untilLeading();
    await rename(command, `${command}.away`);
    expect(await leader.exitCode(60_000)).toBe(1);
    expect(leader.log).toContain('"result":"lost"');
    expect(leader.log).toMatch(/no credentials from the kubeconfig's command .*ENOENT/);
    expect(leader.log).not.toMatch(/unhandled|uncaught/i);
    const next = await throughPlugin(command);
    await eventually('it says so', () => expect(next.log).toContain('ENOENT'));
    expect([await next.status('/livez'), await next.status('/readyz')]).toEqual([200, 503]);
    await rename(`${command}.away`, command);
    await next.untilReady();
    await next.untilLeading();
    await world.createRenderService('shop');
    await world.untilApplied('shop');
  });
});
