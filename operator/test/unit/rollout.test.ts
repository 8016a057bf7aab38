/** How many pods each revision has, in every world that one may be in. */
import { bounds } from '../../src/rollout/bounds.ts';
import { forgotten } from '../../src/rollout/history.ts';
import { type Next, nextReplicas, type Revision, type Wanted } from '../../src/rollout/next-replicas.ts';

const RETAIN = { forMs: 900_000, replicas: 1 };
const NOW = 1_000_000;

const wants = (id: string, replicas: number, more: Partial<Wanted> = {}): Wanted => ({
  ...{ id, replicas, maxSurge: '25%', maxUnavailable: 0, isPaused: false, retain: RETAIN },
  ...more,
});

const revision = (id: string, number: number, replicas: number, more: Partial<Revision> = {}): Revision => ({
  ...{ id, number, replicas, available: replicas, wasComplete: true, canRest: true },
  ...more,
});

/** `A:4 B:1/2` is 4 pods of A, all available, and 2 of B, of which 1 is; `A:1z` rests. */
const told = ({ revisions }: Pick<Next, 'revisions'>) =>
  revisions
    .map(({ id, replicas, available, retiredMs }) => {
      const rest = retiredMs === undefined ? '' : 'z';
      return `${id}:${available === replicas ? '' : `${available}/`}${replicas}${rest}`;
    })
    .toSorted()
    .join(' ');

/** A cluster whose pods of some revisions never become available. */
class Cluster {
  now = NOW;
  all: Revision[] = [];
  readonly broken = new Set<string>();
  /** So many pods have a place; which those are, by revision. */
  room = Number.POSITIVE_INFINITY;
  readonly places = new Map<string, number>();
  /** Of all states since the last look: the fewest available pods that get requests, and the most pods. */
  least = Number.POSITIVE_INFINITY;
  most = 0;

  next(wanted: Wanted): Next {
    this.place();
    const target = this.all.find(({ id }) => id === wanted.id);
    const withoutRoom = target ? target.replicas - this.#placesOf(target) : 0;
    return nextReplicas(this.all, { ...wanted, withoutRoom }, this.now);
  }

  #placesOf({ id, replicas }: Revision): number {
    return Math.min(replicas, this.places.get(id) ?? 0);
  }

  /** Pods get places as long as there are some. */
  place(): void {
    for (const one of this.all) this.places.set(one.id, this.#placesOf(one));
    const taken = () => [...this.places.values()].reduce((sum, count) => sum + count, 0);
    for (const { id, replicas } of this.all) {
      const count = this.places.get(id) ?? 0;
      this.places.set(id, count + Math.max(0, Math.min(replicas - count, this.room - taken())));
    }
  }

  /** What the operator does once. With `writes` it is killed after so many of them. */
  operate(wanted: Wanted, writes = Number.POSITIVE_INFINITY): Next {
    const next = this.next(wanted);
    for (const one of next.revisions.slice(0, writes)) {
      const before = this.all.find(({ id }) => id === one.id);
      const available = Math.min(before?.available ?? 0, one.replicas);
      this.all = [...this.all.filter(({ id }) => id !== one.id), { ...one, available }];
      this.look();
    }
    return next;
  }

  /** One pod of each revision more becomes available, or of these. */
  start(ids = this.all.map(({ id }) => id)): void {
    this.place();
    this.all = this.all.map((one) => {
      const may = ids.includes(one.id) && !this.broken.has(one.id) && one.available < this.#placesOf(one);
      return may ? { ...one, available: one.available + 1 } : one;
    });
    this.look();
  }

  look(): void {
    const serving = this.all.filter(({ retiredMs }) => retiredMs === undefined);
    this.least = Math.min(
      this.least,
      serving.reduce((sum, { available }) => sum + available, 0),
    );
    this.most = Math.max(
      this.most,
      this.all.reduce((sum, { replicas }) => sum + replicas, 0),
    );
  }

  /** Until nothing changes any more. */
  settle(wanted: Wanted, writes?: (round: number) => number): Next {
    for (let round = 0; ; round += 1) {
      const before = JSON.stringify(this.all);
      this.operate(wanted, writes?.(round));
      this.start();
      const isKilled = writes && round < 40;
      if (JSON.stringify(this.all) === before && !isKilled) return this.next(wanted);
      if (round > 500) throw new Error(`it never settles: ${told({ revisions: this.all })}`);
    }
  }

  watch(): void {
    this.least = Number.POSITIVE_INFINITY;
    this.most = 0;
  }
}

