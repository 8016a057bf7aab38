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
