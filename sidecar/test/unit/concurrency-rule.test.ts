/** concurrency: Auto: which number comes out for which renders, and what changes it and what does not. */
import { Random } from '../../../operator/simulate/random.ts';
import {
  type Bounds,
  decide,
  type Figures,
  firstState,
  learn,
  measuredShares,
  type State,
} from '../../runtime/concurrency-rule.cjs';
import { busyShares } from '../../runtime/wait-ratio.cjs';
import { type Phases, render, SimulatedWorker } from './simulated-worker.ts';

const BOUNDS = { min: 1, max: 16 };

const MIXES: Record<string, (random: Random) => Phases> = {
  cpu: (random) => render(random, { cpuMs: 40 }),
  'cpu, one in ten takes ten times as long': (random) =>
    render(random, { cpuMs: random.fraction() < 0.9 ? 20 : 220, variation: 0.3 }),
  '70/30': (random) => render(random, { cpuMs: 40, waitMs: 17.1, waits: 2 }),
  '57/43, all alike': (random) => render(random, { cpuMs: 40, variation: 0, waitMs: 30, waitVariation: 0 }),
  '50/50': (random) => render(random, { cpuMs: 40, waitMs: 40, waits: 2 }),
  '30/70': (random) => render(random, { cpuMs: 40, waitMs: 93.3, waits: 3 }),
  '23/77, all alike': (random) => render(random, { cpuMs: 30, variation: 0, waitMs: 100, waitVariation: 0 }),
  'two sorts of pages': (random) =>
    random.fraction() < 0.7
      ? render(random, { cpuMs: 40, variation: 0.5 })
      : render(random, { cpuMs: 40, variation: 0.5, waitMs: 300, waits: 2 }),
  '5/95': (random) => render(random, { cpuMs: 10, waitMs: 190, waits: 3 }),
};

/** A worker and its rule, a second at a time. */
class Tuned {
  state: State;
  readonly limits: number[] = [];
  readonly worker: SimulatedWorker;
  readonly bounds: Bounds;
  #before: Figures;

  constructor(make: () => Phases, { gapMs, bounds = BOUNDS }: { gapMs?: () => number; bounds?: Bounds } = {}) {
    this.bounds = bounds;
    this.worker = new SimulatedWorker(bounds.max, make, gapMs);
    this.state = firstState(bounds);
    this.worker.limit = this.state.limit;
    this.#before = { timeMs: [], idleMs: [] };
  }

