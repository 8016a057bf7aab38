/** Resources with fields that this version does not know. */
import { parseRenderService, parseStored, type RenderServiceResource } from '../../../src/api/resource.ts';
import { podTemplate } from '../../support/world.ts';

function resource(spec: object): RenderServiceResource {
  const metadata = { name: 'a', namespace: 'n', uid: 'u', generation: 1, resourceVersion: '1' };
  return { apiVersion: '', kind: '', metadata, spec: { template: podTemplate(), ...spec } };
}

const novel = resource({
  novelty: { level: 3 },
  queue: { maxLength: 7, fairness: 'Strict' },
  cache: { ttl: [{ pathPrefix: '/', value: '1s', jitter: '2s' }] },
});

test('from an API server they are left out and named; all others count', () => {
  const parsed = parseStored(novel);
  const plain = parseStored(resource({ queue: { maxLength: 7 }, cache: { ttl: [{ pathPrefix: '/', value: '1s' }] } }));
  if (!parsed.ok || !plain.ok) throw new Error(JSON.stringify([parsed, plain]));
  expect(parsed.renderService).toEqual(plain.renderService);
  expect(parsed.unknown).toEqual(['spec.queue.fairness', 'spec.cache.ttl[0].jitter', 'spec.novelty']);
  expect(plain.unknown).toEqual([]);
  expect(novel.spec).toHaveProperty('novelty');
});

test('what somebody has written himself is refused', () => {
  expect(parseRenderService(novel)).toMatchObject({ ok: false });
});

test('a value that is wrong is wrong beside an unknown field, too', () => {
  const errors = [{ path: 'spec.queue.maxLength', message: expect.any(String) }];
  expect(parseStored(resource({ novelty: 1, queue: { maxLength: -1 } }))).toEqual({ ok: false, errors });
});
