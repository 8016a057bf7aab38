/** Revisions as Deployments tell them, what these are to be next, and what the status says of it. */

import { parseStored, type RenderService } from '../../src/api/resource.ts';
import { reducePast } from '../../src/controller/past-revision.ts';
import { foundRevisions, planRollout } from '../../src/controller/revisions.ts';
import { isLate, lateAfterMs, type RolloutStatus, rolloutStatus } from '../../src/controller/rollout-status.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { madeText } from '../../src/plan/made.ts';
import { freshPods } from '../../src/plan/pods.ts';
import type { Next, Revision } from '../../src/rollout/next-replicas.ts';

const metadata = { name: 'shop', namespace: 'web', uid: 'u', generation: 1, resourceVersion: '1' };
const NOW = '2026-01-01T00:10:00Z';
const EARLIER = '2026-01-01T00:09:00Z';

function service(spec: object = {}): RenderService {
  const template = { spec: { containers: [{ name: 'worker', image: 'shop:1' }] } };
  const parsed = parseStored({ apiVersion: '', kind: '', metadata, spec: { replicas: 2, template, ...spec } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.renderService;
}

function deployment(name: string, number: number | undefined, replicas: number, annotations: object = {}): KubeObject {
  const template = { metadata: { labels: { of: name } }, spec: { containers: [] } };
  const revision = /-([^-]*)$/.exec(name)?.[1];
  const labels = { 'corelane.dev/renderservice': 'shop', ...(revision && { 'corelane.dev/revision': revision }) };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name,
      annotations: { ...(number !== undefined && { 'corelane.dev/revision-number': String(number) }), ...annotations },
    },
    spec: { replicas, template, selector: { matchLabels: labels } },
    status: { replicas, availableReplicas: replicas },
  } as KubeObject;
}

/** Pods of before, and what their Deployment remembers. */
function remembered(image = 'shop:0') {
  const before = service({ template: { spec: { containers: [{ name: 'worker', image }] } } });
  const { revision, template } = freshPods(before, { image: 'sidecar:1' });
  const made = { spec: before.spec as unknown, template };
  return { revision, made: JSON.parse(JSON.stringify(made)) as typeof made, text: madeText(made) as string };
}

test('revisions are told by the names of Deployments, the newest first; others are none', () => {
  const all = [
    deployment('shop', undefined, 1),
    deployment('shop-0123456789', 1, 2, { 'corelane.dev/retired': EARLIER, 'corelane.dev/completed': EARLIER }),
    deployment('shop-abcdefabcd', 2, 3),
    deployment('shop-blue', 9, 1),
    deployment('shop-0123456789-0123456789', 9, 1),
    deployment('shopping-0123456789', 9, 1),
    // A copy of the first one, with its selector.
    { ...deployment('shop-aaaaaaaaaa', 9, 1), spec: deployment('shop-0123456789', 1, 2).spec },
    // And of one whose owner alone is known.
    { ...deployment('shop-bbbbbbbbbb', 9, 1), spec: undefined },
  ];
  const found = foundRevisions(metadata, all);
  expect(
    found.map(({ id, number, replicas, wasComplete, retiredMs, canRest }) => [
      ...[id, number, replicas, wasComplete, retiredMs, canRest],
    ]),
  ).toEqual([
    ['abcdefabcd', 2, 3, false, undefined, true],
    ['0123456789', 1, 2, true, Date.parse(EARLIER), true],
    ['before-revisions', 0, 1, false, undefined, false],
  ]);
});

