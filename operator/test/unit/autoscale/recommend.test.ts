/** The recommender in tables of worked numbers. Policy: 20 / +3 / 15 / -1 unless a row says otherwise. */
import { type ScalingSpec, scaling } from '../../../src/api/scaling.ts';
import { asOfPods, measure, type PodReading, type Sample } from '../../../src/autoscale/measure.ts';
import { type Policy, policyOf } from '../../../src/autoscale/policy.ts';
import { recommend, type State } from '../../../src/autoscale/recommend.ts';

const S = 1000;
const NOW = 10_000 * S;
const PERIOD_S = 15;

function policy(spec: object = {}): Policy {
  return policyOf(scaling.parse({ maxReplicas: 33, ...spec }) as ScalingSpec);
}

/** Ten minutes of samples that end at `endMs`, one every 15 s; of `percents` the last stands last, the first lasts. */
function samples(percents: number[], { forS = 600, endMs = NOW, refused = 0, refusedAgo = 0 } = {}): Sample[] {
  const count = forS / PERIOD_S + 1;
  return Array.from({ length: count }, (_unused, index) => {
    const ratio = (percents[Math.max(0, percents.length - count + index)] ?? percents[0] ?? 0) / 100;
    const isRefusing = index === count - 1 - refusedAgo;
    const atMs = endMs - (count - 1 - index) * PERIOD_S * S;
    return { atMs, up: ratio, down: ratio, refused: isRefusing ? refused : 0, ready: 4, measured: 4 };
  });
}

interface Row {
  what: string;
  percents: number[];
  current: number;
  expected: [replicas: number, reason: string];
  spec?: object;
  state?: State;
  forS?: number;
  endMs?: number;
  refused?: number;
  /** Samples ago. */
  refusedAgo?: number;
  message?: string;
}

