/** The parts of a soak that compute: what happens in which order, what a status tells, what it all adds up to. */
import { linesAbout, operatorWritesIn } from '../soak/pages.ts';
import { json, markdown, picture, type Report } from '../soak/report.ts';
import {
  type Action,
  API_SERVER_REST_MS,
  HONEST,
  isOfCluster,
  KINDS,
  keyOf,
  NAMESPACES,
  OPERATOR_MAY_END,
  PODS_MAX,
  SERVICES_MAX,
  Sequence,
  type Service,
  stormOf,
} from '../soak/sequence.ts';
import { meets, type Resource, saying } from '../soak/standing.ts';
import {
  type Done,
  growthOf,
  lastLine,
  lostOf,
  MINUTES_MIN,
  type Result,
  type Sample,
  unexplained,
  worstGrowthOf,
  wrongs,
} from '../soak/verdicts.ts';

const STORM = 120;

/** So many actions, each with the RenderServices that there are after it. */
function played(seed: number, count: number): { action: Action; services: Service[] }[] {
  const sequence = new Sequence(seed, STORM);
  return Array.from({ length: count }, () => {
    const action = sequence.next();
    return { action, services: sequence.services.map((one) => ({ ...one })) };
  });
}

describe('the sequence', () => {
  const seeds = Array.from({ length: 12 }, (_unused, index) => index + 1);
  const runs = seeds.map((seed) => played(seed, 300));
  const all = runs.flat();

  test('is the same for a seed, and another one for another', () => {
    expect(played(7, 300)).toEqual(played(7, 300));
    expect(played(7, 300)).not.toEqual(played(8, 300));
  });

  test('has each kind, and nearly all of them even in ten minutes', () => {
    const kindsOf = (run: typeof all) => new Set(run.map(({ action }) => action.kind));
    for (const run of runs) expect([...kindsOf(run)].toSorted()).toEqual(KINDS.toSorted());
    const short = seeds.map((seed) => kindsOf(played(seed, 80)).size);
    expect(Math.min(...short)).toBeGreaterThan(KINDS.length - 5);
  });

  test('keeps within its bounds, and in its namespaces', () => {
    const pods = (services: Service[]) => services.reduce((sum, { replicas }) => sum + replicas + 1, 0);
    expect(Math.max(...all.map(({ services }) => services.length))).toBe(SERVICES_MAX);
    expect(Math.max(...all.map(({ services }) => pods(services)))).toBeLessThanOrEqual(PODS_MAX);
    const namespaces = new Set(all.flatMap(({ services }) => services.map(({ namespace }) => namespace)));
    expect([...namespaces].toSorted()).toEqual(NAMESPACES);
  });

  test('breaks, deletes and pauses no honest one', () => {
    const honest = Object.values(HONEST).map(keyOf);
    const done = all.map(({ action }) => action).filter(({ service }) => service && honest.includes(keyOf(service)));
    expect([...new Set(done.map(({ kind }) => kind))].toSorted()).toEqual([
      'honest: HAProxy killed',
      'honest: live setting',
      'honest: pod deleted',
      'honest: rolling change',
      'honest: scale',
      'honest: undo',
      'honest: worker killed',
    ]);
    expect(Math.min(...done.map(({ service }) => service?.replicas ?? 0))).toBe(2);
  });

  /** What each action met, as it was before it. */
  const met = runs.flatMap((run) =>
    run.map(({ action }, index) => {
      const before = run[index - 1]?.services ?? [];
      const { service } = action;
      return { action, before, was: before.find((one) => service && keyOf(one) === keyOf(service)) };
    }),
  );

  test.each<[what: string, kind: RegExp, holds: (was: Service | undefined) => boolean]>([
    ['creates what is not there', /^create/, (was) => was === undefined],
    ['goes back to where there is something', /^undo$/, (was) => was?.hasBefore === true],
    ['mends what is broken', /^mend$/, (was) => was?.state === 'broken'],
    ['resumes what is paused', /^resume$/, (was) => was?.state === 'paused'],
    ['gives free what is taken', /^name /, (was) => was?.state === 'name taken'],
    ['changes and kills what is well', /^(rolling|change|live|scale|pod|nginx)/, (was) => was?.state === 'ready'],
  ])('%s', (_what, kind, holds) => {
    const own = met.filter(({ action }) => kind.test(action.kind));
    expect(own.length).toBeGreaterThan(0);
    expect(own.filter(({ was }) => !holds(was))).toEqual([]);
  });

  test('knows nothing to go back to once what was broken is undone', () => {
    const undone = met.filter(({ action, was }) => action.kind === 'undo' && was?.state === 'broken');
    expect(undone.length).toBeGreaterThan(0);
    expect(undone.filter(({ action }) => action.service?.hasBefore)).toEqual([]);
  });

  test('drains no node while pods are broken, whose budget would hold it', () => {
    const drains = met.filter(({ action }) => action.kind === 'node drained');
    expect(drains.length).toBeGreaterThan(0);
    expect(drains.filter(({ before }) => before.some(({ state }) => state === 'broken'))).toEqual([]);
  });

  test('says what is to come of each, and of none of the cluster', () => {
    const told = (kind: RegExp) => [
      ...new Set(all.flatMap(({ action }) => (kind.test(action.kind) ? [action.expect?.is] : []))),
    ];
    expect(told(/^(create, refused|leader|operator|API|etcd|CoreDNS|node)/)).toEqual([undefined]);
    expect(told(/^delete$|amid a change$|taken, delete/).toSorted()).toEqual(['gone', 'ready']);
    expect(told(/(missing|loop|never ready)$/)).toEqual(['stalled']);
    expect(told(/^pause$/)).toEqual(['paused']);
    expect(told(/^(honest|undo|mend|resume|rolling|live|scale|name given)|killed|again$|^create$/)).toEqual(
      expect.arrayContaining(['ready']),
    );
  });

  test('ends the operator in the storm alone, and in each storm', () => {
    const ends = all.filter(({ action: { kind } }) => kind === 'leader deleted' || kind === 'operator killed');
    expect(Math.max(...ends.map(({ action }) => action.number))).toBeLessThanOrEqual(STORM);
    // As short as that of four minutes.
    const short = seeds.map((seed) => new Sequence(seed, stormOf(4)));
    const kinds = short.map((one) => new Set(Array.from({ length: stormOf(4) + 4 }, () => one.next().kind)));
    expect(kinds.filter((own) => !own.has('leader deleted') || !own.has('operator killed'))).toEqual([]);
  });

  test('kills the API server seldom', () => {
    for (const run of runs) {
      let plannedMs = 0;
      const killsMs = run.flatMap(({ action: { kind, pauseMs } }) => {
        plannedMs += pauseMs;
        return kind === 'API server killed' ? [plannedMs] : [];
      });
      const apart = killsMs.slice(1).map((atMs, index) => atMs - (killsMs[index] as number));
      expect(apart.filter((ms) => ms < API_SERVER_REST_MS)).toEqual([]);
    }
  });
});