describe('what they are to be next', () => {
  const fresh = freshPods(service(), { image: 'sidecar:1' });
  const nobody = { pods: 0, have: 0, silent: 0, knowing: 0 };
  const canary = { nowMs: Date.parse(NOW), facts: {}, acksOf: () => nobody, isOut: () => true };
  const plan = (all: KubeObject[], withoutRoom = 0) =>
    planRollout(service(), foundRevisions(metadata, all), fresh, { time: NOW, withoutRoom, canary });

  test('the first one', () => {
    const { pods, forgotten } = plan([]);
    expect(pods).toMatchObject({
      canRest: true,
      resting: undefined,
      revisions: [{ revision: fresh.revision, replicas: 2, annotations: { 'corelane.dev/revision-number': '1' } }],
    });
    expect(forgotten).toEqual([]);
  });

  test('one that rests keeps its time, its memory and its template', () => {
    const { revision, made, text } = remembered();
    const { pods } = plan([
      deployment(`shop-${fresh.revision}`, 2, 2, { 'corelane.dev/completed': EARLIER }),
      deployment(`shop-${revision}`, 1, 1, {
        ...{ 'corelane.dev/completed': 'then', 'corelane.dev/retired': EARLIER, 'corelane.dev/made-of': text, a: 'b' },
      }),
    ]);
    expect(pods.resting).toBe(revision);
    expect(pods.revisions[1]).toEqual({
      ...{ revision, replicas: 1, template: made.template },
      annotations: {
        ...{ 'corelane.dev/revision-number': '1', 'corelane.dev/completed': 'then', 'corelane.dev/retired': EARLIER },
        'corelane.dev/made-of': text,
      },
    });
  });

  test('one that nobody remembers what it was made of keeps the template that it has', () => {
    const { pods } = plan([deployment('shop-0123456789', 1, 2)]);
    expect(pods.revisions[1]?.template).toMatchObject({ metadata: { labels: { of: 'shop-0123456789' } } });
  });

  test('what another one remembers is not believed: it would be other pods', () => {
    const { revision, text } = remembered();
    const other = remembered('shop:9');
    const of = (name: string, memory: string) =>
      foundRevisions(metadata, [deployment(name, 1, 1, { 'corelane.dev/made-of': memory })])[0]?.made;
    expect(of(`shop-${revision}`, text)).toBeDefined();
    expect(of(`shop-${revision}`, other.text)).toBeUndefined();
    // Its label alone is soon written.
    const forged = structuredClone(remembered().made);
    forged.template.spec = { containers: [{ name: 'other' }] };
    expect(of(`shop-${revision}`, madeText(forged) as string)).toBeUndefined();
    // That of a version without revisions has none.
    expect(of('shop', text)).toBeUndefined();
    expect(of('shop', madeText({ spec: {}, template: { spec: { containers: [] } } }) as string)).toBeDefined();
  });

  test('a rest that is to begin some day has begun now', () => {
    const { revision } = remembered();
    const forward = { 'corelane.dev/completed': EARLIER, 'corelane.dev/retired': '9999-12-31T00:00:00Z' };
    const { pods, next } = plan([
      deployment(`shop-${fresh.revision}`, 2, 2, { 'corelane.dev/completed': EARLIER }),
      deployment(`shop-${revision}`, 1, 1, forward),
    ]);
    expect(pods.revisions[1]?.annotations['corelane.dev/retired']).toBe(NOW);
    expect(next.againMs).toBe(Date.parse(NOW) + 900_000);
  });

  test('what rests makes room', () => {
    const rests = { 'corelane.dev/completed': EARLIER, 'corelane.dev/retired': EARLIER };
    const all = [
      deployment(`shop-${fresh.revision}`, 2, 2, { 'corelane.dev/completed': EARLIER }),
      deployment('shop-0123456789', 1, 1, rests),
    ];
    expect(plan(all).pods.revisions.map(({ replicas }) => replicas)).toEqual([2, 1]);
    expect(plan(all, 1).pods.revisions.map(({ replicas }) => replicas)).toEqual([2, 0]);
  });

  test('as long as pods of a version without revisions are there the Service leads to all', () => {
    const now = deployment(`shop-${fresh.revision}`, 1, 2);
    expect(plan([now, deployment('shop', 0, 1)]).pods.canRest).toBe(false);
    expect(plan([now, deployment('shop', 0, 0)]).pods.canRest).toBe(true);
  });

  test('the third of before is forgotten', () => {
    const retired = { 'corelane.dev/retired': EARLIER };
    const old = [1, 2, 3].map((number) => deployment(`shop-000000000${number}`, number, 0, retired));
    const { pods, forgotten } = plan([deployment(`shop-${fresh.revision}`, 4, 2), ...old]);
    expect(forgotten.map((one) => one.metadata.name)).toEqual(['shop-0000000001']);
    // The others have no pods, and are left alone.
    expect(pods.revisions.map(({ revision }) => revision)).toEqual([fresh.revision]);
  });

  test('of one without pods the cache keeps what it remembers: that is enough to come back, and to be taken back', () => {
    const { revision, made, text } = remembered();
    const name = `shop-${revision}`;
    const past = deployment(name, 1, 0, {
      ...{ 'corelane.dev/completed': 'then', 'corelane.dev/retired': '2025-12-31T00:00:00Z' },
      'corelane.dev/made-of': text,
    });
    const kept = reducePast(past);
    expect(JSON.stringify(kept)).not.toContain('containers');
    const of = (one: KubeObject) => foundRevisions(metadata, [one]).map(({ deployment: _unused, ...rest }) => rest);
    expect(of(kept)).toEqual(of(past));
    expect(of(kept)).toMatchObject([{ made, wasComplete: true, pods: 0 }]);
    // Somebody has scaled it: it is whole again, and gets its number.
    const scaled = deployment(name, 1, 3, past.metadata.annotations);
    expect(reducePast(scaled)).toBe(scaled);
    const now = deployment(`shop-${fresh.revision}`, 2, 2);
    expect(plan([now, kept]).pods.revisions).toHaveLength(1);
    expect(plan([now, scaled]).pods.revisions[1]).toMatchObject({
      revision,
      replicas: 0,
      template: made.template,
    });
  });
});

