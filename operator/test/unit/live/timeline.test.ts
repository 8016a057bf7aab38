/** What happened to a service: in order, once, with the reason. */
import type { Snapshot } from '../../../live/snapshot.ts';
import { type Entry, entriesOf, entriesOfEvents, merged } from '../../../live/timeline.ts';
import { figures, fleet, NOW_MS, pod, worker } from './fleet.ts';

const DECISION = { time: '2026-11-25T11:59:00Z', from: 4, to: 7, reason: 'AboveThreshold', message: 'CPU 31 % > 20 %' };
const decided = (lastDecision = DECISION) => ({ status: { observedGeneration: 3, scaling: { lastDecision } } });
const told = (entries: Entry[]) => entries.map(({ kind, what, why }) => `${kind}: ${what} (${why})`);
const between = (before: Partial<Snapshot>, now: Partial<Snapshot>) => told(entriesOf(fleet(now), fleet(before)));

test('a fleet to which nothing happens has no entries', () => {
  expect(entriesOf(fleet())).toEqual([]);
  expect(entriesOf(fleet(), fleet())).toEqual([]);
});

test('a step of scaling, with its numbers, at its own time, once', () => {
  const [entry] = entriesOf(fleet(decided()), fleet());
  expect(entry).toEqual({
    atMs: Date.parse(DECISION.time),
    kind: 'scaling',
    what: 'scaled 4 -> 7',
    why: 'AboveThreshold: CPU 31 % > 20 %',
  });
  expect(entriesOf(fleet(decided()))).toHaveLength(1);
  expect(entriesOf(fleet(decided()), fleet(decided()))).toEqual([]);
});

test('a rollout: its first pod, and the last one of the revision before', () => {
  const [one, other] = [pod(0), pod(1, { revision: '5b4d' })];
  expect(between({ pods: [one] }, { pods: [one, other] })).toEqual([
    'rollout: revision 5b4d has its first pod ()',
    'pods: 1 pod came (storefront-7f9c-1)',
  ]);
  expect(between({ pods: [one, other] }, { pods: [other] })).toEqual([
    'rollout: revision 7f9c has no pod any more ()',
    'pods: 1 pod went (storefront-7f9c-0)',
  ]);
});

test('many pods are one entry; pods that are merely not asked are none', () => {
  expect(between({ pods: [] }, { pods: [0, 1, 2, 3, 4].map((index) => pod(index)) })).toContain(
    'pods: 5 pods came (storefront-7f9c-0, storefront-7f9c-1, storefront-7f9c-2 and 2 more)',
  );
  expect(between({ pods: [pod(0)], podsNotAsked: 1 }, { pods: [pod(1)] })).toEqual([]);
});

test('a pod that becomes another, and why', () => {
  expect(between({ pods: [pod(0)] }, { pods: [pod(0, { state: 'not ready', problem: 'OOMKilled' })] })).toEqual([
    'pods: storefront-7f9c-0 is not ready (OOMKilled)',
  ]);
});

test('a stuck render with its line; one of long ago is no news', () => {
  const stuckAt = (atMs: number) => ({
    pods: [pod(0, { figures: figures({ workers: [worker(0, { lastStall: { atMs, in: 'render /app/a.js:3' } })] }) })],
  });
  const entry = 'stuck: worker-0 of storefront-7f9c-0 got stuck (in render /app/a.js:3)';
  expect(between({}, stuckAt(NOW_MS - 5_000))).toEqual(expect.arrayContaining([entry]));
  expect(told(entriesOf(fleet(stuckAt(NOW_MS - 5_000))))).toEqual([entry]);
  expect(told(entriesOf(fleet(stuckAt(NOW_MS - 3_600_000))))).toEqual([]);
  expect(between(stuckAt(NOW_MS - 5_000), stuckAt(NOW_MS - 5_000))).toEqual([]);
});

test('a worker that was started again', () => {
  const restarted = (restarts: number, crashLoop?: { exitCode: number; backoffSeconds: number }) => ({
    pods: [pod(0, { figures: figures({ workers: [worker(0, { restarts, crashLoop })] }) })],
  });
  expect(between(restarted(1), restarted(2, { exitCode: 7, backoffSeconds: 1 }))).toEqual([
    'warning: worker-0 of storefront-7f9c-0 was started again (it crashes, exit code 7)',
  ]);
  // A pod of the same name that is new, or that has not told before.
  expect(between(restarted(5), restarted(0))).toEqual([]);
  expect(between({ pods: [pod(0, { figures: undefined })] }, restarted(3))).toEqual([]);
});

test('the Event and the status of one step are one entry; the last ones are kept', () => {
  const atMs = Date.parse(DECISION.time) + 400;
  const noted = entriesOfEvents([
    { atMs, type: 'Normal', reason: 'ScaledUp', message: 'scaled 4 -> 7: CPU 31 % > 20 %', count: 1 },
    { atMs: atMs + 1, type: 'Warning', reason: 'RolloutStopped', message: 'pods crash', count: 1 },
    { atMs: atMs + 2, type: 'Normal', reason: 'Ready', message: 'all is well', count: 1 },
  ]);
  expect(told(noted)).toEqual([
    'scaling: scaled 4 -> 7 (CPU 31 % > 20 %)',
    'warning: RolloutStopped (pods crash)',
    'note: Ready (all is well)',
  ]);
  const all = merged(entriesOf(fleet(decided())), noted, 10);
  expect(all.map(({ what }) => what)).toEqual(['scaled 4 -> 7', 'RolloutStopped', 'Ready']);
  expect(merged(all, noted, 10)).toEqual(all);
  expect(merged(all, noted, 2).map(({ what }) => what)).toEqual(['RolloutStopped', 'Ready']);
  // The same step an hour later is another one.
  const later = noted.map((entry) => ({ ...entry, atMs: entry.atMs + 3_600_000 }));
  expect(merged(all, later, 10)).toHaveLength(6);
});