describe('what a status tells', () => {
  const told = (
    conditions: [type: string, status: string, reason: string, message: string][],
    observed = 3,
  ): Resource => ({
    metadata: { name: 'one', namespace: 'soak-1', uid: 'u', generation: 3 },
    status: {
      observedGeneration: observed,
      conditions: conditions.map(([type, status, reason, message]) => ({ type, status, reason, message })),
    },
  });
  const ready: Parameters<typeof told>[0] = [
    ['Ready', 'True', 'AllPodsReady', '2 of 2 pods are ready'],
    ['Reconciling', 'False', 'UpToDate', ''],
    ['Stalled', 'False', 'UpToDate', ''],
  ];
  const held = 'rollout.paused holds a change: 0 of 2 pods are of revision 1';
  const late = 'revision 1 makes no progress; image-... ErrImagePull';

  test('counts for the present generation alone', () => {
    expect(meets(told(ready), { is: 'ready' })).toBe(true);
    expect(meets(told(ready, 2), { is: 'ready' })).toBe(false);
    expect(meets(undefined, { is: 'ready' })).toBe(false);
  });

  test('a change that goes on is not ready, one that is held is paused', () => {
    const onItsWay = told([
      ['Ready', 'Unknown', 'Progressing', held],
      ['Reconciling', 'True', 'Progressing', held],
      ...ready.slice(2),
    ]);
    expect(meets(onItsWay, { is: 'ready' })).toBe(false);
    expect(meets(onItsWay, { is: 'paused' })).toBe(true);
    expect(meets(told(ready), { is: 'paused' })).toBe(false);
  });

  test('what is broken says why', () => {
    const stalled = told([
      ['Ready', 'False', 'ProgressDeadlineExceeded', late],
      ['Stalled', 'True', 'ProgressDeadlineExceeded', late],
    ]);
    expect(meets(stalled, { is: 'stalled', reason: 'ProgressDeadlineExceeded' })).toBe(true);
    expect(meets(stalled, { is: 'stalled', reason: 'NotOwned' })).toBe(false);
    expect(meets(told(ready), { is: 'stalled', reason: 'NotOwned' })).toBe(false);
    expect(saying(stalled)).toMatch(
      /^generation 3, observed 3; Ready=False ProgressDeadlineExceeded: revision 1 makes/,
    );
  });

  test('gone is gone', () => {
    expect(meets(undefined, { is: 'gone' })).toBe(true);
    expect(meets(told(ready), { is: 'gone' })).toBe(false);
  });
});

