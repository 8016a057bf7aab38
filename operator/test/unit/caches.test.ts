/** What the operator takes for true of a service: as it was last seen or written, however late the watch is. */
import { Caches } from '../../src/controller/caches.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { eventually } from '../support/eventually.ts';
import { clientOf, closeServers } from '../support/scripted-server.ts';

const SHOP = { namespace: 'web', name: 'shop', uid: 'U' };
const LABELS = { 'corelane.dev/renderservice': 'shop', 'corelane.dev/revision': '0123456789' };

function object(kind: string, name: string, version: string, owner?: object, more: object = {}): KubeObject {
  const apiVersion = kind === 'RenderService' ? 'corelane.dev/v1alpha1' : 'v1';
  const ownerReferences = owner && [{ apiVersion: 'corelane.dev/v1alpha1', controller: true, ...owner }];
  const metadata = { namespace: 'web', name, uid: `uid-${name}`, resourceVersion: version, labels: LABELS };
  return { apiVersion, kind, metadata: { ...metadata, ownerReferences }, ...more } as KubeObject;
}

const DEPLOYMENT = 'shop-0123456789';
const deployment = (version: string, replicas: number) =>
  object(
    'Deployment',
    DEPLOYMENT,
    version,
    { kind: 'RenderService', name: 'shop', uid: 'U' },
    {
      spec: { replicas, selector: { matchLabels: LABELS } },
    },
  );
const pod = (version: string, serving: string) => {
  const one = object('Pod', 'a', version, { kind: 'ReplicaSet', name: 'rs', uid: 'uid-rs' });
  return { ...one, metadata: { ...one.metadata, labels: { ...LABELS, 'corelane.dev/serving': serving } } };
};
const service = object('RenderService', 'shop', '1');

/** Of each kind, by the end of its path. */
const SEEN: Record<string, KubeObject[]> = {
  renderservices: [{ ...service, metadata: { ...service.metadata, uid: 'U' } }],
  deployments: [
    deployment('10', 1),
    // A copy under another name, with owner and selector of the first one.
    { ...deployment('10', 1), metadata: { ...deployment('10', 1).metadata, name: 'shop-copy', uid: 'uid-copy' } },
  ],
  replicasets: [
    object('ReplicaSet', 'rs', '10', { kind: 'Deployment', name: DEPLOYMENT, uid: `uid-${DEPLOYMENT}` }, { spec: {} }),
    object('ReplicaSet', 'rs-copy', '10', { kind: 'Deployment', name: 'shop-copy', uid: 'uid-copy' }, { spec: {} }),
    object(
      'ReplicaSet',
      'rs-b',
      '10',
      { kind: 'Deployment', name: 'shop-aaaaaaaaaa', uid: 'uid-shop-aaaaaaaaaa' },
      { spec: {} },
    ),
  ],
  pods: [
    pod('10', 'true'),
    // Of a ReplicaSet whose Deployment the watch has not told of yet.
    object('Pod', 'b', '10', { kind: 'ReplicaSet', name: 'rs-b', uid: 'uid-rs-b' }),
    // Of one that is not there, of something that is no ReplicaSet, of nobody.
    object('Pod', 'c', '10', { kind: 'ReplicaSet', name: 'rs', uid: 'uid-rs-c' }),
    object('Pod', 'd', '10', { kind: 'Job', name: 'rs', uid: 'uid-rs' }),
    object('Pod', 'e', '10', { kind: 'ReplicaSet', name: 'another', uid: 'uid-rs' }),
    object('Pod', 'f', '10'),
    object('Pod', 'g', '10', { kind: 'ReplicaSet', name: 'rs-copy', uid: 'uid-rs-copy' }),
  ],
};

let caches: Caches;

beforeEach(async () => {
  // Their watches never say anything.
  const rest = await clientOf((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    if (searchParams.has('watch')) return response.flushHeaders();
    const items = SEEN[pathname.split('/').at(-1) ?? ''] ?? [];
    return response.end(JSON.stringify({ metadata: { resourceVersion: '10' }, items }));
  });
  caches = new Caches(rest, [], (_kind, error) => {
    throw error;
  });
  await caches.start();
});