const steps = { cpu: { scaleUp: { steps: [{ abovePercent: 50, addReplicas: 10 }] } } };
const rows: Row[] = [
  // Thresholds
  {
    what: 'above 20 % three come',
    percents: [23.4],
    current: 12,
    expected: [15, 'AboveThreshold'],
    message: 'per-core CPU 23.4 % > 20 % for 60 s',
  },
  { what: 'at exactly 20 % none comes', percents: [20], current: 12, expected: [12, 'WithinBand'] },
  {
    what: 'below 15 % one goes: 14 % of 12 pods is 15.3 % of 11',
    percents: [14],
    current: 12,
    expected: [11, 'BelowThreshold'],
    message: 'per-core CPU 14 % < 15 % for 300 s',
  },
  { what: 'at exactly 15 % none goes', percents: [15], current: 12, expected: [12, 'WithinBand'] },
  { what: 'between the two nothing happens', percents: [17], current: 12, expected: [12, 'WithinBand'] },
  // Windows: the mean of the last 4 samples is (18 + 18 + 18 + 30) / 4 = 21 %
  { what: 'the mean over the window counts', percents: [18, 30], current: 12, expected: [15, 'AboveThreshold'] },
  { what: 'a peak that is over adds none', percents: [10, 90, 90, 12], current: 12, expected: [12, 'WithinBand'] },
  { what: 'a dip that is over removes none', percents: [5, 16], current: 12, expected: [12, 'WithinBand'] },
  // Dead band
  {
    what: 'of 3 pods at 14 % none goes: 2 would stand at 21 %',
    percents: [14],
    current: 3,
    expected: [3, 'DeadBand'],
    message: 'per-core CPU 14 % < 15 % for 300 s, but 2 pods would stand at 21 % > 20 %',
  },
  {
    what: 'of 4 pods at 14 % one goes: 3 stand at 18.7 %',
    percents: [14],
    current: 4,
    expected: [3, 'BelowThreshold'],
  },
  {
    what: 'of 6 pods at 10 % three may go, not four (5 wanted): 3 stand at 20 %',
    percents: [10],
    current: 6,
    spec: { minReplicas: 1, cpu: { scaleDown: { removeReplicas: 5 } } },
    expected: [3, 'BelowThreshold'],
  },
  // Several steps
  { what: 'at 40 % the first step counts', percents: [40], current: 12, spec: steps, expected: [15, 'AboveThreshold'] },
  { what: 'at 50 % still the first', percents: [50], current: 12, spec: steps, expected: [15, 'AboveThreshold'] },
  { what: 'at 51 % the second', percents: [51], current: 12, spec: steps, expected: [22, 'AboveThreshold'] },
  // Bounds
  { what: 'the maximum cuts', percents: [90], current: 32, expected: [33, 'AboveThreshold'] },
  { what: 'at the maximum it says so', percents: [90], current: 33, expected: [33, 'AtMaximum'] },
  { what: 'at the minimum it says so', percents: [1], current: 2, expected: [2, 'AtMinimum'] },
  {
    what: 'a step down ends at the minimum',
    percents: [1],
    current: 3,
    spec: { cpu: { scaleDown: { removeReplicas: 5 } } },
    expected: [2, 'BelowThreshold'],
  },
  {
    what: 'below the minimum it goes there at once',
    percents: [],
    forS: 0,
    current: 1,
    expected: [2, 'OutsideBounds'],
  },
  { what: 'above the maximum, too', percents: [90], current: 50, expected: [33, 'OutsideBounds'] },
  {
    what: 'min = max, high',
    percents: [90],
    current: 5,
    spec: { minReplicas: 5, maxReplicas: 5 },
    expected: [5, 'AtMaximum'],
  },
  {
    what: 'min = max, low',
    percents: [1],
    current: 5,
    spec: { minReplicas: 5, maxReplicas: 5 },
    expected: [5, 'AtMinimum'],
  },
  {
    what: 'min = max, elsewhere',
    percents: [17],
    current: 4,
    spec: { minReplicas: 5, maxReplicas: 5 },
    expected: [5, 'OutsideBounds'],
  },
  { what: 'replicas 0 switches scaling off', percents: [90], current: 0, expected: [0, 'ScaledToZero'] },
  // kubectl scale in between: the number that is there counts, whoever set it
  { what: 'after kubectl scale from 12 to 20 at 14 %', percents: [23, 14], current: 20, expected: [20, 'WithinBand'] },
  { what: 'after kubectl scale from 12 to 6 at 45 %', percents: [22, 45], current: 6, expected: [9, 'AboveThreshold'] },
  // Cooldowns
  {
    what: 'none comes 45 s after the last ones',
    percents: [30],
    current: 12,
    state: { lastUpMs: NOW - 45 * S },
    expected: [12, 'CoolingDown'],
    message: 'per-core CPU 30 % > 20 % for 60 s, but pods were added 45 s ago',
  },
  {
    what: 'some come after 60 s',
    percents: [30],
    current: 12,
    state: { lastUpMs: NOW - 60 * S },
    expected: [15, 'AboveThreshold'],
  },
  {
    what: 'a removal does not hold up an addition',
    percents: [30],
    current: 12,
    state: { lastDownMs: NOW - S },
    expected: [15, 'AboveThreshold'],
  },
  {
    what: 'none goes 45 s after an addition',
    percents: [10],
    current: 12,
    state: { lastUpMs: NOW - 45 * S },
    expected: [12, 'CoolingDown'],
  },
  {
    what: 'none goes 45 s after a removal',
    percents: [10],
    current: 12,
    state: { lastDownMs: NOW - 45 * S },
    expected: [12, 'CoolingDown'],
  },
  {
    what: 'one goes after 60 s',
    percents: [10],
    current: 12,
    state: { lastDownMs: NOW - 60 * S },
    expected: [11, 'BelowThreshold'],
  },
  // Queue
  {
    what: 'refused requests add pods at once',
    percents: [17],
    refused: 4,
    current: 12,
    expected: [15, 'QueueFull'],
    message: '4 requests were refused',
  },
  { what: 'also without a full window', percents: [17], forS: 0, refused: 1, current: 12, expected: [15, 'QueueFull'] },
  {
    what: 'the larger of queue and CPU counts',
    percents: [60],
    refused: 1,
    current: 12,
    spec: steps,
    expected: [22, 'AboveThreshold'],
  },
  {
    what: 'not again within 30 s',
    percents: [17],
    refused: 4,
    current: 12,
    state: { lastUpMs: NOW - 29 * S },
    expected: [12, 'CoolingDown'],
  },
  {
    what: 'again after 30 s, although CPU would wait 60',
    percents: [30],
    refused: 4,
    current: 12,
    state: { lastUpMs: NOW - 30 * S },
    expected: [15, 'QueueFull'],
  },
  {
    what: 'refused requests keep pods',
    percents: [5],
    refused: 4,
    current: 12,
    state: { lastUpMs: NOW - 10 * S },
    expected: [12, 'CoolingDown'],
  },
  {
    what: 'requests refused two minutes ago keep pods',
    percents: [5],
    refused: 4,
    refusedAgo: 8,
    current: 12,
    expected: [12, 'QueueFull'],
    message: 'stays at 12 although per-core CPU is low: 4 requests were refused in the last 300 s',
  },
  {
    what: 'requests refused six minutes ago do not',
    percents: [5],
    refused: 4,
    refusedAgo: 24,
    current: 12,
    expected: [11, 'BelowThreshold'],
  },
  {
    what: 'not where it is switched off',
    percents: [17],
    refused: 4,
    current: 12,
    spec: { queue: { enabled: false } },
    expected: [12, 'WithinBand'],
  },
  // Restart of the operator, and holes
  {
    what: 'after a restart it holds',
    percents: [90],
    forS: 45,
    current: 12,
    expected: [12, 'FillingWindow'],
    message: 'stays at 12 until it has measured for 60 s without a gap',
  },
  { what: 'until the window is full', percents: [90], forS: 60, current: 12, expected: [15, 'AboveThreshold'] },
  {
    what: 'for removals for 5 min',
    percents: [10],
    forS: 285,
    current: 12,
    expected: [12, 'FillingWindow'],
    message: 'stays at 12 until it has measured for 300 s without a gap',
  },
  { what: 'and then removes', percents: [10], forS: 300, current: 12, expected: [11, 'BelowThreshold'] },
  { what: 'nothing measured at all', percents: [], forS: -PERIOD_S, current: 12, expected: [12, 'NoMetrics'] },
  {
    what: 'metrics gone for 55 s: hold',
    percents: [90],
    endMs: NOW - 55 * S,
    current: 12,
    expected: [12, 'NoMetrics'],
  },
  {
    what: 'metrics gone for 45 s: two rounds may fail',
    percents: [90],
    endMs: NOW - 45 * S,
    current: 12,
    expected: [15, 'AboveThreshold'],
  },
  // Clock jumps
  {
    what: 'clock an hour ahead: hold',
    percents: [90],
    endMs: NOW - 3600 * S,
    current: 12,
    expected: [12, 'NoMetrics'],
  },
  { what: 'clock an hour back: hold', percents: [90], endMs: NOW + 3600 * S, current: 12, expected: [12, 'NoMetrics'] },
  {
    what: 'a cooldown in the future has ended',
    percents: [30],
    state: { lastUpMs: NOW + 3600 * S },
    current: 12,
    expected: [15, 'AboveThreshold'],
  },
  // Annotations
  {
    what: 'paused',
    percents: [30],
    state: { paused: 'both' },
    current: 12,
    expected: [12, 'Paused'],
    message: 'stays at 12 although 15 are wanted (per-core CPU 30 % > 20 % for 60 s): paused by annotation',
  },
  { what: 'paused up', percents: [30], state: { paused: 'up' }, current: 12, expected: [12, 'Paused'] },
  {
    what: 'paused up, going down',
    percents: [10],
    state: { paused: 'up' },
    current: 12,
    expected: [11, 'BelowThreshold'],
  },
  { what: 'paused down', percents: [10], state: { paused: 'down' }, current: 12, expected: [12, 'Paused'] },
  {
    what: 'paused down, going up',
    percents: [30],
    state: { paused: 'down' },
    current: 12,
    expected: [15, 'AboveThreshold'],
  },
  // Occupancy
  {
    what: 'occupancy has thresholds of its own',
    percents: [61],
    current: 12,
    spec: { occupancy: {} },
    expected: [15, 'AboveThreshold'],
    message: 'occupancy 61 % > 60 % for 60 s',
  },
];