describe('memory', () => {
  const MINUTE = 60_000;
  /** A sample each quarter of a minute. */
  const samples = (minutes: number, mibAt: (minute: number) => number, process = 'a', services = 4): Sample[] =>
    Array.from({ length: minutes * 4 }, (_unused, index) => ({
      ...{ atMs: (index / 4) * MINUTE, process, services, mib: mibAt(index / 4) },
    }));

  test('growth is that of the last third over the first, without the start', () => {
    // 2 to 32 minutes: the middles of the thirds are 20 minutes apart.
    const found = growthOf(samples(32, (minute) => (minute < 2 ? 60 : 100 + minute)));
    expect(found?.minutes).toBeCloseTo(29.75);
    expect(found?.growthMib).toBeCloseTo(20, 0);
    expect(growthOf(samples(32, (minute) => (minute < 2 ? 60 : 100 + (minute % 3))))?.growthMib).toBeCloseTo(0, 0);
  });

  test('of several processes the one counts that lived for the longest time', () => {
    const found = growthOf([
      ...samples(5, () => 300, 'before'),
      ...samples(30, () => 100, 'long'),
      ...samples(9, () => 1),
    ]);
    expect(found).toMatchObject({ process: 'long', growthMib: 0 });
  });

  test('times of many or few RenderServices are left out', () => {
    const many = samples(30, (minute) => 100 + (minute > 23 ? 80 : 0)).map((one) => ({
      ...one,
      services: one.mib > 100 ? 9 : 4,
    }));
    expect(growthOf(many)?.growthMib).toBe(0);
  });

  test('of processes beside each other the one counts that has grown the most', () => {
    const all = [...samples(30, () => 9, 'a'), ...samples(30, (minute) => minute, 'b'), ...samples(30, () => 50, 'c')];
    expect(worstGrowthOf(all)).toMatchObject({ process: 'b' });
    expect(worstGrowthOf(samples(2, () => 9))).toBeUndefined();
  });

  test('nothing is said of a process that has just begun, or of none', () => {
    expect(growthOf(samples(2, () => 100))).toBeUndefined();
    expect(growthOf([])).toBeUndefined();
  });
});

const action = (number: number, kind: Done['kind'], beginS: number, endS = beginS): Done => ({
  ...{ number, kind, beginMs: beginS * 1_000, endMs: endS * 1_000 },
});

test('a lost request names the nearest action; one that a stopped client had is not lost', () => {
  const actions = [action(1, 'scale', 10), action(2, 'node drained', 20, 40), action(3, 'undo', 60)];
  const found = lostOf(
    'rolled',
    [
      [5_000, 12],
      [30_000, 500, '502 worker-died', 'rolled-1-7'],
      [50_000, 2_000, 'ECONNRESET', 'rolled-1-8'],
      [70_000, 3, 'STOPPED', 'rolled-1-9'],
    ],
    actions,
  );
  expect(found).toEqual([
    {
      ...{ client: 'rolled', atMs: 30_500, how: '502 worker-died', requestId: 'rolled-1-7' },
      nearest: { number: 2, kind: 'node drained', seconds: 0 },
    },
    {
      ...{ client: 'rolled', atMs: 52_000, how: 'ECONNRESET', requestId: 'rolled-1-8' },
      nearest: { number: 3, kind: 'undo', seconds: 8 },
    },
  ]);
  expect(lostOf('x', [[1, 1, '500', 'x-1']], [])).toMatchObject([{ how: '500' }]);
});

test('a process of the operator that began for no reason is told', () => {
  const actions = [action(1, 'scale', 100), action(2, 'operator killed', 200), action(3, 'etcd frozen', 600, 605)];
  const starts = [10, 110, 203, 640, 900].map((second) => second * 1_000);
  expect(unexplained(starts, 50_000, actions)).toEqual([110_000, 900_000]);
  expect(OPERATOR_MAY_END.every((kind) => isOfCluster({ kind }))).toBe(true);
});

