/** `corelane rollout`: what undo writes, and what is said of a change. */

import { abortion, promotion, retrial } from '../../../cli/rollout/canary.ts';
import type { Listed, Resource } from '../../../cli/rollout/service.ts';
import { managerFromGit } from '../../../cli/rollout/service.ts';
import { historyLines, standingOf } from '../../../cli/rollout/told.ts';
import { undoOf } from '../../../cli/rollout/undo.ts';
import { mergePatch, specBefore } from '../../../src/api/undo.ts';

const template = (image: string) => ({ spec: { containers: [{ name: 'worker', image }] } });

function resource(spec: object, more: object = {}): Resource {
  const metadata = { name: 'shop', namespace: 'web', uid: 'u', generation: 3, resourceVersion: '9' };
  return { apiVersion: '', kind: '', metadata, spec: { template: template('shop:2'), ...spec }, ...more } as Resource;
}

function listed(number: number, spec: object | undefined, more: Partial<Listed> = {}): Listed {
  return {
    ...{ deployment: `shop-${number}`, revision: `r${number}`, number, replicas: 1, available: 1, created: 'then' },
    ...{ image: `shop:${number}`, wasComplete: true, isRetired: number < 3 },
    made: spec && { spec: { template: template(`shop:${number}`), ...spec }, template: {} },
    ...more,
  };
}

describe('the spec of before', () => {
  test('has what pods were made of, and live settings and the size of now', () => {
    const now = {
      ...{ replicas: 9, workersPerPod: 4, template: template('shop:2'), queue: { maxLength: 50, timeout: '20s' } },
      ...{ concurrency: 8, rollout: { paused: true } },
    };
    const before = {
      ...{ replicas: 2, workersPerPod: 2, template: template('shop:1'), queue: { maxLength: 10, timeout: '10s' } },
      ...{ balance: 'first', cache: { ttl: [{ pathPrefix: '/', value: '1s' }] } },
    };
    expect(specBefore(now, before)).toEqual({
      ...{ replicas: 9, workersPerPod: 2, template: template('shop:1'), queue: { maxLength: 50, timeout: '10s' } },
      ...{ concurrency: 8, rollout: { paused: true }, balance: 'first' },
      cache: { ttl: [{ pathPrefix: '/', value: '1s' }] },
    });
  });

  test('lacks what was not there', () => {
    expect(specBefore({ cache: { enabled: true }, queue: { maxLength: 1, timeout: '1s' }, sidecar: {} }, {})).toEqual({
      queue: { maxLength: 1 },
    });
  });

  test('as a merge patch', () => {
    const [now, before] = [
      { a: 1, b: { c: 1, d: [1] }, e: 2 },
      { a: 1, b: { d: [2], f: 3 }, g: 4 },
    ];
    expect(mergePatch(now, before)).toEqual({ b: { c: null, d: [2], f: 3 }, e: null, g: 4 });
    expect(mergePatch(now, now)).toEqual({});
  });
});

describe('undo', () => {
  const now = resource({ replicas: 5, concurrency: 4 });

  test('goes to the last one that was all there, and leaves live settings and replicas', () => {
    const all = [listed(3, { template: template('shop:2') }), listed(2, {}, { wasComplete: false }), listed(1, {})];
    const { to, spec } = undoOf(now, all, undefined);
    expect([to.number, spec]).toEqual([1, { template: template('shop:1') }]);
  });

  test('goes to the one of a number', () => {
    const all = [listed(3, { template: template('shop:2') }), listed(2, { workersPerPod: 3 }), listed(1, {})];
    expect(undoOf(now, all, 2).spec).toEqual({ workersPerPod: 3 });
    expect(() => undoOf(now, all, 7)).toThrow('there is no revision 7, only 3, 2, 1');
  });

  test('brings live settings along that the pods of before need', () => {
    // Auto and a number are other pods.
    const all = [listed(3, { template: template('shop:2') }), listed(2, { concurrency: 'Auto' })];
    expect(undoOf(now, all, undefined).spec).toMatchObject({ concurrency: 'Auto' });
  });

  test('takes a live setting away that the pods of before had from another field', () => {
    const [fixed, before] = [{ framework: 'Next', concurrency: 1 }, { framework: 'Next' }];
    const all = [listed(3, { template: template('shop:2'), ...fixed }), listed(2, before)];
    expect(undoOf(resource({ replicas: 5, ...fixed }), all, undefined).spec).toEqual({ concurrency: null });
  });

  test('never brings back how large the service was, and who could reach it', () => {
    const before = {
      ...{ concurrency: 'Auto', replicas: 40, scaling: { minReplicas: 20, maxReplicas: 90 }, objectives: {} },
      ...{ service: { type: 'LoadBalancer' }, networkPolicy: { enabled: false }, disruptionBudget: { enabled: false } },
      rollout: { paused: true },
    };
    const all = [listed(3, { template: template('shop:2') }), listed(2, before)];
    expect(Object.keys(undoOf(resource({ concurrency: 4 }), all, undefined).spec)).toEqual(['concurrency']);
  });

  test('does not take an update of the operator for a change', () => {
    const same = { template: template('shop:2') };
    expect(() => undoOf(now, [listed(3, same), listed(2, same)], undefined)).toThrow('use helm rollback');
    expect(undoOf(now, [listed(3, same), listed(2, same), listed(1, {})], undefined).to.number).toBe(1);
    expect(() => undoOf(now, [listed(3, same)], undefined)).toThrow('there is no revision before this one');
  });

  test('does not guess', () => {
    const all = [listed(3, {}), listed(2, undefined)];
    expect(() => undoOf(now, all, 2)).toThrow('it is not known what revision 2 was made of');
  });
});

