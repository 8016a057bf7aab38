/** Who is given a turn, and what the status says of it. */
import { progressing, ready, stalled } from '../../src/api/conditions.ts';
import type { RenderService, RenderServiceStatus } from '../../src/api/resource.ts';
import { DataPlane } from '../../src/controller/data-plane.ts';
import { type PodsNow, standingOf } from '../../src/controller/data-plane-standing.ts';
import type { Standing } from '../../src/turns/turns.ts';
import { parseWindow } from '../../src/turns/window.ts';

const PAUSE_MS = 60_000;
const TURN = '2026-01-05T12:00:00Z';
const turnMs = Date.parse(TURN);
const waits = { isWaiting: true, isHealthy: true, wasRenewed: false, hadTurn: false, hasFailed: false };
const isThere = { ...waits, isWaiting: false };
const rolls = { ...isThere, isHealthy: false, wasRenewed: true, hadTurn: true };

/** The queue with its services, and a clock that one sets. */
function world(keys: string[], { window = '', maxConcurrent = 1 } = {}) {
  const state = { nowMs: turnMs, obstacle: undefined as string | undefined, looked: [] as string[], keys };
  const dataPlane = new DataPlane({
    pace: { maxConcurrent, pauseMs: PAUSE_MS },
    window: parseWindow(window),
    keys: () => state.keys,
    obstacle: () => state.obstacle,
    onTurn: (key) => state.looked.push(key),
    nowMs: () => state.nowMs,
  });
  const looked = () => state.looked.splice(0);
  return { state, dataPlane, looked };
}

describe('the queue', () => {
  test('gives nobody a turn before it knows how all stand', () => {
    const { dataPlane, looked } = world(['n/a', 'n/b']);
    dataPlane.report('n/a', waits);
    expect(dataPlane.isTurnOf('n/a')).toBe(false);
    dataPlane.report('n/b', rolls);
    expect(dataPlane.isTurnOf('n/a')).toBe(false);
    dataPlane.report('n/b', isThere);
    expect(looked()).toContain('n/a');
    expect(dataPlane.isTurnOf('n/a')).toBe(true);
    dataPlane.stop();
  });

  test('lets all look again once it knows who holds them', () => {
    const { dataPlane, looked } = world(['n/a', 'n/b', 'n/c']);
    for (const key of ['n/a', 'n/b']) dataPlane.report(key, waits);
    expect(dataPlane.isKnown).toBe(false);
    looked();
    dataPlane.report('n/c', isThere);
    expect(dataPlane.isKnown).toBe(true);
    expect(looked().sort()).toEqual(['n/a', 'n/b']);
    dataPlane.stop();
  });

  test('knows enough of one whose reconciles fail', () => {
    const { dataPlane } = world(['n/a', 'n/b']);
    dataPlane.report('n/a', waits);
    dataPlane.stopped('n/b', false);
    expect(dataPlane.isTurnOf('n/a')).toBe(true);
    dataPlane.stop();
  });

  test('two that ask at a time do not both get the one turn, and who got it has it until its pods are written', () => {
    const { dataPlane } = world(['n/a', 'n/b']);
    for (const key of ['n/a', 'n/b']) dataPlane.report(key, waits);
    expect([dataPlane.isTurnOf('n/a'), dataPlane.isTurnOf('n/b'), dataPlane.isTurnOf('n/a')]).toEqual([
      true,
      false,
      true,
    ]);
    dataPlane.stopped('n/a', false);
    expect([dataPlane.isTurnOf('n/a'), dataPlane.isTurnOf('n/b')]).toEqual([true, false]);
    dataPlane.report('n/a', { ...rolls, isHealthy: true, healthySinceMs: turnMs - PAUSE_MS });
    expect(dataPlane.isTurnOf('n/b')).toBe(true);
    dataPlane.stop();
  });

  test('new pods that are refused hold the others, until its user has changed something', () => {
    const { dataPlane, looked } = world(['n/a', 'n/b', 'n/c']);
    for (const key of ['n/a', 'n/b', 'n/c']) dataPlane.report(key, waits);
    expect(dataPlane.isTurnOf('n/a')).toBe(true);
    looked();
    dataPlane.stopped('n/a', true);
    expect(dataPlane.whyNot()).toEqual({ heldBy: 'n/a' });
    expect(dataPlane.figures).toEqual({ waiting: 3, held: 1 });
    expect(looked().sort()).toEqual(['n/a', 'n/b', 'n/c']);
    expect(dataPlane.isTurnOf('n/b')).toBe(false);
    dataPlane.report('n/a', isThere);
    expect(dataPlane.whyNot()).toEqual({});
    expect(dataPlane.isTurnOf('n/b')).toBe(true);
    dataPlane.stop();
  });

  test('one that is gone hinders nobody', () => {
    const { state, dataPlane, looked } = world(['n/a', 'n/b']);
    dataPlane.report('n/a', rolls);
    dataPlane.report('n/b', waits);
    state.keys = ['n/b'];
    looked();
    dataPlane.forget('n/a');
    expect(looked()).toEqual(['n/b']);
    expect(dataPlane.isTurnOf('n/b')).toBe(true);
    dataPlane.stop();
  });

  test('a closed window, and an outdated definition, are said', () => {
    const { state, dataPlane } = world(['n/a'], { window: '22:00-04:00' });
    dataPlane.report('n/a', waits);
    expect([dataPlane.isTurnOf('n/a'), dataPlane.whyNot()]).toEqual([false, { obstacle: 'the window is closed' }]);
    state.nowMs = Date.parse('2026-01-05T22:00:00Z');
    state.obstacle = 'outdated';
    expect([dataPlane.isTurnOf('n/a'), dataPlane.whyNot()]).toEqual([false, { obstacle: 'outdated' }]);
    state.obstacle = undefined;
    expect([dataPlane.isTurnOf('n/a'), dataPlane.whyNot()]).toEqual([true, {}]);
    dataPlane.stop();
  });
});

