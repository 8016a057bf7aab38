/** What keeps evictions waiting; pods that are missing are in api/why-no-pods.test.ts. */

import type { KubeObject } from '../../src/kube/types.ts';
import { evictionProblem, podProblem } from '../../src/pods/problems.ts';

const budget = (status: object) => ({ status }) as unknown as KubeObject;

test('a budget that allows no eviction is told, with its reason', () => {
  const blocked = { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 2, expectedPods: 3 };
  expect(evictionProblem(budget(blocked))).toBe(
    'evictions (kubectl drain, a node upgrade) wait: 1 of 3 pods are healthy, and 2 must stay',
  );
  expect(evictionProblem(budget({ ...blocked, currentHealthy: 3, desiredHealthy: 3 }))).toBe(
    'evictions (kubectl drain, a node upgrade) wait: disruptionBudget.maxUnavailable allows none',
  );
  expect(evictionProblem(budget({ ...blocked, disruptionsAllowed: 1 }))).toBeUndefined();
  // Of no pods, not yet looked at, switched off.
  expect(evictionProblem(budget({ ...blocked, expectedPods: 0 }))).toBeUndefined();
  expect(evictionProblem(budget({}))).toBeUndefined();
  expect(evictionProblem(undefined)).toBeUndefined();
});

test('a pod that a node has for less than a minute may just be starting', () => {
  const since = '2026-01-01T00:00:00Z';
  const pod = {
    metadata: { name: 'a' },
    status: {
      conditions: [
        { type: 'PodScheduled', status: 'True', lastTransitionTime: since },
        { type: 'PodReadyToStartContainers', status: 'False' },
      ],
    },
  } as unknown as KubeObject;
  const after = (seconds: number) => podProblem([pod], new Date(Date.parse(since) + seconds * 1_000));
  expect(after(59)).toBeUndefined();
  expect(after(60)).toMatch(/^pod a has a node, which does not get it ready: a volume/);
});