test('who keeps it as a repository says', () => {
  const written = (manager: string, more: object = {}) =>
    resource({}, { metadata: { managedFields: [{ manager, fieldsV1: { 'f:spec': {} }, ...more }] } });
  expect(managerFromGit(written('argocd-controller'))).toBe('argocd-controller');
  expect(managerFromGit(written('kustomize-controller'))).toBe('kustomize-controller');
  expect(managerFromGit(written('kubectl-client-side-apply'))).toBeUndefined();
  expect(managerFromGit(written('argocd-controller', { subresource: 'status' }))).toBeUndefined();
  expect(managerFromGit(written('argocd-controller', { fieldsV1: { 'f:metadata': {} } }))).toBeUndefined();
});

describe('how it stands', () => {
  const one = (revision: string, number: number, replicas: number, available: number, restsUntil?: string) => ({
    ...{ revision, number, replicas, available },
    ...(restsUntil && { restsUntil }),
  });
  const standing = (rollout: object | undefined, conditions: object[] = [], more: object = {}) => {
    const status = { observedGeneration: 3, rollout, conditions, ...more };
    return standingOf(resource({ replicas: 4 }, { status }));
  };
  const base = { revision: 'b', progressTime: 'then' };
  const ready = { type: 'Ready', status: 'True' };

  test.each([
    [
      'rolling',
      { ...base, phase: 'Rolling', revisions: [one('b', 2, 2, 1), one('a', 1, 3, 3)] },
      [],
      'revision 2 (b): 1 of 4 pods are available; 3 of revision 1 (a) serve',
    ],
    [
      'complete',
      { ...base, phase: 'Complete', revisions: [one('b', 2, 4, 4), one('a', 1, 1, 1, 'T')] },
      [ready],
      'revision 2 (b): 4 of 4 pods are available; revision 1 rests until T (1 pods)',
    ],
    [
      'rolling',
      { ...base, phase: 'Complete', revisions: [one('b', 2, 4, 3)] },
      [{ ...ready, status: 'False' }],
      '3 of 4',
    ],
    ['paused', { ...base, phase: 'Paused', revisions: [one('b', 2, 0, 0)] }, [], 'corelane rollout resume shop'],
    [
      'stalled',
      { ...base, phase: 'Rolling', revisions: [one('b', 2, 2, 0)] },
      [{ type: 'Stalled', status: 'True', message: 'no such image' }],
      'no such image',
    ],
  ])('%s', (outcome, rollout, conditions, text) => {
    const found = standing(rollout, conditions);
    expect([found.outcome, found.text]).toEqual([outcome, expect.stringContaining(text)]);
  });

  test('says what pods lack, and at once that a new one is refused', () => {
    const counts = '1 of 4 pods are available, 1 run the current template, 1 exist';
    const lacking = { type: 'Ready', status: 'False', message: `${counts}; pods cannot be made: exceeded quota` };
    const rolling = { ...base, phase: 'Rolling', revisions: [one('b', 2, 2, 1)] };
    expect(standing(rolling, [lacking])).toEqual({
      outcome: 'rolling',
      text: 'revision 2 (b): 1 of 4 pods are available; pods cannot be made: exceeded quota',
    });
    const refused = [{ type: 'Stalled', status: 'True', message: 'Service "shop" exists' }];
    expect(standing(undefined, refused)).toEqual({ outcome: 'stalled', text: 'Service "shop" exists' });
    expect(standing(undefined, refused, { observedGeneration: 2 }).outcome).toBe('rolling');
  });

  test('is not known before the operator has looked', () => {
    const old = { ...base, phase: 'Complete', revisions: [one('b', 2, 4, 4)] };
    expect(standing(old, [ready], { observedGeneration: 2 }).outcome).toBe('rolling');
    expect(standing(undefined).outcome).toBe('rolling');
  });
});