test.each(rows)('$what', ({ percents, current, expected, spec, state = {}, message, ...options }) => {
  const { replicas, reason, message: said } = recommend(samples(percents, options), current, policy(spec), NOW, state);
  expect({ current, decision: [replicas, reason] }).toEqual({ current, decision: expected });
  if (message !== undefined) expect(said).toBe(message);
});

describe('renders that wait, one at a time: CPU is low, and every place is taken', () => {
  /** `taken` as `percents`: the last one stands last, the first lasts. */
  const look = (taken: number[], spec: object = {}, current = 6) => {
    const all = samples([10]).map((sample, index, { length }) => ({
      ...sample,
      taken: (taken[Math.max(0, taken.length - length + index)] ?? taken[0] ?? 0) / 100,
    }));
    return recommend(all, current, policy(spec), NOW, {});
  };

  test.each([
    // Of 6 pods at 75 % one may go: 5 have 90 % taken.
    { what: 'up to 90 % of the rest', taken: [75], expected: [5, 'BelowThreshold'] },
    { what: 'not more', taken: [76], expected: [6, 'PlacesTaken'] },
    { what: 'the highest reading of the window counts', taken: [20, 80, 20, 20], expected: [6, 'PlacesTaken'] },
    { what: 'not what was before the window', taken: [95, ...Array(20).fill(20)], expected: [5, 'BelowThreshold'] },
    {
      what: 'as many as leave places',
      taken: [55],
      spec: { cpu: { scaleDown: { removeReplicas: 4 } } },
      current: 9,
      expected: [6, 'BelowThreshold'],
    },
    {
      what: 'what CPU says first: of 2 pods at 10 % one would stand at 20 %',
      taken: [95],
      spec: { minReplicas: 1, cpu: { scaleUp: { abovePercent: 19 } } },
      current: 2,
      expected: [2, 'DeadBand'],
    },
  ])('$what', ({ taken, expected, spec, current }) => {
    const { replicas, reason } = look(taken, spec, current);
    expect([replicas, reason]).toEqual(expected);
  });

  test('says so', () => {
    expect(look([80]).message).toBe(
      'per-core CPU 10 % < 15 % for 300 s, but renders wait: 80 % of all places were taken, and 5 pods would have too few',
    );
  });

  test('nobody who knows: CPU decides alone', () => {
    expect(recommend(samples([10]), 6, policy(), NOW, {}).reason).toBe('BelowThreshold');
  });

  test('occupancy has its own thresholds for that', () => {
    expect(look([95], { occupancy: {} }).reason).toBe('BelowThreshold');
  });
});

