/** A collection is read in pages that fit its objects, whatever these are. */
import { kinds } from '../../../src/kube/kinds.ts';
import { list } from '../../../src/kube/list.ts';
import { TooLongError } from '../../../src/kube/rest.ts';
import { clientOf, closeServers } from '../../support/scripted-server.ts';

afterEach(closeServers);

const KIB = 1024;

/** Lists objects of these sizes; what was asked for, and how much was answered. */
async function listed(sizes: number[]) {
  const pages: { limit: number; bytes: number }[] = [];
  const rest = await clientOf((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://localhost');
    const [limit, from] = [Number(searchParams.get('limit')), Number(searchParams.get('continue') ?? 0)];
    const items = sizes
      .slice(from, from + limit)
      .map((size, index) => ({ metadata: { name: `o${from + index}`, annotations: { a: 'x'.repeat(size) } } }));
    const more = from + limit < sizes.length ? { continue: String(from + limit) } : {};
    const text = JSON.stringify({ metadata: { resourceVersion: '7', ...more }, items });
    pages.push({ limit, bytes: text.length });
    response.end(text);
  });
  const all = list(rest, kinds.configMap, undefined, 'a', ({ kind, apiVersion, metadata }) => ({
    ...{ kind, apiVersion },
    metadata: { name: metadata.name },
  }));
  return { pages, all: await all.catch((error) => error) };
}

const names = (count: number) =>
  Array.from({ length: count }, (_unused, index) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `o${index}` },
  }));

test.each([
  ['none', 0, 0],
  ['small ones', 3_000, 100],
  ['pods', 1_000, 20 * KIB],
  ['configurations', 500, 60 * KIB],
  ['ones of a megabyte', 20, KIB * KIB],
])('%s', async (_what, count, size) => {
  const { pages, all } = await listed(Array(count).fill(size));
  expect(all).toEqual({ items: names(count), version: '7' });
  // As soon as it knows how large they are: two megabytes, and not many small pages.
  const [, ...others] = pages.filter(({ bytes }) => bytes <= 8 * KIB * KIB);
  for (const { bytes } of others) expect(bytes).toBeLessThan(3 * KIB * KIB);
  expect(others.length).toBeLessThanOrEqual(Math.ceil((count * size) / (KIB * KIB)) + 10);
});

test('large ones among small ones', async () => {
  const sizes = Array.from({ length: 2_000 }, (_unused, index) => (index % 500 === 499 ? 3 * KIB * KIB : 100));
  const { pages, all } = await listed(sizes);
  expect(all.items).toHaveLength(2_000);
  expect(pages.length).toBeLessThan(60);
});

test('one that is longer than a page may be is an error', async () => {
  const { all } = await listed([100, 9 * KIB * KIB]);
  expect(all).toBeInstanceOf(TooLongError);
});