/** With a revision A that has all of its pods. */
function running(replicas = 4): Cluster {
  const cluster = new Cluster();
  cluster.settle(wants('A', replicas));
  cluster.watch();
  return cluster;
}

describe('bounds are those of a Deployment', () => {
  test.each([
    [10, '25%', '25%', 3, 2],
    [1, '25%', 0, 1, 0],
    [3, 2, 1, 2, 1],
    [4, '0%', '0%', 0, 1],
    [2, 0, 5, 0, 2],
  ])('%d pods, %s, %s: %d and %d', (replicas, maxSurge, maxUnavailable, surge, unavailable) =>
    expect(bounds({ replicas, maxSurge, maxUnavailable })).toEqual({ surge, unavailable }),
  );
});

describe('one step', () => {
  test.each<[what: string, all: Revision[], wanted: Wanted, after: string, phase: string]>([
    ['the first revision is there at once', [], wants('A', 4), 'A:0/4', 'Rolling'],
    ['nothing to do', [revision('A', 1, 4)], wants('A', 4), 'A:4', 'Complete'],
    ['a pod is missing', [revision('A', 1, 4, { available: 3 })], wants('A', 4), 'A:3/4', 'Complete'],
    ['more pods', [revision('A', 1, 4)], wants('A', 9), 'A:4/9', 'Complete'],
    ['fewer pods', [revision('A', 1, 4)], wants('A', 2), 'A:2', 'Complete'],
    ['none', [revision('A', 1, 4)], wants('A', 0), 'A:0', 'Complete'],
    ['a change: surge, and one that will be kept', [revision('A', 1, 4)], wants('B', 4), 'A:4 B:0/2', 'Rolling'],
    [
      'as many old ones go as new ones are there',
      [revision('A', 1, 4), revision('B', 2, 2, { available: 1, wasComplete: false })],
      wants('B', 4),
      'A:3 B:1/2',
      'Rolling',
    ],
    [
      'all new ones are there: the one before rests',
      [revision('A', 1, 2), revision('B', 2, 4, { wasComplete: false })],
      wants('B', 4),
      'A:1z B:4',
      'Complete',
    ],
    [
      'the rest is over',
      [revision('A', 1, 1, { retiredMs: NOW - RETAIN.forMs }), revision('B', 2, 4)],
      wants('B', 4),
      'A:0z B:4',
      'Complete',
    ],
    [
      'back to one that rests: all of it at once',
      [revision('A', 1, 1, { retiredMs: NOW }), revision('B', 2, 4)],
      wants('A', 4),
      'A:1/4 B:3',
      'Rolling',
    ],
    [
      'back from one that never became ready',
      [revision('A', 1, 4), revision('B', 2, 2, { available: 0, wasComplete: false })],
      wants('A', 4),
      'A:4 B:0z',
      'Complete',
    ],
    [
      'pods that cannot rest end',
      [revision('A', 1, 2, { canRest: false }), revision('B', 2, 4, { wasComplete: false })],
      wants('B', 4),
      'A:0z B:4',
      'Complete',
    ],
    [
      'nobody wants any to be kept',
      [revision('A', 1, 2), revision('B', 2, 4)],
      wants('B', 4, { retain: { forMs: 0, replicas: 1 } }),
      'A:0z B:4',
      'Complete',
    ],
    [
      'a third revision: the second, of which nobody knows anything, goes first',
      [revision('A', 1, 3), revision('B', 2, 2, { wasComplete: false })],
      wants('C', 4),
      'A:3 B:1 C:0/1',
      'Rolling',
    ],
    [
      'more pods while the new ones do not become ready: old ones',
      [revision('A', 1, 4), revision('B', 2, 2, { available: 0, wasComplete: false })],
      wants('B', 12),
      'A:4/10 B:0/6',
      'Rolling',
    ],
    [
      'fewer pods in the middle',
      [revision('A', 1, 8), revision('B', 2, 3, { wasComplete: false })],
      wants('B', 4),
      'A:1 B:3',
      'Rolling',
    ],
    ['paused: a change waits', [revision('A', 1, 4)], wants('B', 4, { isPaused: true }), 'A:4 B:0', 'Paused'],
    [
      'paused in the middle, new ones find no room',
      [revision('A', 1, 4), revision('B', 2, 2, { available: 0, wasComplete: false })],
      wants('B', 4, { isPaused: true, withoutRoom: 2 }),
      'A:4 B:0/2',
      'Paused',
    ],
    [
      'paused in the middle, more pods: of those that are well',
      [revision('A', 1, 3), revision('B', 2, 2, { available: 0, wasComplete: false })],
      wants('B', 8, { isPaused: true }),
      'A:3/6 B:0/2',
      'Paused',
    ],
    [
      'paused in the middle, fewer pods',
      [revision('A', 1, 3), revision('B', 2, 2, { available: 1, wasComplete: false })],
      wants('B', 2, { isPaused: true }),
      'A:3 B:1',
      'Paused',
    ],
    [
      'paused in the middle, none',
      [revision('A', 1, 3), revision('B', 2, 2, { wasComplete: false })],
      wants('B', 0, { isPaused: true, maxSurge: 1 }),
      'A:0 B:0',
      'Paused',
    ],
    [
      'paused, but nothing is there: somebody has deleted it',
      [revision('A', 1, 1, { retiredMs: NOW })],
      wants('B', 4, { isPaused: true }),
      'A:1z B:0/4',
      'Rolling',
    ],
  ])('%s', (_what, all, wanted, after, phase) => {
    const next = nextReplicas(all, wanted, NOW);
    expect([told(next), next.phase]).toEqual([after, phase]);
  });

  test('a revision that is asked for again becomes the newest', () => {
    const all = [revision('A', 1, 1, { retiredMs: NOW }), revision('B', 2, 4)];
    const numbers = nextReplicas(all, wants('A', 4), NOW).revisions.map(({ id, number }) => [id, number]);
    expect(numbers).toEqual([
      ['A', 3],
      ['B', 2],
    ]);
  });

  test('the time at which a rest ends is told', () => {
    const all = [revision('A', 1, 1, { retiredMs: NOW - 10 }), revision('B', 2, 4)];
    expect(nextReplicas(all, wants('B', 4), NOW).againMs).toBe(NOW - 10 + RETAIN.forMs);
    expect(nextReplicas([revision('B', 2, 4)], wants('B', 4), NOW).againMs).toBeUndefined();
  });
});

