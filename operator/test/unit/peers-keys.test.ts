/** When the operator asks for the Secret of the peers: it cannot look, and must not write all the time. */
import { parseRenderService, type RenderService, type RenderServiceStatus } from '../../src/api/resource.ts';
import { noPeersKey, PeersKeys, tellsNoPeersKey } from '../../src/controller/peers-keys.ts';
import { ApiError, type RequestOptions, type Rest } from '../../src/kube/rest.ts';
import type { KubeObject } from '../../src/kube/types.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

let nowMs: number;
let posted: string[];
let failed: string[];
let answer: (key: string) => void;
let keys: PeersKeys;

beforeEach(() => {
  nowMs = 0;
  posted = [];
  failed = [];
  answer = () => {
    throw new ApiError(409, 'AlreadyExists', 'it is there');
  };
  const rest = {
    async request(method: string, path: string, { body }: RequestOptions) {
      const { metadata, data } = body as { metadata: { name: string }; data: { key: string } };
      posted.push(`${method} ${path} ${metadata.name}`);
      answer(Buffer.from(data.key, 'base64').toString());
    },
  } as unknown as Rest;
  const onFailed = async (_owner: RenderService, message: string) => void failed.push(message);
  keys = new PeersKeys({ rest, onCreated: () => {}, onFailed, nowMs: () => nowMs });
});

function renderService(uid: string): RenderService {
  const parsed = parseRenderService({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name: 'shop', namespace: 'default', uid, generation: 1, resourceVersion: '1' },
    spec: { template: { spec: { containers: [{ name: 'worker', image: 'shop:1' }] } } },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.renderService;
}

const shop = renderService('1');

function pods(...uids: string[]): KubeObject[] {
  return uids.map((uid) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: uid, uid } }));
}

test('once, and again after each resync, not for every reconcile', async () => {
  expect(await keys.ensure(shop, pods('a'))).toBeUndefined();
  expect(posted).toEqual(['POST /api/v1/namespaces/default/secrets shop-peers']);
  for (nowMs = SECOND; nowMs < 9 * MINUTE; nowMs += SECOND) await keys.ensure(shop, pods('a'));
  expect(posted).toHaveLength(1);
  nowMs = 10 * MINUTE;
  await keys.ensure(shop, pods('a'));
  expect(posted).toHaveLength(2);
});

test('for new pods, however many come at most every ten seconds', async () => {
  await keys.ensure(shop, []);
  for (let count = 1; count <= 300; count += 1) {
    nowMs = count * 100;
    const waitMs = await keys.ensure(shop, pods(...Array.from({ length: count }, (_unused, index) => `p${index}`)));
    if (nowMs % (10 * SECOND) !== 0) expect(waitMs).toBe(10 * SECOND - (nowMs % (10 * SECOND)));
  }
  expect(posted).toHaveLength(4);
  // Pods that go need none.
  nowMs += 20 * SECOND;
  expect(await keys.ensure(shop, pods('p1'))).toBeUndefined();
  expect(posted).toHaveLength(4);
});

test('for a RenderService of the same name that is another one', async () => {
  await keys.ensure(shop, []);
  await keys.ensure(renderService('2'), []);
  expect(posted).toHaveLength(2);
  keys.keepOnly(new Set(['2']));
  await keys.ensure(renderService('2'), []);
  await keys.ensure(shop, []);
  expect(posted).toHaveLength(3);
});

test('a failure stops nothing, is tried again after a minute, and told once without the key', async () => {
  answer = (key) => {
    throw new ApiError(403, 'Forbidden', `no ${key} and no ${Buffer.from(key).toString('base64')}`);
  };
  expect(await keys.ensure(shop, pods('a'))).toBe(MINUTE);
  nowMs = 30 * SECOND;
  expect(await keys.ensure(shop, pods('a', 'b'))).toBe(30 * SECOND);
  nowMs = MINUTE;
  expect(await keys.ensure(shop, pods('a', 'b'))).toBe(MINUTE);
  expect(posted).toHaveLength(2);
  expect(failed).toEqual(['no ... and no ...']);
});

test('a refusal is there to be told in status, until there is a Secret; a server that does not answer is not', async () => {
  const refuse = (status: number) => () => {
    throw new ApiError(status, 'Reason', 'no');
  };
  answer = refuse(503);
  await keys.ensure(shop, []);
  expect(keys.problemOf('1')).toBeUndefined();
  answer = refuse(403);
  nowMs += MINUTE;
  await keys.ensure(shop, []);
  expect(keys.problemOf('1')).toBe(noPeersKey('no'));
  answer = refuse(409);
  nowMs += MINUTE;
  await keys.ensure(shop, []);
  expect(keys.problemOf('1')).toBeUndefined();
});

test('a status that tells the same needs no other Event', () => {
  const status = (type: string, message: string) => ({ conditions: [{ type, message }] }) as RenderServiceStatus;
  expect(tellsNoPeersKey(status('Ready', `2 of 2 pods are ready; ${noPeersKey('no')}`), 'no')).toBe(true);
  expect(tellsNoPeersKey(status('Ready', `2 of 2 pods are ready; ${noPeersKey('no')}`), 'quota')).toBe(false);
  expect(tellsNoPeersKey(status('Ready', '2 of 2 pods are ready'), 'no')).toBe(false);
  expect(tellsNoPeersKey(undefined, 'no')).toBe(false);
});
