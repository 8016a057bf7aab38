/** What the caches keep of a pod: whoever may write one decides what is in it. */
import { reducePod } from '../../src/controller/cached-parts.ts';

test('of ten thousand containers that are called workers those are kept that could be', () => {
  const names = Array.from({ length: 10_000 }, (_unused, n) => `worker-${n}`);
  const spec = { containers: names.map((name) => ({ name, resources: { requests: { cpu: '1' } } })) };
  const pod = reducePod({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec });
  expect(Object.keys(pod.workerCores as object)).toHaveLength(100);
});