describe('the status', () => {
  const revision = (id: string, replicas: number, available: number, more: Partial<Revision> = {}): Revision => ({
    ...{ id, number: 1, replicas, available, wasComplete: true, canRest: true },
    ...more,
  });
  const next = (...revisions: Revision[]): Next => ({ phase: 'Rolling', revisions });
  const at = (before: RolloutStatus | undefined, now: Next, time = NOW) =>
    rolloutStatus(before, now, 900_000, new Date(time));
  const before = at(undefined, next(revision('b', 2, 1), revision('a', 3, 3)), EARLIER);

  test('has those with pods, and until when one rests', () => {
    const rests = revision('a', 1, 1, { retiredMs: Date.parse(EARLIER) });
    const gone = revision('c', 0, 0, { retiredMs: Date.parse(EARLIER) });
    expect(at(undefined, next(revision('b', 0, 0), rests, gone))).toEqual({
      ...{ phase: 'Rolling', revision: 'b', progressTime: NOW },
      revisions: [
        { revision: 'b', number: 1, replicas: 0, available: 0 },
        { revision: 'a', number: 1, replicas: 1, available: 1, restsUntil: '2026-01-01T00:24:00Z' },
      ],
    });
  });

  test.each<[what: string, now: Next, isProgress: boolean]>([
    ['nothing', next(revision('b', 2, 1), revision('a', 3, 3)), false],
    ['a pod that is no longer available', next(revision('b', 2, 0), revision('a', 3, 3)), false],
    ['an old pod that comes back', next(revision('b', 2, 1), revision('a', 4, 4)), false],
    ['another pod', next(revision('b', 2, 2), revision('a', 3, 3)), true],
    ['an old pod less', next(revision('b', 2, 1), revision('a', 2, 2)), true],
    ['another number', next(revision('b', 3, 1), revision('a', 3, 3)), true],
    ['another revision', next(revision('c', 2, 1), revision('b', 2, 1), revision('a', 3, 3)), true],
    ['another phase', { ...next(revision('b', 2, 1), revision('a', 3, 3)), phase: 'Paused' }, true],
  ])('progress: %s', (_what, now, isProgress) => expect(at(before, now).progressTime).toBe(isProgress ? NOW : EARLIER));

  test('is late after the deadline without any, and only while it rolls', () => {
    const seconds = (count: number) => new Date(Date.parse(EARLIER) + 1000 * count);
    expect([600, 601].map((count) => isLate(before, 600, seconds(count)))).toEqual([false, true]);
    expect(isLate({ ...before, phase: 'Paused' }, 600, seconds(9_999))).toBe(false);
    expect(isLate({ ...before, phase: 'Complete' }, 600, seconds(9_999))).toBe(false);
    expect([lateAfterMs(before, 600, seconds(600)), lateAfterMs(before, 600, seconds(601))]).toEqual([
      1_000,
      undefined,
    ]);
  });
});
