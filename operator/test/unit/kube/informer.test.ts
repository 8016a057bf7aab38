/** What the cache of a kind takes for true: what the watch says, and what a write has returned before that. */
import { Informer } from '../../../src/kube/informer.ts';
import { kinds } from '../../../src/kube/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { clientOf, closeServers } from '../../support/scripted-server.ts';

const informers: Informer[] = [];
afterEach(async () => {
  for (const informer of informers.splice(0)) informer.stop();
  await closeServers();
});

const service = (resourceVersion: string) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name: 'web', resourceVersion },
});

/** A cache whose list (of version 10) is empty, and whose watch has said all of `changes`. */
async function cacheThatSaw(...changes: [type: string, resourceVersion: string][]): Promise<Informer> {
  const rest = await clientOf((request, response) => {
    if (!request.url?.includes('watch')) return response.end('{"metadata":{"resourceVersion":"10"},"items":[]}');
    for (const [type, version] of changes) response.write(`${JSON.stringify({ type, object: service(version) })}\n`);
    return response.flushHeaders();
  });
  let seen = 0;
  const informer = new Informer({ rest, kind: kinds.service, onError: () => {} });
  informers.push(informer);
  informer.onChange(() => {
    seen += 1;
  });
  await informer.start();
  await eventually('all changes have been seen', () => expect(seen).toBe(changes.length));
  return informer;
}

test('a write counts until the watch has said it', async () => {
  const cache = await cacheThatSaw();
  cache.remember(service('11'));
  expect(cache.get('shop', 'web')).toEqual(service('11'));
});

test('what was deleted before the answer to the write came is not there', async () => {
  const cache = await cacheThatSaw(['ADDED', '11'], ['DELETED', '12']);
  cache.remember(service('11'));
  expect(cache.get('shop', 'web')).toBeUndefined();
});

test('what was made anew after that is there', async () => {
  const cache = await cacheThatSaw(['ADDED', '11'], ['DELETED', '12']);
  cache.remember(service('13'));
  expect(cache.get('shop', 'web')).toEqual(service('13'));
});

test('what was changed before the answer came is as it was changed', async () => {
  const cache = await cacheThatSaw(['ADDED', '11'], ['MODIFIED', '12']);
  cache.remember(service('11'));
  expect(cache.get('shop', 'web')).toEqual(service('12'));
});

describe('a refresh', () => {
  /** A server whose n-th list has the n-th of `lists` in it, as its version and that of its object. */
  async function cacheOf(lists: (string | Promise<string>)[]): Promise<{ cache: Informer; asked: () => number }> {
    let asked = 0;
    const rest = await clientOf(async (request, response) => {
      if (request.url?.includes('watch')) return response.flushHeaders();
      asked += 1;
      const version = await lists[asked - 1];
      response.end(JSON.stringify({ metadata: { resourceVersion: version }, items: [service(version as string)] }));
    });
    const cache = new Informer({ rest, kind: kinds.service, onError: () => {} });
    informers.push(cache);
    return { cache, asked: () => asked };
  }

  test('shows what the watch has not said yet', async () => {
    const { cache } = await cacheOf(['10', '20']);
    await cache.start();
    expect(cache.get('shop', 'web')).toEqual(service('10'));
    await cache.refresh();
    expect(cache.get('shop', 'web')).toEqual(service('20'));
  });

  test('that fails says why, and tries until it can', async () => {
    let isBroken = false;
    const rest = await clientOf((request, response) => {
      if (request.url?.includes('watch')) return response.flushHeaders();
      if (isBroken) response.statusCode = 503;
      return response.end(isBroken ? '{"message":"not now"}' : '{"metadata":{"resourceVersion":"10"},"items":[]}');
    });
    const cache = new Informer({ rest, kind: kinds.service, onError: () => {} });
    informers.push(cache);
    await cache.start();
    expect(cache.obstacle).toBeUndefined();
    isBroken = true;
    const refreshed = cache.refresh();
    await eventually('it says so', () => expect(cache.obstacle).toMatch(/^cannot list services: .*not now/));
    isBroken = false;
    await refreshed;
    expect(cache.obstacle).toBeUndefined();
  });

  test('waits for a list that has begun after it was asked for', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const { cache, asked } = await cacheOf([promise, '20']);
    const started = cache.start();
    await eventually('the first list is under way', () => expect(asked()).toBe(1));
    const refreshed = cache.refresh();
    resolve('10');
    await started;
    await refreshed;
    expect([cache.get('shop', 'web'), asked()]).toEqual([service('20'), 2]);
  });
});