test('a hole of a minute in the middle of the window is a window that is not full', () => {
  const all = samples([90]).filter(({ atMs }) => atMs > NOW - 30 * S || atMs < NOW - 85 * S);
  expect(recommend(all, 12, policy(), NOW, {}).reason).toBe('FillingWindow');
});

describe('what is not known counts against the action', () => {
  const OLD = 600 * S;
  /** A ready pod with two workers of this CPU. */
  const pod = (name: string, cpu: number | undefined, rest: Partial<PodReading> = {}): PodReading => ({
    name,
    state: 'ready',
    workers: [
      { ageMs: OLD, cpu },
      { ageMs: OLD, cpu },
    ],
    takenMs: 1,
    ...rest,
  });
  const young = (name: string, cpu: number) =>
    pod(name, cpu, {
      workers: [
        { ageMs: 59 * S, cpu },
        { ageMs: 60 * S, cpu },
      ],
    });

  const looks: { what: string; pods: PodReading[]; up?: number; down?: number; spec?: object }[] = [
    { what: 'all measured', pods: [pod('a', 0.1), pod('b', 0.3)], up: 0.2, down: 0.2 },
    {
      what: 'Max is the busiest worker',
      pods: [pod('a', 0.1), pod('b', 0.3)],
      spec: { cpu: { statistic: 'Max' } },
      up: 0.3,
      down: 0.3,
    },
    // (0.3 + 0) / 2 and (0.3 + 1) / 2
    { what: 'one of two not measured', pods: [pod('a', 0.3), pod('b', undefined)], up: 0.15, down: 0.65 },
    { what: 'none measured', pods: [pod('a', undefined), pod('b', undefined)] },
    { what: 'no pods', pods: [] },
    {
      what: 'a pod that is not ready',
      pods: [pod('a', 0.3), pod('b', 0.9, { state: 'starting' })],
      up: 0.15,
      down: 0.65,
    },
    // It is no capacity, and goes first: it must not keep an idle fleet from shrinking.
    {
      what: 'a pod without a node',
      pods: [pod('a', 0.1), pod('b', undefined, { state: 'stuck' })],
      up: 0.05,
      down: 0.1,
    },
    // Worker 0 of b is 59 s old and does not count, worker 1 does: (0.1 + 0.1 + 0.7) / 3
    { what: 'a worker that has just started', pods: [pod('a', 0.1), young('b', 0.7)], up: 0.3, down: 0.3 },
    { what: 'only workers that have just started', pods: [young('a', 0.7)], spec: { warmUp: '2m' } },
  ];

  test.each(looks)('$what', ({ pods, up, down, spec }) => {
    const { sample } = measure(pods, policy(spec), NOW, new Map());
    const rounded = (value: number | undefined) => value && Number(value.toFixed(6));
    expect({ up: rounded(sample.up), down: rounded(sample.down) }).toEqual({ up, down });
  });

  test('beside a canary the work is held against the pods that serve everything', () => {
    const { sample } = measure([pod('a', 0.2), pod('b', 0.2), pod('c', 0.2)], policy(), NOW, new Map());
    const rounded = ({ up, down }: Sample) => [up, down].map((value) => value && Number(value.toFixed(6)));
    expect(rounded(asOfPods(sample, policy(), 3, 2))).toEqual([0.3, 0.3]);
    // What is not there yet makes it no less.
    expect(rounded(asOfPods(sample, policy(), 3, 4))).toEqual([0.2, 0.2]);
    expect(rounded(asOfPods(sample, policy(), 3, 0))).toEqual([0.2, 0.2]);
    expect(rounded(asOfPods(sample, { ...policy(), statistic: 'Max' }, 3, 2))).toEqual([0.2, 0.2]);
    expect(asOfPods({ ...sample, up: undefined }, policy(), 3, 2).up).toBeUndefined();
  });

  describe('places of workers that find their number by themselves', () => {
    const places = (...all: [taken: number, places: number][]): PodReading =>
      pod('a', 0.1, {
        workers: all.map(([taken, number]) => ({ ageMs: OLD, cpu: 0.1, occupancy: taken / number, places: number })),
      });
    const look = (pods: PodReading[], spec: object = { occupancy: {} }) =>
      measure(pods, policy(spec), NOW, new Map()).sample;

    test('occupancy is of all places: a worker that has just begun with one counts as one', () => {
      // 1 of 1, and 2 of 9: three of ten, not the 61 % that their mean is.
      expect(look([places([1, 1], [2, 9])])).toMatchObject({ up: 0.3, down: 0.3, taken: 0.3 });
    });

    test('a worker that tells nothing counts as much as the others do', () => {
      const silent = pod('b', 0.1, { workers: [{ ageMs: OLD, cpu: 0.1 }] });
      // 3 of 6 and 1 of 2: what is not known counts as 4 places.
      expect(look([places([3, 6], [1, 2]), silent])).toMatchObject({ up: 4 / 12, down: 8 / 12, taken: 0.5 });
    });

    test('the busiest worker is the one with the largest share', () => {
      expect(look([places([1, 1], [2, 9])], { occupancy: { statistic: 'Max' } }).up).toBe(1);
    });

    test('CPU is of cores, however many places there are', () => {
      const uneven = pod('a', 0, {
        workers: [
          { ageMs: OLD, cpu: 0.4, occupancy: 0.5, places: 1 },
          { ageMs: OLD, cpu: 0.2, occupancy: 0.5, places: 9 },
        ],
      });
      expect(look([uneven], {}).up).toBeCloseTo(0.3);
    });
  });

  test('metrics that stand still are none after two minutes', () => {
    let memory: ReadonlyMap<string, { sinceMs: number }> = new Map();
    const ups: (number | undefined)[] = [];
    for (let atS = 0; atS <= 150; atS += 15) {
      // b gets new metrics each time, a's stop at the first.
      const pods = [pod('a', 0.4), pod('b', 0.2, { takenMs: atS })];
      const look = measure(pods, policy(), NOW + atS * S, memory);
      memory = look.memory;
      ups.push(look.sample.up && Number(look.sample.up.toFixed(3)));
    }
    expect(ups).toEqual([...Array(9).fill(0.3), 0.1, 0.1]);
  });

  test('refused requests count from the second look on, and anew after a restart of the proxy', () => {
    let memory: ReadonlyMap<string, { sinceMs: number }> = new Map();
    const seen = [7, 7, 9, 2, undefined, 3].map((refusedTotal, index) => {
      const look = measure([pod('a', 0.1, { refusedTotal })], policy(), NOW + index, memory);
      memory = look.memory;
      return look.sample.refused;
    });
    expect(seen).toEqual([0, 0, 2, 2, 0, 1]);
  });

  test('a JIT that burns CPU after a start adds no pods', () => {
    const busyStart = [pod('a', 0.16), pod('b', 0.16), young('c', 0.16)].map((one, index) =>
      index === 2 ? { ...one, workers: one.workers.map((worker) => ({ ...worker, ageMs: 20 * S, cpu: 1 })) } : one,
    );
    const sample = measure(busyStart, policy(), NOW, new Map()).sample;
    const window = samples([16]).map(({ atMs }) => ({ ...sample, atMs }));
    expect(recommend(window, 3, policy(), NOW, {}).reason).toBe('WithinBand');
  });
});

test('the same question has the same answer: nothing is kept between calls', () => {
  const all = samples([30]);
  const frozen = Object.freeze(all.map((sample) => Object.freeze(sample))) as Sample[];
  const ask = () => recommend(frozen, 12, policy(), NOW, {});
  expect(ask()).toEqual(ask());
});
