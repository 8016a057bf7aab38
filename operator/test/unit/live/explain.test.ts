/** What `corelane explain` says of a fleet: a golden file for each situation. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { explain } from '../../../live/explain.ts';
import type { Snapshot } from '../../../live/snapshot.ts';
import { windowOf } from '../../../live/window.ts';
import { liveSettingsApplied, objectsInSync, scalingActive, stalled } from '../../../src/api/conditions.ts';
import { condition, figures, fiveSecondsBefore, fleet, full, NOW_MS, pod, times, worker } from './fleet.ts';

const golden = (name: string) =>
  fileURLToPath(new URL(`golden/${name.replaceAll(/[ ,]+/g, '-')}.txt`, import.meta.url));

const said = (now: Snapshot, before: Snapshot | undefined = fiveSecondsBefore(now)) =>
  explain(now, windowOf(now, before));

const all = (of: Parameters<typeof full>[0] = {}) =>
  [0, 1, 2, 3, 4, 5].map((index) => pod(index, { figures: full(of) }));
const status = (...drafts: Parameters<typeof condition>[0][]) => ({
  observedGeneration: 3,
  conditions: drafts.map(condition),
});
const UNSCHEDULED =
  'cannot be scheduled: 0/3 nodes are available: 3 Insufficient cpu. Way out: add nodes, or ask for less: resources of the template x workersPerPod, and spec.sidecar';
const lost = (index: number) => {
  const name = `storefront-7f9c-${index}`;
  return { name, revision: '7f9c', state: 'unscheduled' as const, problem: `pod ${name} ${UNSCHEDULED}` };
};
const PULL =
  'container worker-0 of pod storefront-5b4d-0: ImagePullBackOff (Back-off pulling image "shop:2"): is the name right, is it there, and does the node have the right to it (imagePullSecrets)?';
const answers = (...counts: [what: string, count: number][]) => new Map([['2xx ', 200] as [string, number], ...counts]);
const scaling = { bounds: { ...fleet().bounds, replicas: undefined, scaling: { min: 2, max: 6 } } };

const WAITED = { activeS: 0.3, idleS: 4.7 };
const COMPUTED = { activeS: 4.9, idleS: 0.1 };

/** What there is, and the line that names it. */
const SITUATIONS: [name: string, now: Snapshot, names: RegExp][] = [
  ['all is well', fleet(), /^Now: nothing limits it/m],
  ['saturated', fleet({ pods: all() }), /^Now: 12 of 12 workers are busy, 36 requests wait$/m],
  [
    'saturated and refusing',
    fleet({ pods: all({ queue: 0, answers: answers(['5xx queue-full', 30], ['5xx queue-timeout', 3]) }) }),
    /^Now: 12 of 12 workers are busy, 198 were refused$/m,
  ],
  [
    'saturated, and renders wait',
    fleet({ pods: all({ workers: [0, 1].map((index) => worker(index, { busy: 1, ...WAITED })) }) }),
    /^Now: 12 of 12 workers are busy, .*\nNext: set concurrency: Auto, .* it is 1, and busy workers compute for 6 %/m,
  ],
  [
    'saturated by renders that wait, with Auto',
    fleet({
      bounds: { ...fleet().bounds, concurrency: undefined },
      pods: all({ workers: [0, 1].map((index) => worker(index, { busy: 4, places: 4, ...WAITED })) }),
    }),
    /^Now: 12 of 12 workers are busy, .*\nNext: more pods/m,
  ],
  [
    'saturated, because pods cannot be scheduled',
    fleet({ pods: [...all(), lost(6), lost(7)] }),
    /^Now: 12 of 12 workers are busy, .*, and 2 pods cannot be scheduled: .* 3 Insufficient cpu$/m,
  ],
  [
    'saturated at the maximum',
    fleet({
      ...scaling,
      pods: all(),
      status: {
        ...status(scalingActive('AtMaximum', 'more pods are wanted, but 6 is the maximum')),
        scaling: {
          utilizationPercent: 88,
          lastDecision: {
            time: '2026-11-25T11:43:12Z',
            from: 4,
            to: 6,
            reason: 'AboveThreshold',
            message: 'per-core CPU 71 % > 20 %',
          },
        },
      },
    }),
    /^Now: .* and scaling is at its maximum: .*\nNext: raise scaling.maxReplicas above 6/m,
  ],
  [
    'saturated while scaling is blind',
    fleet({
      ...scaling,
      pods: all(),
      status: status(
        scalingActive(
          'NoMetrics',
          'the cluster has no Metrics API (metrics.k8s.io); install metrics-server; the number of pods is held',
        ),
      ),
    }),
    /^Now: .* and scaling sees nothing: the cluster has no Metrics API/m,
  ],
  [
    'scaling blind at peace',
    fleet({
      ...scaling,
      status: status(scalingActive('NoMetrics', 'no worker has been measured yet; the number of pods is held')),
    }),
    /^Now: scaling sees nothing: no worker has been measured yet/m,
  ],
  [
    'scaling paused',
    fleet({
      ...scaling,
      pods: all(),
      status: status(scalingActive('Paused', 'annotation corelane.dev/scaling-paused is "true"')),
    }),
    /^Now: .* and scaling is paused: annotation/m,
  ],
  [
    'unschedulable at peace',
    fleet({ pods: [...fleet().pods, lost(6)] }),
    /^Now: pod storefront-7f9c-6 cannot be scheduled/m,
  ],
  [
    'crash loop',
    fleet({
      pods: [
        ...fleet().pods.slice(1),
        pod(0, {
          figures: figures({
            workers: [worker(0), worker(1, { up: false, crashLoop: { exitCode: 137, backoffSeconds: 6.4 } })],
          }),
        }),
      ],
    }),
    /^Now: worker-1 of storefront-7f9c-0 restarts in a loop: exit code 137/m,
  ],
  [
    'stuck render now',
    fleet({
      pods: [
        ...all().slice(1),
        pod(0, {
          figures: full({
            workers: [
              worker(0, { busy: 1, silentS: 9.4 }),
              worker(1, { busy: 1, lastStall: { atMs: NOW_MS - 40_000, in: 'renderPrice /app/price.js:41' } }),
            ],
          }),
        }),
      ],
    }),
    /^Now: an event loop stands still, worker-0 of storefront-7f9c-0 for 9 s; the last one was stuck in renderPrice \/app\/price\.js:41\nNext: mend renderPrice/m,
  ],
  [
    'stuck renders of late',
    fleet({
      pods: [
        ...fleet().pods.slice(1),
        pod(0, {
          figures: figures({
            answers: answers(['5xx worker-stuck', 2]),
            workers: [
              worker(0),
              worker(1, { restarts: 2, lastStall: { atMs: NOW_MS - 95_000, in: 'renderPrice /app/price.js:41' } }),
            ],
          }),
        }),
      ],
    }),
    /^Now: renders get stuck: 1 worker in the last 10 minutes, last 95 s ago in renderPrice/m,
  ],
  [
    'isolated from peers',
    fleet({ pods: [...fleet().pods.slice(1), pod(0, { figures: full({ peersKnown: 0 }) })] }),
    /^Now: 1 of 6 pods know less than half of the others \(storefront-7f9c-0: 0 of 5\)/m,
  ],
  [
    'refused configuration',
    fleet({
      status: status(
        ...stalled('Rejected', 'Deployment storefront: spec.template.spec.containers[1].image: Required value', 6),
      ),
    }),
    /^Now: the latest spec is not in use \(Rejected\): Deployment storefront/m,
  ],
  [
    'rollout stopped',
    fleet({
      pods: [...fleet().pods, { name: 'storefront-5b4d-0', revision: '5b4d', state: 'not ready', problem: PULL }],
      status: status(...stalled('ProgressDeadlineExceeded', `revision 5b4d makes no progress; ${PULL}`, 6)),
    }),
    /^Now: the rollout has stopped: .*ImagePullBackOff/m,
  ],
  [
    'rollout that cannot pull its image yet',
    fleet({
      pods: [...fleet().pods, { name: 'storefront-5b4d-0', revision: '5b4d', state: 'not ready', problem: PULL }],
    }),
    /^Now: container worker-0 of pod storefront-5b4d-0: ImagePullBackOff/m,
  ],
  [
    'slow renders that compute',
    fleet({
      bounds: { ...fleet().bounds, latencyMs: { p99: 500 } },
      pods: all({
        queue: 0,
        workers: [worker(0, { busy: 1, activeS: 4.8, idleS: 0.2 }), worker(1)],
        queueTimes: times([1, 200]),
        renderTimes: times([300, 190], [2_400, 10]),
        totalTimes: times([300, 190], [2_450, 10]),
      }),
    }),
    /^Now: renders take long: p99 .* \(they compute for 96 % of that\), and the objective is 500 ms/m,
  ],
  [
    'slow renders that wait',
    fleet({
      pods: all({
        queue: 0,
        workers: [worker(0, { busy: 1, activeS: 0.4, idleS: 4.6 }), worker(1)],
        queueTimes: times([1, 200]),
        renderTimes: times([300, 190], [2_400, 10]),
        totalTimes: times([300, 190], [2_450, 10]),
      }),
    }),
    /^Now: renders take long: .*\nNext: look at what they wait for/m,
  ],
  ...(['wait', 'compute'] as const).map((how): [string, Snapshot, RegExp] => [
    `slow renders that ${how}, and none at the looks`,
    fleet({
      pods: all({
        queue: 0,
        workers: [worker(0, { renderedS: 4.7, ...(how === 'wait' ? WAITED : COMPUTED) }), worker(1)],
        queueTimes: times([1, 200]),
        renderTimes: times([300, 190], [2_400, 10]),
        totalTimes: times([300, 190], [2_450, 10]),
      }),
    }),
    how === 'wait'
      ? /^Now: renders take long: .* \(they compute for 6 % of that\), so they wait for something else/m
      : /^Now: renders take long: .* \(they compute for 100 % of that\); next/m,
  ]),
  [
    'throttled',
    fleet({
      pods: all({
        workers: [
          worker(0, { busy: 1, activeS: 4.9, idleS: 0.1, cpuS: 1 }),
          worker(1, { busy: 1, activeS: 4.8, idleS: 0.2, cpuS: 1.1 }),
        ],
      }),
    }),
    /^Now: 12 of 12 workers get too little CPU: worker-0 of storefront-7f9c-0 had work for 4\.9 s, and CPU for 1\.0 s of that$/m,
  ],
  [
    'one slow worker',
    fleet({
      pods: [
        ...fleet().pods.slice(1),
        pod(0, {
          figures: figures({ workers: [worker(0), worker(1, { busy: 1, activeS: 4.8, idleS: 0.2, cpuS: 0.6 })] }),
        }),
      ],
    }),
    /^Now: 1 of 12 workers gets too little CPU: worker-1 of storefront-7f9c-0 had work/m,
  ],
  [
    'calls that block for a moment are no lack of CPU',
    fleet({ pods: all({ queue: 0, queueTimes: times(), workers: [worker(0, { activeS: 1.5, cpuS: 0 }), worker(1)] }) }),
    /^Now: nothing limits it/m,
  ],
  [
    'the program fails',
    fleet({ pods: fleet().pods.map((one) => ({ ...one, figures: figures({ answers: answers(['5xx ', 60]) }) })) }),
    /^Now: the program answers 5xx itself: 360 of 1,560 requests \(23 %\)$/m,
  ],
  [
    'the program fails in a few places',
    fleet({ pods: fleet().pods.map((one) => ({ ...one, figures: figures({ answers: answers(['5xx ', 5]) }) })) }),
    /^Now: nothing limits it/m,
  ],
  [
    'saturated, and the program fails',
    fleet({ pods: all({ answers: answers(['5xx ', 60]) }) }),
    /^Now: 12 of 12 workers are busy.*\nNext: .*\nAlso: the program answers 5xx itself/m,
  ],
  [
    'dead dependency',
    fleet({
      pods: all({
        answers: answers(['5xx render-timeout', 12]),
        workers: [worker(0, { busy: 1, activeS: 0.1, idleS: 4.9 }), worker(1, { busy: 0, blocked: true })],
      }),
    }),
    /^Now: renders end by time-out, which wait for something that does not answer: 72 renders .* 6 of 12 workers are taken/m,
  ],
  [
    'renders that wait for their own site',
    fleet({
      pods: all({
        answers: answers(['5xx queue-timeout', 4]),
        workers: [worker(0, { busy: 1, refusedOwn: 2 }), worker(1, { busy: 1 })],
      }),
    }),
    /^Now: renders wait for each other: 12 requests that renders sent, .*\nNext: let the program ask the host/m,
  ],
  [
    'renders that wait beside a browser',
    fleet({
      pods: all({
        answers: answers(['5xx queue-timeout', 4]),
        workers: [worker(0, { busy: 1, childWaits: 2 }), worker(1, { busy: 1 })],
      }),
    }),
    /^Now: renders may wait for each other: 12 renders waited beside a child process, .*\nNext: the log of the workers names/m,
  ],
  [
    'a full queue of another service',
    fleet({
      pods: fleet().pods.map((one) => ({ ...one, figures: figures({ workers: [worker(0, { refusedOwn: 2 })] }) })),
    }),
    /^Now: nothing limits it/m,
  ],
  [
    'renders that compute past their time-out',
    fleet({
      pods: all({
        answers: answers(['5xx render-timeout', 2]),
        workers: [worker(0, { busy: 1, activeS: 4.9, idleS: 0.1 }), worker(1)],
      }),
    }),
    /^Now: renders end by time-out: 12 renders had no answer/m,
  ],
  [
    'no pods',
    fleet({ bounds: { ...fleet().bounds, replicas: 0 }, pods: [] }),
    /^Now: there are no pods: spec.replicas is 0$/m,
  ],
  [
    'pods cannot be made',
    fleet({
      pods: fleet().pods.slice(0, 2),
      status: status({
        type: 'Ready',
        status: 'False',
        reason: 'PodsNotReady',
        message:
          '2 of 6 pods are available, 2 run the current template, 2 exist; pods cannot be made: pods "storefront-7f9c-x" is forbidden: exceeded quota: team, requested: cpu=2. Way out: raise that ResourceQuota, or ask for less',
      }),
    }),
    /^Now: pods cannot be made: .*exceeded quota: team, requested: cpu=2\nNext: raise that ResourceQuota/m,
  ],
  [
    'several at once, and pods that do not tell',
    fleet({
      pods: [
        ...all().slice(2),
        pod(0, { figures: undefined, silence: 'no connection to pod storefront-7f9c-0: server response: 500' }),
        lost(6),
        pod(1, { figures: full({ peersKnown: 0 }) }),
      ],
      podsNotAsked: 12,
      generation: 4,
      status: status(
        scalingActive('NoMetrics', 'no worker has been measured yet; the number of pods is held'),
        objectsInSync.contended(['Deployment storefront: argocd sets spec.replicas']),
        liveSettingsApplied.yes(6),
      ),
    }),
    /^Not known: 1 pod did not tell .*; 12 pods not asked; the operator has not looked at the latest spec$/m,
  ],
];

