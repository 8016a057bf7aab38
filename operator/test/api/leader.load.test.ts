/**
 * Two operators, one that writes: how soon the other one takes over.
 *
 * A load test: it waits for a Lease of 15 s, and asserts how long a takeover takes.
 */
import { eventually } from '../support/eventually.ts';
import { figure } from '../support/figure.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';
import { holder, writes } from './leader.ts';

/** What the product promises for a leader that dies without a word. */
const TAKEOVER_LIMIT_MS = 20_000;

/** RenderServices that one operator works on at a time, by default. */
const CALLS_UNDER_WAY_MAX = 4;

let world: World;
let leader: OperatorProcess;
let standby: OperatorProcess;
let sequence = 0;

/** A namespace of its own per test: a Lease of the test before must not matter. */
beforeEach(async () => {
  sequence += 1;
  world = await World.create(sharedServer(), `leader-load-${sequence}`);
  leader = await world.startOperator('operator-a');
  standby = await OperatorProcess.start(world.settings('operator-b'));
});

afterEach(() => OperatorProcess.killAll());

test('a killed leader is replaced within 20 s, and its work goes on', async () => {
  await leader.kill();
  const killedAt = performance.now();
  await world.createRenderService('shop');
  await standby.untilLeading(TAKEOVER_LIMIT_MS);
  figure(
    'time until a killed leader is replaced',
    (performance.now() - killedAt) / 1000,
    's',
    `< ${TAKEOVER_LIMIT_MS / 1000} s`,
  );
  await world.untilApplied('shop');
  const { spec } = await world.get('Lease', 'corelane');
  expect(spec).toMatchObject({ holderIdentity: 'operator-b', leaseTransitions: 1 });
});

test('a leader that finds the Lease taken stops at once, with 1', async () => {
  await world.createRenderService('shop');
  await world.untilApplied('shop');
  await standby.kill();
  const now = new Date().toISOString().replace('Z', '000Z');
  await world.admin.patch(world.path('Lease', 'corelane'), {
    spec: { holderIdentity: 'somebody-else', acquireTime: now, renewTime: now },
  });
  expect(await leader.exitCode(TAKEOVER_LIMIT_MS)).toBe(1);
  expect(await holder(world)).toBe('somebody-else');
});

test('a leader that hangs in the middle of work for longer than its Lease does not go on when it wakes up', async () => {
  const names = Array.from({ length: 20 }, (_unused, index) => `shop-${index}`);
  await Promise.all(names.map((name) => world.createRenderService(name, { replicas: 0 })));
  await eventually('the leader is at work', async () => expect(await writes(leader)).toBeGreaterThan(0), {
    everyMs: 10,
  });
  leader.pause();
  await standby.untilLeading(TAKEOVER_LIMIT_MS);
  const wokenAt = new Date().toISOString();
  leader.continue();
  expect(await leader.exitCode(TAKEOVER_LIMIT_MS)).toBe(1);
  // Only answers to calls that were under way when it stopped may still come in.
  const written = leader.log.split('\n').filter((line) => line.includes('"msg":"written"'));
  const writtenAfterwards = written.filter((line) => JSON.parse(line).time > wokenAt);
  expect(written).not.toEqual([]);
  figure('writes of a frozen leader after it wakes up', writtenAfterwards.length, '', `<= ${CALLS_UNDER_WAY_MAX}`);
  expect(writtenAfterwards.length).toBeLessThanOrEqual(CALLS_UNDER_WAY_MAX);
  expect(await holder(world)).toBe('operator-b');
  await Promise.all(names.map((name) => world.untilApplied(name)));
});
