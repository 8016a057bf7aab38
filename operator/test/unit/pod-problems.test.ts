/** What keeps evictions waiting; pods that are missing are in api/why-no-pods.load.test.ts. */

import { reducePod } from '../../src/controller/cached-parts.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { evictionProblem, podProblem } from '../../src/pods/problems.ts';
import { proxyEndsAgain } from '../../src/pods/status.ts';

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

describe('a container that has ended', () => {
  const pod = (containers: object[], inits: object[] = []) =>
    ({
      metadata: { name: 'a' },
      status: { containerStatuses: containers, initContainerStatuses: inits },
    }) as unknown as KubeObject;
  const end = (exitCode: number, reason: string) => ({ terminated: { exitCode, reason } });
  const problem = (...parameters: Parameters<typeof pod>) => podProblem([pod(...parameters)], new Date());

  test('twice is a crash loop, also while kubelet does not say so, in the same words', () => {
    const ended = { name: 'worker-0', state: end(3, 'Error'), lastState: end(3, 'Error') };
    const backsOff = { ...ended, state: { waiting: { reason: 'CrashLoopBackOff' } } };
    expect(problem([ended])).toBe(
      'container worker-0 of pod a: CrashLoopBackOff (Error, exit code 3): kubectl logs a -c worker-0 --previous',
    );
    expect(problem([backsOff])).toBe(problem([ended]));
    expect(problem([{ ...ended, state: end(0, 'Completed') }])).toMatch(/CrashLoopBackOff \(Completed, exit code 0\)/);
  });

  test("says why itself if it is a proxy; a user's words stay in the log", () => {
    const message = 'this sidecar image speaks version 1 of the protocol, ...\n';
    const terminated = { exitCode: 1, reason: 'Error', message };
    const twice = (name: string) => ({ name, state: { terminated }, lastState: { terminated } });
    expect(problem([], [twice('haproxy')])).toBe(
      'container haproxy of pod a: CrashLoopBackOff (Error, exit code 1): "this sidecar image speaks version 1 of the protocol, ..."',
    );
    const told = (message: string, reason = 'Error') => {
      const terminated = { exitCode: 1, reason, message };
      return problem([], [{ name: 'nginx', state: { terminated }, lastState: { terminated } }]);
    };
    expect(told('\u001b[2Jone\u0000\nReady: all is well')).toMatch(/"\[2Jone"$/);
    expect(told('killed', 'OOMKilled')).toMatch(/give it a higher memory limit/);
    expect(told('no such file', 'StartError')).toMatch(/is the command in the image/);
    expect(problem([twice('worker-0')])).not.toContain('protocol');
  });

  test('once may not do so again', () => {
    expect(problem([{ name: 'worker-0', state: end(3, 'Error') }])).toBeUndefined();
  });

  test('is no problem where it is an init container that has come through', () => {
    const init = { name: 'migrate', state: end(0, 'Completed'), lastState: end(1, 'Error') };
    expect(problem([], [init])).toBeUndefined();
    expect(problem([], [{ ...init, state: end(1, 'Error') }])).toMatch(/^container migrate of pod a: CrashLoopBackOff/);
  });
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

describe('a proxy that ends again and again', () => {
  const nowMs = Date.parse('2026-01-05T12:00:00Z');
  const proxy = (restartCount: number, state: object, name = 'haproxy') => ({ name, ready: true, restartCount, state });
  const running = (agoMs: number) => ({ running: { startedAt: new Date(nowMs - agoMs).toISOString() } });
  const waiting = { waiting: { reason: 'CrashLoopBackOff' } };
  const endsAgain = (container: object, metadata: object = {}) =>
    proxyEndsAgain(
      [
        reducePod({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'a', ...metadata },
          status: { initContainerStatuses: [container], containerStatuses: [] },
        }),
      ],
      nowMs,
    );

  test('is one, whether it runs just now or not', () => {
    expect(endsAgain(proxy(2, waiting))).toBe(true);
    expect(endsAgain(proxy(2, running(5_000), 'nginx'))).toBe(true);
  });

  test("is none when it has ended once, or long ago, is the user's own, or goes with its pod", () => {
    expect(endsAgain(proxy(1, running(5_000)))).toBe(false);
    expect(endsAgain(proxy(9, running(600_000)))).toBe(false);
    expect(endsAgain(proxy(9, waiting, 'migrate'))).toBe(false);
    expect(endsAgain(proxy(9, waiting), { deletionTimestamp: '2026-01-05T11:59:00Z' })).toBe(false);
  });
});