afterEach(async () => {
  caches.stop();
  await closeServers();
});

test('a Deployment that has been written is as it was written', () => {
  const replicas = () => caches.deploymentsOf(SHOP).map(({ spec }) => (spec as { replicas: number }).replicas);
  expect(replicas()).toEqual([1]);
  caches.owned('Deployment').remember(deployment('11', 2));
  expect(replicas()).toEqual([2]);
  caches.owned('Deployment').remember(deployment('9', 3));
  expect(replicas()).toEqual([1]);
});

test('a pod that has been labelled has that label', () => {
  const serving = () => caches.podsOf('web', 'shop').map(({ metadata }) => metadata.labels?.['corelane.dev/serving']);
  expect(serving()).toEqual(['true']);
  caches.pods.remember(pod('11', 'false'));
  expect(serving()).toEqual(['false']);
});

test('pods of a Deployment of which only the answer to its write is known are there', () => {
  const other = 'shop-aaaaaaaaaa';
  const labels = { ...LABELS, 'corelane.dev/revision': 'aaaaaaaaaa' };
  const made = object('Deployment', other, '11', { kind: 'RenderService', name: 'shop', uid: 'U' });
  const podsOf = () => caches.podsOf('web', 'shop').map(({ metadata }) => metadata.name);
  expect(podsOf()).toEqual(['a']);
  caches.owned('Deployment').remember({ ...made, spec: { replicas: 1, selector: { matchLabels: labels } } });
  expect(podsOf()).toEqual(['a', 'b']);
  caches.owned('Deployment').forget('web', other);
  expect(podsOf()).toEqual(['a']);
});

test('a pod is of the service that its controllers lead to, whatever its label says', () => {
  expect(caches.podsOf('web', 'other')).toEqual([]);
  expect(caches.podsOf('shop', 'shop')).toEqual([]);
  const all = caches.pods.list();
  expect(all.filter((one) => caches.ownerOf(one)).map(({ metadata }) => metadata.name)).toEqual(['a']);
});

test('what a user has changed is urgent; what pods and status say is not', async () => {
  const [first] = SEEN.renderservices as [KubeObject];
  const version = (number: number, generation: number, observedGeneration: number, annotations?: object) => ({
    type: 'MODIFIED',
    object: {
      ...first,
      metadata: { ...first.metadata, generation, resourceVersion: String(number), ...(annotations && { annotations }) },
      status: { observedGeneration },
    },
  });
  const said: [what: string, line: object, isUrgent: boolean][] = [
    ['another spec', version(11, 2, 1), true],
    ['its status', version(12, 2, 2), false],
    ['an annotation', version(13, 2, 2, { 'corelane.dev/rollout-promote': '0123456789' }), true],
    ['its status', version(14, 2, 2, { 'corelane.dev/rollout-promote': '0123456789' }), false],
    ['no annotation any more', version(15, 2, 2), true],
  ];
  const rest = await clientOf((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const kind = pathname.split('/').at(-1) ?? '';
    if (!searchParams.has('watch'))
      return response.end(JSON.stringify({ metadata: { resourceVersion: '10' }, items: SEEN[kind] ?? [] }));
    response.flushHeaders();
    if (kind === 'renderservices') for (const [, line] of said) response.write(`${JSON.stringify(line)}\n`);
    if (kind === 'pods') response.write(`${JSON.stringify({ type: 'MODIFIED', object: pod('11', 'true') })}\n`);
  });
  const watching = new Caches(rest, [], () => undefined);
  const told: string[] = [];
  watching.onChange((key, isUrgent) => told.push(`${key} ${isUrgent}`));
  await watching.start();
  const listed = Object.values(SEEN).flat().length;
  await eventually('all has been told', () => expect(told).toHaveLength(listed + said.length + 1));
  watching.stop();
  const urgent = told.filter((text) => text === 'web/shop true');
  expect(urgent).toHaveLength(said.filter(([, , isUrgent]) => isUrgent).length);
});