describe('a canary', () => {
  const revision = '19be04aa3c';
  const of = (phase: string, canary: object = {}, more: object = {}, annotations: object = {}) => {
    const told = { revision, attempt: 1, step: 2, steps: 3, share: 25, appliedPods: 4, pods: 5, since: 'then' };
    const rollout = {
      ...{ phase, revision, revisions: [], progressTime: 'then', reason: 'Counting', message: 'step 2 of 3: 25 %' },
      ...{ canary: { ...told, ...canary }, stable: { revision: 'a', replicas: 4, available: 4 }, ...more },
    };
    const metadata = { name: 'shop', generation: 3, annotations };
    return resource({ replicas: 4 }, { metadata, status: { observedGeneration: 3, rollout, conditions: [] } });
  };

  test.each([
    [
      'rolling',
      of('Stepping'),
      /^canary 19be04aa3c, 25 %: step 2 of 3: 25 %; 4 of 5 pods know it; stable a: 4 of 4 pods$/,
    ],
    ['rolling', of('Aborting'), /4 of 5 pods know it/],
    ['paused', of('Paused', {}, { reason: 'AwaitingApproval' }), /: corelane rollout promote shop$/],
    ['paused', of('Paused', {}, { reason: 'UserPaused' }), /: corelane rollout resume shop$/],
    ['stalled', of('Stepping', {}, { reason: 'NoProgress' }), /25 %/],
    ['stalled', of('Aborted', {}, { message: 'its pods did not become available' }), /^its pods did not/],
  ])('is %s', (outcome, service, text) =>
    expect(standingOf(service)).toEqual({ outcome, text: expect.stringMatching(text) }),
  );

  test('tells what it is judged by', () => {
    const [requests, errors] = [
      { canary: 80, stable: 1_500 },
      { canary: 2, stable: 1 },
    ];
    const [renders, slow] = [
      { canary: 70, stable: 1_400 },
      { canary: 5, stable: 60 },
    ];
    const analysis = { requests, errors, renders, slow, evidence: { errors: 12, slow: 1 } };
    const text = (more: object) => standingOf(of('Stepping', { analysis: { ...analysis, ...more } })).text;
    const told = 'stable a: 4 of 4 pods; errors 2 of 80 (stable 1 of 1500), evidence 12 of 100';
    expect(text({})).toMatch(new RegExp(`${told.replaceAll(/[()]/g, '\\$&')}$`));
    expect(text({ slowMs: 118.9 })).toContain(
      `${told}, slower than 119 ms 5 of 70 (stable 60 of 1400), evidence 1 of 100`,
    );
  });

  const annotations = (told: { annotations: object }) => told.annotations;
  const abort = { 'corelane.dev/rollout-abort': revision };

  test('promote passes the present step, or all; of a later try it says which', () => {
    const [step, all] = [{ all: false }, { all: true }];
    const name = 'corelane.dev/rollout-promote';
    expect(annotations(promotion(of('Paused'), step))).toEqual({ [name]: `${revision}:2` });
    expect(annotations(promotion(of('Paused', { attempt: 3 }), step))).toEqual({ [name]: `${revision}#3:2` });
    expect(annotations(promotion(of('Preparing', { step: 0 }), all))).toEqual({ [name]: revision });
    expect(() => promotion(of('Preparing', { step: 0 }), step)).toThrow('not at its first step yet');
    expect(() => promotion(of('Aborted'), step)).toThrow('corelane rollout retry shop');
  });

  test('abort is of every try; retry takes away what would abort it again', () => {
    expect(annotations(abortion(of('Stepping', { attempt: 2 })))).toEqual(abort);
    const retry = { 'corelane.dev/rollout-retry': `${revision}#2` };
    expect(annotations(retrial(of('Aborted')))).toEqual(retry);
    expect(annotations(retrial(of('Aborted', {}, {}, abort)))).toEqual({
      ...retry,
      'corelane.dev/rollout-abort': null,
    });
    expect(() => retrial(of('Stepping'))).toThrow('is not aborted');
  });

  test('there is none', () => {
    const none = resource({}, { status: { rollout: { phase: 'Complete', revisions: [] } } });
    for (const tell of [() => promotion(none, { all: true }), () => abortion(none), () => retrial(none)])
      expect(tell).toThrow('shop has no canary');
  });
});

test('the history', () => {
  const all = [
    listed(4, {}, { wasComplete: false, replicas: 2, available: 0 }),
    listed(3, {}, { isRetired: false }),
    listed(2, {}),
    listed(1, {}, { replicas: 0, available: 0, wasComplete: false }),
  ];
  expect(historyLines(all)).toEqual([
    'REVISION  NAME  PODS  STATE                              MADE  IMAGE',
    '4         r4    0/2   asked for, not all there yet       then  shop:4',
    '3         r3    1/1   serves, goes away                  then  shop:3',
    '2         r2    1/1   rests                              then  shop:2',
    '1         r1    0/0   without pods, was never all there  then  shop:1',
  ]);
});
