/** What the caches keep of a pod, or of a Deployment: whoever may write one decides what is in it. */
import { reducePod, withoutForeignContent } from '../../src/controller/cached-parts.ts';
import type { KubeObject } from '../../src/kube/types.ts';

test('of ten thousand containers that are called workers those are kept that could be', () => {
  const names = Array.from({ length: 10_000 }, (_unused, n) => `worker-${n}`);
  const spec = { containers: names.map((name) => ({ name, resources: { requests: { cpu: '1' } } })) };
  const pod = reducePod({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec });
  expect(Object.keys(pod.workerCores as object)).toHaveLength(100);
});

describe('a Deployment that names a RenderService as its owner', () => {
  const owner = {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    name: 'shop',
    uid: 'u',
    controller: true,
  };
  const deployment = (name: string, labels: object, more: object = {}) =>
    ({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, ownerReferences: [owner] } },
      spec: { replicas: 1, selector: { matchLabels: labels, ...more } },
    }) as unknown as KubeObject;
  const shop = { 'corelane.dev/renderservice': 'shop' };
  const first = { ...shop, 'corelane.dev/revision': '0123456789' };

  test.each<[what: string, deployment: KubeObject, isKept: boolean]>([
    ['a revision', deployment('shop-0123456789', first), true],
    ['that of a version without revisions', deployment('shop', shop), true],
    ['a copy of any name', deployment('shop-copy', first), false],
    ['a copy with the name of a revision', deployment('shop-aaaaaaaaaa', first), false],
    ['a copy with the name of the service', deployment('shop', first), false],
    ['one that selects pods of others, too', deployment('shop-0123456789', shop), false],
    ['one that selects less', deployment('shop-0123456789', { ...first, app: 'a' }), false],
    ['one that selects by more', deployment('shop-0123456789', first, { matchExpressions: [{ key: 'a' }] }), false],
  ])('%s', (_what, object, isKept) => {
    const kept = withoutForeignContent(object);
    expect(kept.spec !== undefined).toBe(isKept);
    expect(kept.metadata.name).toBe(object.metadata.name);
  });
});