const SHAPES: [replicas: number, maxSurge: number | string, maxUnavailable: number | string, kept: number][] = [
  [1, '25%', 0, 1],
  [2, 1, 0, 1],
  [4, '25%', 0, 0],
  [4, 0, 1, 1],
  [10, '25%', '25%', 3],
  [10, '100%', 0, 10],
];

describe.each(SHAPES)('%d pods, surge %s, unavailable %s, %d kept', (replicas, maxSurge, maxUnavailable, kept) => {
  const shape = { maxSurge, maxUnavailable, retain: { ...RETAIN, replicas: kept } };
  const to = (id: string, more: Partial<Wanted> = {}) => wants(id, replicas, { ...shape, ...more });
  const { surge, unavailable } = bounds({ replicas, maxSurge, maxUnavailable });
  const rest = Math.min(kept, replicas);

  test('a change keeps within the bounds, and leaves the one before for a while', () => {
    const cluster = running(replicas);
    cluster.settle(to('B'));
    expect(cluster.least).toBeGreaterThanOrEqual(replicas - unavailable);
    expect(cluster.most).toBeLessThanOrEqual(replicas + surge + rest);
    expect(told({ revisions: cluster.all })).toBe(`A:${rest}z B:${replicas}`);
    cluster.now += RETAIN.forMs;
    cluster.settle(to('B'));
    expect(told({ revisions: cluster.all })).toBe(`A:0z B:${replicas}`);
  });

  test('one that never becomes ready stops there, and the way back touches no old pod', () => {
    const cluster = running(replicas);
    cluster.broken.add('B');
    expect(cluster.settle(to('B')).phase).toBe('Rolling');
    expect(cluster.least).toBeGreaterThanOrEqual(replicas - unavailable);
    cluster.watch();
    expect(cluster.settle(to('A')).phase).toBe('Complete');
    expect(cluster.least).toBeGreaterThanOrEqual(replicas - unavailable);
    expect(told({ revisions: cluster.all })).toBe(`A:${replicas} B:0z`);
  });

  test('the way back from one that is all there', () => {
    const cluster = running(replicas);
    cluster.settle(to('B'));
    cluster.watch();
    cluster.settle(to('A'));
    expect(cluster.least).toBeGreaterThanOrEqual(replicas - unavailable);
    expect(told({ revisions: cluster.all })).toBe(`A:${replicas} B:${rest}z`);
  });

  test.each([0, 1, 2, 3, 5])('another change in the middle, after %d rounds', (rounds) => {
    const cluster = running(replicas);
    for (let n = 0; n < rounds; n += 1) {
      cluster.operate(to('B'));
      cluster.start();
    }
    expect(cluster.settle(to('C')).phase).toBe('Complete');
    expect(cluster.least).toBeGreaterThanOrEqual(replicas - unavailable);
    expect(cluster.most).toBeLessThanOrEqual(replicas + surge + 2 * rest);
    const [resting] = cluster.all.filter(({ id, replicas: pods }) => id !== 'C' && pods > 0);
    expect(resting?.id).toBe(rest === 0 ? undefined : isComplete(cluster, 'B') ? 'B' : 'A');
  });

  test.each([0, 1, 2])('an operator that is killed after %d writes, again and again', (writes) => {
    const cluster = running(replicas);
    const next = cluster.settle(to('B'), (round) =>
      round % 2 === 0 && round < 30 ? writes : Number.POSITIVE_INFINITY,
    );
    expect(next.phase).toBe('Complete');
    expect(cluster.least).toBeGreaterThanOrEqual(replicas - unavailable);
    expect(cluster.most).toBeLessThanOrEqual(replicas + surge + rest);
  });

  test.each([0, 1, 3])('scaled in the middle, after %d rounds, up and down', (rounds) => {
    for (const count of [replicas * 3, Math.max(1, replicas - 2), 0]) {
      const cluster = running(replicas);
      for (let n = 0; n < rounds; n += 1) {
        cluster.operate(to('B'));
        cluster.start();
      }
      expect(cluster.settle(to('B', { replicas: count })).phase).toBe('Complete');
      expect(cluster.all.find(({ id }) => id === 'B')?.replicas).toBe(count);
      expect(cluster.least).toBeGreaterThanOrEqual(Math.min(replicas, count) - unavailable);
    }
  });

  test('scaled up while the new revision never becomes ready: the old one grows', () => {
    const cluster = running(replicas);
    cluster.broken.add('B');
    cluster.settle(to('B'));
    cluster.settle(to('B', { replicas: replicas * 3 }));
    const { surge: most, unavailable: less } = bounds({ replicas: replicas * 3, maxSurge, maxUnavailable });
    const available = cluster.all.reduce((sum, one) => sum + one.available, 0);
    expect(available).toBeGreaterThanOrEqual(replicas * 3 - less - most - rest);
    expect(available).toBeGreaterThan(replicas);
  });

  test('without room for what is kept it ends all the same, and so does the way back', () => {
    const cluster = running(replicas);
    cluster.room = replicas + surge;
    for (const id of ['B', 'A']) {
      cluster.watch();
      expect(cluster.settle(to(id)).phase).toBe('Complete');
      expect(cluster.all.find((one) => one.id === id)?.available).toBe(replicas);
      expect(cluster.least).toBeGreaterThanOrEqual(replicas - unavailable);
    }
  });

  test('more pods than there is room for beside what rests: that goes', () => {
    const cluster = running(replicas);
    cluster.settle(to('B'));
    cluster.room = replicas + rest;
    cluster.settle(to('B', { replicas: replicas + rest }));
    expect(told({ revisions: cluster.all })).toBe(`A:0z B:${replicas + rest}`);
  });

  test('a pause in the middle holds it, and it goes on after', () => {
    const cluster = running(replicas);
    cluster.operate(to('B'));
    const before = told({ revisions: cluster.all });
    const replicasBefore = cluster.all.map((one) => one.replicas);
    cluster.settle(to('B', { isPaused: true }));
    expect([before, cluster.all.map((one) => one.replicas)]).toEqual([before, replicasBefore]);
    expect(cluster.settle(to('B')).phase).toBe('Complete');
    expect(cluster.least).toBeGreaterThanOrEqual(replicas - unavailable);
  });
});

function isComplete({ all }: Cluster, id: string): boolean {
  return all.find((one) => one.id === id)?.wasComplete === true;
}

describe('what is remembered', () => {
  const gone = (id: string, number: number, more: object = {}) => ({
    ...revision(id, number, 0, { retiredMs: 1, ...more }),
    pods: 0,
  });

  test('two, and first those that were all there', () => {
    expect(forgotten([gone('A', 1), gone('B', 2)])).toEqual([]);
    expect(forgotten([gone('A', 1), gone('B', 2), gone('C', 3)])).toEqual(['A']);
    const failed = { wasComplete: false };
    expect(forgotten([gone('A', 1), gone('B', 2, failed), gone('C', 3, failed)])).toEqual(['B']);
  });

  test('nothing that has pods, or may get some', () => {
    const [b, c] = [gone('B', 2), gone('C', 3)];
    expect(forgotten([{ ...gone('A', 1), pods: 1 }, b, c])).toEqual([]);
    expect(forgotten([{ ...gone('A', 1), replicas: 1 }, b, c])).toEqual([]);
    expect(forgotten([gone('A', 1, { retiredMs: undefined }), b, c])).toEqual([]);
  });
});
