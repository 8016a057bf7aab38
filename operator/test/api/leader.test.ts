/** Two operators, one that writes: what happens when the leader goes, in whatever way. */
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';

/** What the product promises for a leader that dies without a word. */
const TAKEOVER_LIMIT_MS = 20_000;
/** A leader that says goodbye is replaced at the next try of the other, which comes every 2 s. */
const HANDOVER_LIMIT_MS = 6_000;

/** RenderServices that one operator works on at a time, by default. */
const CALLS_UNDER_WAY_MAX = 4;

let world: World;
let leader: OperatorProcess;
let standby: OperatorProcess;
let sequence = 0;

/** A namespace of its own per test: a Lease of the test before must not matter. */
beforeEach(async () => {
  sequence += 1;
  world = await World.create(sharedServer(), `leader-${sequence}`);
  leader = await world.startOperator('operator-a');
  standby = await OperatorProcess.start(world.settings('operator-b'));
});

afterEach(() => OperatorProcess.killAll());

/** Writes of a process to objects, its Lease left out. */
function writes(operator: OperatorProcess): Promise<number> {
  return operator.sum('corelane_operator_writes_total');
}

async function holder(): Promise<string> {
  return (await world.get('Lease', 'corelane')).spec.holderIdentity;
}

test('only the leader writes; the other is ready all the same', async () => {
  await world.createRenderService('shop');
  await world.untilApplied('shop');
  expect(await writes(leader)).toBeGreaterThan(0);
  expect(await standby.status('/readyz')).toBe(200);
  expect(await standby.isLeading()).toBe(false);
  expect(await standby.sum('corelane_operator_reconcile_duration_seconds_count')).toBe(0);
  expect(await writes(standby)).toBe(0);
  expect(await holder()).toBe('operator-a');
});

test('a killed leader is replaced within 20 s, and its work goes on', async () => {
  await leader.kill();
  await world.createRenderService('shop');
  await standby.untilLeading(TAKEOVER_LIMIT_MS);
  await world.untilApplied('shop');
  const { spec } = await world.get('Lease', 'corelane');
  expect(spec).toMatchObject({ holderIdentity: 'operator-b', leaseTransitions: 1 });
});

test('a leader that is asked to stop hands over in a few seconds and ends with 0', async () => {
  const started = performance.now();
  expect(await leader.stop()).toBe(0);
  await standby.untilLeading(HANDOVER_LIMIT_MS);
  expect(performance.now() - started).toBeLessThan(2 * HANDOVER_LIMIT_MS);
  await world.createRenderService('shop');
  await world.untilApplied('shop');
});

test("a leader that stops leaves a Lease that is nobody's, for the next one to take at once", async () => {
  await standby.kill();
  expect(await leader.stop()).toBe(0);
  const { spec } = await world.get('Lease', 'corelane');
  expect(spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
});

test('a standby that is asked to stop ends with 0 and leaves the Lease alone', async () => {
  expect(await standby.stop()).toBe(0);
  expect(await holder()).toBe('operator-a');
  expect(await leader.isLeading()).toBe(true);
});

test('a leader that is asked to stop in the middle of work leaves nothing half done', async () => {
  const names = Array.from({ length: 12 }, (_unused, index) => `shop-${index}`);
  await Promise.all(names.map((name) => world.createRenderService(name, { replicas: 0 })));
  await eventually('the leader is at work', async () => expect(await writes(leader)).toBeGreaterThan(0));
  expect(await leader.stop()).toBe(0);
  // Whatever the first process has begun it has finished: a RenderService has all of its objects or none.
  const versions = Object.keys(await world.resourceVersions());
  const standbyWrites = await writes(standby);
  const counts = names.map(
    (name) => versions.filter((key) => new RegExp(`/${name}(-peers|-[0-9a-f]{10})?$`).test(key)).length,
  );
  if (standbyWrites === 0) expect(counts.filter((count) => count !== 1 && count !== 8)).toEqual([]);
  await standby.untilLeading();
  await Promise.all(names.map((name) => world.untilApplied(name)));
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
  expect(await holder()).toBe('somebody-else');
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
  expect(writtenAfterwards.length).toBeLessThanOrEqual(CALLS_UNDER_WAY_MAX);
  expect(await holder()).toBe('operator-b');
  await Promise.all(names.map((name) => world.untilApplied(name)));
});

test('two operators under one name of the Lease in two namespaces do not know of each other', async () => {
  const other = await World.create(sharedServer(), `leader-${sequence}-other`);
  const operator = await other.startOperator('operator-a');
  expect(await leader.isLeading()).toBe(true);
  expect(await operator.isLeading()).toBe(true);
});
