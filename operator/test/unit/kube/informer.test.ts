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

test('what was made anew before the watch has said the deletion is there', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const rest = await clientOf(async (request, response) => {
    if (!request.url?.includes('watch'))
      return response.end(JSON.stringify({ metadata: { resourceVersion: '10' }, items: [service('9')] }));
    response.flushHeaders();
    await promise;
    response.write(`${JSON.stringify({ type: 'DELETED', object: service('12') })}\n`);
  });
  const cache = new Informer({ rest, kind: kinds.service, onError: () => {} });
  informers.push(cache);
  await cache.start();
  cache.remember(service('13'));
  resolve();
  await eventually('the deletion has been seen', () => expect(cache.list()).toEqual([]));
  expect(cache.get('shop', 'web')).toEqual(service('13'));
});

describe('events that come late', () => {
  type Said = [type: string, name: string, resourceVersion: string];
  const named = (name: string, resourceVersion: string) => {
    const { metadata, ...others } = service(resourceVersion);
    return { ...others, metadata: { ...metadata, name } };
  };

  /** What of `web` is in a cache whose list has `listed` and whose watch has said `events`, and what it told. */
  async function seenAfter(listed: string[], ...events: Said[]) {
    const watchedFrom: string[] = [];
    const rest = await clientOf((request, response) => {
      const query = new URL(request.url ?? '', 'http://localhost').searchParams;
      if (!query.has('watch')) {
        const items = listed.map((version) => named('web', version));
        return response.end(JSON.stringify({ metadata: { resourceVersion: '10' }, items }));
      }
      watchedFrom.push(query.get('resourceVersion') ?? '');
      if (watchedFrom.length > 1) return response.flushHeaders();
      for (const [type, name, version] of [...events, ['ADDED', 'last', '99']] as Said[])
        response.write(`${JSON.stringify({ type, object: named(name, version) })}\n`);
      return events.at(-1)?.[0] === 'BOOKMARK' ? response.end() : response.flushHeaders();
    });
    const told: string[] = [];
    const informer = new Informer({ rest, kind: kinds.service, onError: () => {} });
    informers.push(informer);
    informer.onChange(({ metadata: { name, resourceVersion } }) => told.push(`${name} ${resourceVersion}`));
    await informer.start();
    await eventually('all events have been read', () => expect(told).toContain('last 99'));
    return { version: informer.get('shop', 'web')?.metadata.resourceVersion, told: told.slice(0, -1), watchedFrom };
  }

  test.each<[what: string, listed: string[], events: Said[], version: string | undefined, told: string[]]>([
    [
      'an older change',
      [],
      [
        ['ADDED', 'web', '11'],
        ['MODIFIED', 'web', '13'],
        ['MODIFIED', 'web', '12'],
      ],
      '13',
      ['web 11', 'web 13'],
    ],
    [
      'an older change, with fewer digits',
      ['9'],
      [
        ['MODIFIED', 'web', '100'],
        ['MODIFIED', 'web', '99'],
      ],
      '100',
      ['web 9', 'web 100'],
    ],
    ['a change that the list has', ['10'], [['MODIFIED', 'web', '9']], '10', ['web 10']],
    ['a change of what the list no longer has', [], [['MODIFIED', 'web', '10']], undefined, []],
    [
      'a change of what has been deleted since',
      ['8'],
      [
        ['DELETED', 'web', '12'],
        ['MODIFIED', 'web', '11'],
      ],
      undefined,
      ['web 8', 'web 12'],
    ],
    [
      'a deletion of what has been made anew since',
      ['8'],
      [
        ['ADDED', 'web', '13'],
        ['DELETED', 'web', '12'],
      ],
      '13',
      ['web 8', 'web 13'],
    ],
  ])('%s changes nothing', async (...[, listed, events, version, told]) => {
    expect(await seenAfter(listed, ...events)).toMatchObject({ version, told });
  });

  test.each<[what: string, events: Said[], version: string, told: string[]]>([
    [
      'made anew after a deletion',
      [
        ['DELETED', 'web', '12'],
        ['ADDED', 'web', '13'],
      ],
      '13',
      ['web 8', 'web 12', 'web 13'],
    ],
    [
      'of which another object is ahead',
      [
        ['ADDED', 'api', '12'],
        ['MODIFIED', 'web', '11'],
      ],
      '11',
      ['web 8', 'api 12', 'web 11'],
    ],
    [
      'whose version is no integer',
      [
        ['MODIFIED', 'web', '12'],
        ['MODIFIED', 'web', 'b'],
      ],
      'b',
      ['web 8', 'web 12', 'web b'],
    ],
  ])('an object %s counts', async (...[, events, version, told]) => {
    expect(await seenAfter(['8'], ...events)).toMatchObject({ version, told });
  });

  test('a watch goes on from the latest version that one has said', async () => {
    const events: Said[] = [
      ['ADDED', 'web', '120'],
      ['MODIFIED', 'web', '12'],
      ['BOOKMARK', '', '13'],
    ];
    const { watchedFrom, ...seen } = await seenAfter([], ...events);
    expect(seen).toEqual({ version: '120', told: ['web 120'] });
    await eventually('the next watch has begun', () => expect(watchedFrom).toEqual(['10', '120']));
  });
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

  test('counts whatever the watch has said before, also where its versions begin anew', async () => {
    let [version, isFirst] = ['30', true];
    const rest = await clientOf((request, response) => {
      if (request.url?.includes('watch')) {
        if (isFirst) response.write(`${JSON.stringify({ type: 'MODIFIED', object: service('31') })}\n`);
        isFirst = false;
        return response.flushHeaders();
      }
      return response.end(JSON.stringify({ metadata: { resourceVersion: version }, items: [service(version)] }));
    });
    const cache = new Informer({ rest, kind: kinds.service, onError: () => {} });
    informers.push(cache);
    await cache.start();
    await eventually('the change is there', () => expect(cache.get('shop', 'web')).toEqual(service('31')));
    version = '20';
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