describe('how a service stands', () => {
  const service = (dataPlane: string) => ({ spec: { rollout: { dataPlane } } }) as unknown as RenderService;
  const kept: PodsNow = {
    renderService: service('Staged'),
    change: 'kept',
    renewed: undefined,
    isHeld: false,
    hasCanary: false,
  };
  const after: PodsNow = { ...kept, change: 'same', renewed: TURN };
  const healthy = ready(2);
  const rolling = progressing('...', true);
  const dead = stalled('ProgressDeadlineExceeded', '...', 2);
  /** What the status says so far of DataPlaneCurrent. */
  const said = (status: string, lastTransitionTime: string) =>
    ({ conditions: [{ type: 'DataPlaneCurrent', status, lastTransitionTime }] }) as unknown as RenderServiceStatus;

  function look(
    podsNow: PodsNow,
    drafts = healthy,
    status?: RenderServiceStatus,
    agoMs = 0,
    whyNot = {},
    proxyEnds = false,
  ): [reason: string, standing: Partial<Standing>] {
    const circumstances = { pauseMs: PAUSE_MS, nowMs: turnMs + agoMs, whyNot: () => whyNot, proxyEnds };
    const { standing, condition } = standingOf({ ...(status && { status }) }, podsNow, drafts, circumstances);
    return [condition.reason, standing];
  }

  test('before its turn', () => {
    expect(look(kept)).toEqual(['Waiting', waits]);
    expect(look({ ...kept, renewed: TURN })).toEqual(['Waiting', { ...waits, wasRenewed: true }]);
    expect(look(kept, healthy, undefined, 0, { heldBy: 'n/z' })[0]).toBe('Held');
    expect(look({ ...kept, renderService: service('WithNextChange') })).toEqual(['WithNextChange', isThere]);
  });

  test('without a turn', () => {
    expect(look({ ...kept, change: 'made' }, dead)).toEqual(['UpToDate', { ...isThere, isHealthy: false }]);
  });

  test('after its turn: on the way, healthy since when, over', () => {
    expect(look({ ...after, change: 'renewed' }, rolling)).toEqual(['Rolling', rolls]);
    const fresh = { ...rolls, isHealthy: true, healthySinceMs: turnMs + 5_000 };
    expect(look(after, healthy, said('False', TURN), 5_000)).toEqual(['UpToDate', fresh]);
    const since = said('True', '2026-01-05T12:00:05Z');
    expect(look(after, healthy, since, 30_000)).toEqual(['UpToDate', fresh]);
    // Within the pause it has to stay healthy, behind it not.
    expect(look(after, rolling, since, 30_000)).toEqual(['Rolling', rolls]);
    expect(look(after, dead, since, 5_000 + PAUSE_MS)).toEqual(['UpToDate', { ...fresh, isHealthy: false }]);
  });

  test('after its turn it may come to nothing', () => {
    expect(look(after, dead, said('False', TURN))).toEqual(['Failed', { ...rolls, hasFailed: true }]);
  });

  test('whose workers or proxies end again and again has failed, whatever its Deployment says between two ends', () => {
    const loop = { type: 'WorkersHealthy' as const, status: 'False' as const, reason: 'CrashLoop', message: '' };
    const failed = ['Failed', { ...rolls, hasFailed: true }];
    expect(look(after, [...healthy, loop])).toEqual(failed);
    expect(look(after, healthy, said('True', TURN), 1_000, {}, true)).toEqual(failed);
    expect(look(after, rolling, undefined, 0, {}, true)).toEqual(failed);
    // Before its turn that is what it is ill of.
    expect(look(kept, healthy, undefined, 0, {}, true)).toEqual(['Waiting', { ...waits, isHealthy: false }]);
  });

  test('a pause in the middle of it holds nobody else, unless the pods that have come are ill', () => {
    const held = { ...after, isHeld: true };
    const resting = { ...rolls, hadTurn: false };
    expect(look(held, rolling)).toEqual(['Paused', resting]);
    // For however long.
    expect(look(held, rolling, said('False', TURN), 24 * 3_600_000)).toEqual(['Paused', resting]);
    expect(look(held, rolling, undefined, 0, {}, true)).toEqual(['Failed', { ...rolls, hasFailed: true }]);
    expect(look(after, rolling)).toEqual(['Rolling', rolls]);
  });

  test('a turn that takes for ever has failed, be its pods ready every other minute; over is over', () => {
    const hour = 3_600_000;
    expect(look(after, rolling, said('False', TURN), hour / 3)[0]).toBe('Rolling');
    const late = look(after, rolling, said('False', TURN), hour);
    expect(late).toEqual(['Failed', expect.objectContaining({ hasFailed: true })]);
    // Its time runs from here on.
    const again = look(after, healthy, said('True', '2026-01-05T13:00:00Z'), hour + PAUSE_MS / 2);
    expect(again).toEqual(['UpToDate', expect.objectContaining({ hasFailed: true, healthySinceMs: turnMs + hour })]);
    const over = look(after, healthy, said('True', '2026-01-05T13:00:00Z'), hour + PAUSE_MS);
    expect(over).toEqual(['UpToDate', expect.objectContaining({ hasFailed: false })]);
  });

  test('what the status said of the pods before says nothing of these', () => {
    expect(look(after, healthy, said('True', '2026-01-05T11:00:00Z'))).toEqual([
      'Rolling',
      { ...rolls, isHealthy: true },
    ]);
  });
});