test.each(SITUATIONS)('%s', (name, now, names) => {
  const lines = said(now);
  expect(lines.length).toBeLessThanOrEqual(10);
  const text = `${lines.join('\n')}\n`;
  expect(text).toMatch(names);
  if (process.env.UPDATE_GOLDEN) writeFileSync(golden(name), text);
  expect(text).toBe(readFileSync(golden(name), 'utf8'));
});

test('no golden file is left over', () => {
  const names = readdirSync(new URL('golden', import.meta.url));
  expect(names.toSorted()).toEqual(SITUATIONS.map(([name]) => golden(name).replace(/.*\//, '')).toSorted());
});

test('where next to nothing has been rendered since the look before, the times are those since the pods began', () => {
  const now = fleet();
  expect(said(now, { ...now, atMs: NOW_MS - 5_000 })[0]).toMatch(/p99 .* 1,200 requests since the pods began$/);
});

test('a pod whose proxies were started again, and a new one, count from 0', () => {
  const now = fleet();
  const before = fiveSecondsBefore(now);
  const more = { ...figures(), answers: new Map([['2xx ', 900]]), totalTimes: times([9_000, 900]) };
  const [first, , ...others] = before.pods;
  const earlier = { ...before, pods: [{ ...first, figures: more } as (typeof before.pods)[number], ...others] };
  expect(said(now, earlier)).toEqual(said(now, before));
});