  seconds(count: number, holds?: { rise?: string; fall?: string }): this {
    for (let second = 0; second < count; second += 1) {
      this.worker.run(1000);
      const { timeMs, idleMs } = this.worker;
      const since = (now: number[], before: number[]) => now.map((ms, n) => ms - (before[n] ?? 0));
      this.state = learn(this.state, {
        timeMs: since(timeMs, this.#before.timeMs),
        idleMs: since(idleMs, this.#before.idleMs),
      });
      this.#before = { timeMs: [...timeMs], idleMs: [...idleMs] };
      this.state = decide(this.state, this.bounds, holds);
      this.worker.limit = this.state.limit;
      this.limits.push(this.state.limit);
    }
    return this;
  }

  /** Of the last seconds. */
  last(count: number): { least: number; most: number; changes: number } {
    const limits = this.limits.slice(-count);
    const changes = limits.filter((limit, index) => index > 0 && limit !== limits[index - 1]).length;
    return { least: Math.min(...limits), most: Math.max(...limits), changes };
  }
}

function tuned(mix: string, options: ConstructorParameters<typeof Tuned>[1] = {}, seed = 1): Tuned {
  const random = new Random(seed);
  return new Tuned(() => MIXES[mix]?.(random) ?? [], options);
}

describe('the share of the time that the CPU is busy', () => {
  test('with as much waiting as CPU', () => {
    const shares = busyShares(1, 4).map((share) => Math.round(100 * share));
    expect(shares).toEqual([0, 50, 80, 94, 98]);
  });

  test('without waiting one is enough', () => expect(busyShares(0, 2)).toEqual([0, 1, 1]));
});

test.each([
  ['cpu', 1, 1],
  ['cpu, one in ten takes ten times as long', 1, 1],
  ['70/30', 2, 4],
  // So regular that the waits of one are just as long as the CPU of the others.
  ['57/43, all alike', 2, 4],
  ['50/50', 3, 5],
  ['30/70', 5, 8],
  ['23/77, all alike', 5, 9],
  ['two sorts of pages', 4, 8],
  ['5/95', 16, 16],
])('%s: a queue that never ends leads to %d to %d, and stays there', (mix, least, most) => {
  for (const seed of [1, 2]) {
    const { least: lowest, most: highest } = tuned(mix, {}, seed).seconds(150).last(120);
    expect(lowest).toBeGreaterThanOrEqual(least);
    expect(highest).toBeLessThanOrEqual(most);
  }
});

test.each(['cpu', 'cpu, one in ten takes ten times as long'])(
  '%s: never more than one at a time, at any load',
  (mix) => {
    for (const meanMs of [45, 60, 100, 1000]) {
      const random = new Random(meanMs);
      const gapMs = () => random.exponential(meanMs);
      expect(tuned(mix, { gapMs }).seconds(300).worker.activeMax).toBe(1);
    }
  },
);

test.each([
  ['70/30', 0.96],
  ['50/50', 0.96],
  ['30/70', 0.95],
  ['23/77, all alike', 0.97],
  ['two sorts of pages', 0.95],
])('%s: within %d of what the best number for it renders', (mix, share) => {
  const seconds = 60;
  const fixed = Array.from({ length: BOUNDS.max }, (_unused, index) => {
    const random = new Random(5);
    const worker = new SimulatedWorker(BOUNDS.max, () => MIXES[mix]?.(random) ?? []);
    worker.limit = index + 1;
    worker.run(1000 * seconds);
    return worker.ended;
  });
  const auto = tuned(mix, {}, 5).seconds(seconds).worker.ended;
  expect(auto / Math.max(...fixed)).toBeGreaterThan(share);
});

test('it rises within seconds of work, at most to the double at a time', () => {
  const { limits } = tuned('23/77, all alike').seconds(6);
  expect(limits.slice(0, 3)).toEqual([2, 4, 8]);
});

test('a steady load changes it at most twice a minute', () => {
  for (const mix of ['70/30', '23/77, all alike', '57/43, all alike']) {
    const random = new Random(3);
    const gapMs = () => random.exponential(80);
    expect(tuned(mix, { gapMs }).seconds(360).last(300).changes).toBeLessThanOrEqual(10);
  }
});

test('a dependency that is ten times slower opens more, one that hangs no more than max, and after it all is as before', () => {
  const random = new Random(2);
  let slower = 1;
  const fleet = new Tuned(() => {
    const phases = render(random, { cpuMs: 40, waitMs: 17.1, waits: 2 });
    return phases.map((ms, index) => (index % 2 === 1 ? slower * ms : ms));
  });
  expect(fleet.seconds(60).last(1).most).toBeLessThanOrEqual(4);
  slower = 10;
  expect(fleet.seconds(60).last(1).most).toBeGreaterThan(5);
  slower = 10_000;
  expect(fleet.seconds(60).last(1).most).toBe(BOUNDS.max);
  expect(fleet.worker.activeMax).toBe(BOUNDS.max);
  slower = 1;
  // Renders that hang end first; then what is remembered goes with the work.
  fleet.seconds(300);
  expect(fleet.last(60).most).toBeLessThanOrEqual(4);
});

test('a dependency that is suddenly slow opens far more within seconds, whatever is remembered', () => {
  const random = new Random(4);
  let slower = 1;
  const fleet = new Tuned(() => {
    const phases = render(random, { cpuMs: 40, waitMs: 17.1, waits: 2 });
    return phases.map((ms, index) => (index % 2 === 1 ? slower * ms : ms));
  });
  expect(fleet.seconds(60).last(1).most).toBeLessThanOrEqual(4);
  slower = 20;
  expect(fleet.seconds(4).last(1).most).toBeGreaterThanOrEqual(8);
});

describe('a dependency that is back', () => {
  /** A look at work with so many in progress. */
  const look = (state: State, level: number, ms: number, idle: number) => {
    const at = (value: number) => Array.from({ length: BOUNDS.max + 1 }, (_unused, n) => (n === level ? value : 0));
    return decide(learn(state, { timeMs: at(ms), idleMs: at(idle * ms) }), BOUNDS);
  };
  const slow = () => {
    let state = firstState(BOUNDS);
    for (let second = 0; second < 30; second += 1) state = look(state, 12, 1000, 0.6);
    return state;
  };

  test('is forgotten after some seconds of work', () => {
    let state = slow();
    expect(state.limit).toBe(BOUNDS.max);
    // 70 % busy with one: three are enough.
    let workMs = 0;
    for (; state.limit > 3 && workMs < 60_000; workMs += 400) state = look(state, 1, 400, 0.3);
    expect(workMs).toBeLessThan(9_500);
  });

  test('is not, while all places are taken: a busy loop looks the same whatever the requests are', () => {
    let state = slow();
    for (let second = 0; second < 5; second += 1) state = look(state, BOUNDS.max, 1000, 0);
    expect(state.limit).toBe(BOUNDS.max);
  });
});

test('an idle night teaches nothing', () => {
  const busy = tuned('30/70').seconds(60);
  const before = busy.state;
  let state = before;
  for (let second = 0; second < 36_000; second += 60) {
    state = decide(learn(state, { timeMs: [60_000], idleMs: [60_000] }), BOUNDS);
  }
  expect([state.limit, state.timeMs, state.idleMs]).toEqual([before.limit, before.timeMs, before.idleMs]);
});

test('less than a second of work decides nothing', () => {
  const fresh = { timeMs: [0, 900], idleMs: [0, 800] };
  expect(decide(learn(firstState(BOUNDS), fresh), BOUNDS)).toMatchObject({ limit: 1, waitRatio: undefined });
});

test('it goes down slowly: not in the first four seconds, then one by one', () => {
  const { limits } = (() => {
    const fleet = tuned('cpu');
    fleet.state = { ...fleet.state, limit: 4 };
    fleet.worker.limit = 4;
    return fleet.seconds(12);
  })();
  expect(limits).toEqual([4, 4, 4, 4, 3, 2, 1, 1, 1, 1, 1, 1]);
});

describe('what holds it', () => {
  test.each(['memory', 'cpu', 'inspector', 'abandoned'])('%s: it does not rise, and says so', (rise) => {
    const held = tuned('30/70').seconds(10, { rise });
    expect([held.last(10).most, held.state.heldBy]).toEqual([1, rise]);
    expect(held.seconds(10).state).toMatchObject({ limit: expect.any(Number), heldBy: undefined });
    expect(held.state.limit).toBeGreaterThan(4);
  });

  test('is not named where it would not rise anyway', () => {
    expect(tuned('cpu').seconds(10, { rise: 'memory' }).state.heldBy).toBeUndefined();
  });

  test('with hardly any memory left it falls by one a second, not below min', () => {
    const bounds = { min: 2, max: 16 };
    const full = tuned('30/70', { bounds }).seconds(30);
    const { limit } = full.state;
    const fall = 'the process has 95 % of its memory';
    expect(full.seconds(2, { rise: 'memory', fall }).state).toMatchObject({ limit: limit - 2, because: fall });
    expect(full.seconds(20, { rise: 'memory', fall }).state.limit).toBe(2);
  });
});

test.each([
  [{ min: 1, max: 1 }, 1, 1],
  [{ min: 3, max: 3 }, 3, 3],
  [{ min: 2, max: 5 }, 5, 5],
  [{ min: 1, max: 64 }, 24, 64],
])('never outside of %j', (bounds, least, most) => {
  const fleet = tuned('5/95', { bounds }).seconds(60);
  expect(fleet.last(1).most).toBeGreaterThanOrEqual(least);
  expect(fleet.worker.activeMax).toBeLessThanOrEqual(most);
  expect(Math.min(...fleet.limits)).toBeGreaterThanOrEqual(bounds.min);
});

test('a change has a reason that a person can check', () => {
  const first = tuned('57/43, all alike').seconds(1).state;
  expect(first.because).toMatch(/^with 1 in progress the event loop is idle for 4[0-9] % of the time$/);
  expect(measuredShares(first)).toEqual({ 1: 0.58 });
});