describe('the verdict', () => {
  const growth = (growthMib: number) => ({
    process: 'a',
    minutes: 40,
    firstMib: 100,
    lastMib: 100 + growthMib,
    growthMib,
  });
  const good: Result = {
    ...{ seed: 7, minutes: 60, actions: [action(1, 'scale', 1)], requests: 900, overlaps: 0, lost: [], leftBehind: [] },
    ...{ operatorRss: growth(1.26), operatorHeap: growth(-1), proxies: { nginx: growth(0.1), haproxy: undefined } },
    ...{ quietWrites: {}, findings: [] },
  };

  test('nothing is wrong', () => {
    expect(wrongs(good)).toEqual([]);
    expect(lastLine(good)).toBe(
      'soak: minutes=60 actions=1 requests=900 lost=0 left_behind=0 operator_rss_growth_mib=1.3 quiet_writes=0',
    );
  });

  test.each<[string, Partial<Result>, RegExp]>([
    [
      'a lost request',
      { lost: [{ client: 'x', atMs: 1, how: '503', requestId: 'x-1' }] },
      /1 honest requests were lost/,
    ],
    ['two at a time', { overlaps: 1 }, /met another one/],
    ['something left', { leftBehind: ['/api/v1/namespaces/soak-1/secrets/one-peers'] }, /left behind: .*one-peers/],
    ['RSS', { operatorRss: growth(90) }, /RSS of the operator has grown by 90\.0 MiB/],
    ['the heap', { operatorHeap: growth(30) }, /the heap of the operator has grown/],
    ['a proxy', { proxies: { nginx: growth(9) } }, /memory of nginx has grown/],
    ['a write', { quietWrites: { status: 2 } }, /2 x "status" written in the quiet minute/],
    ['what never came', { findings: [{ atMs: 1, text: 'soak-1/one is not ready' }] }, /soak-1\/one is not ready/],
  ])('%s is wrong', (_what, change, says) => {
    expect(wrongs({ ...good, ...change })).toEqual([expect.stringMatching(says)]);
  });

  test('a short run says nothing of memory', () => {
    expect(wrongs({ ...good, minutes: MINUTES_MIN - 1, operatorRss: growth(90) })).toEqual([]);
    expect(lastLine({ ...good, operatorRss: undefined, quietWrites: { status: 2, Service: 1 } })).toMatch(
      /operator_rss_growth_mib=- quiet_writes=3$/,
    );
  });
});

test('the page and the file have what was seen', () => {
  const done = { ...action(3, 'node drained', 20, 40), convergedS: 12.3 };
  const sample = { atMs: 30_000, process: 'corelane-1', services: 4, mib: 101.26 };
  const report: Report = {
    result: {
      ...{
        seed: 7,
        minutes: 60,
        actions: [done],
        requests: 2,
        overlaps: 0,
        leftBehind: [],
        quietWrites: {},
        findings: [],
      },
      lost: lostOf('rolled', [[30_000, 500, '502 worker-died', 'rolled-1-7']], [done]),
      ...{ operatorRss: undefined, operatorHeap: undefined, proxies: { nginx: undefined } },
    },
    visits: [
      {
        client: 'rolled',
        overlaps: 0,
        timeline: [
          [29_000, 12],
          [30_000, 500, '502 worker-died', 'rolled-1-7'],
        ],
      },
    ],
    ...{ rss: [sample], heap: [], proxies: { nginx: [] }, beginMs: 10_000, endMs: 70_000, machine: '2 CPUs' },
  };
  const page = markdown(report);
  expect(page).toContain('`MINUTES=60 SEED=7 make soak` on 2 CPUs');
  expect(page).toMatch(/^- 1 honest requests were lost$/m);
  expect(page).toMatch(/^\| node drained +\| +1 \| +12\.3 \| +12\.3 \|$/m);
  expect(page).toMatch(/^\| rolled +\| +2 \| +1 \| +0 \| +12 \|/m);
  expect(page).toMatch(/rolled-1-7 +\| 1970-01-01T00:00:30\.500Z \| 502 worker-died \| +#3 node drained \| +0\.0 \|$/m);
  const file = JSON.parse(json(report));
  expect(file).toMatchObject({ seed: 7, actions: [done], mib_of_rss: [[20, 101.3, 'corelane-1']], operatorRss: null });
  expect(picture(report)).toMatch(/<title>#3 node drained<\/title>.*<title>502 worker-died<\/title>/s);
});

test('figures of a page of metrics', () => {
  const page = [
    'corelane_operator_writes_total{what="status"} 12',
    'corelane_operator_writes_total{what="Service changed"} 3',
    'corelane_renderservice_replicas{namespace="soak-1",renderservice="one",state="ready"} 2',
    'corelane_renderservice_replicas{namespace="shop",renderservice="one",state="ready"} 2',
  ].join('\n');
  expect(operatorWritesIn(page)).toEqual([
    ['status', 12],
    ['Service changed', 3],
  ]);
  expect(linesAbout(page, NAMESPACES)).toHaveLength(1);
});
