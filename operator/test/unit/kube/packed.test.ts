/** Parts of objects as caches keep them answer as whole ones. */
import { Packed, TextDigest, unpacked } from '../../../src/kube/packed.ts';
import { shared } from '../../../src/kube/shared.ts';
import { isSubset } from '../../../src/kube/subset.ts';

const VALUES = {
  short: { a: [1, 'é', null] },
  long: { text: 'ü😀'.repeat(3_000), b: { c: true } },
  text: 'x',
  zero: 0,
};

test.each(Object.entries(VALUES))('%s: packed and unpacked it is the same, another copy each time', (_what, value) => {
  const packed = new Packed(value);
  expect(unpacked(packed)).toEqual(value);
  expect(JSON.parse(JSON.stringify({ packed })).packed).toEqual(value);
  if (typeof value === 'object') expect(packed.value).not.toBe(packed.value);
  expect(unpacked(value)).toBe(value);
});

test('what was applied is in a packed part, or it is not', () => {
  const live = { spec: new Packed({ replicas: 2, requests: { cpu: '1' }, more: true }) };
  expect(isSubset({ spec: { replicas: 2, requests: { cpu: '1000m' } } }, live)).toBe(true);
  expect(isSubset({ spec: { replicas: 3 } }, live)).toBe(false);
  expect(isSubset({ spec: { other: {} } }, live)).toBe(true);
  // Of what must be there although it is empty.
  expect(isSubset({ spec: { runAsUser: 0 } }, live)).toBe(false);
  expect(isSubset({ spec: '' }, live)).toBe(false);
});

test('a text of which a digest is kept is that text and no other', () => {
  const live = { data: { a: new TextDigest('text') } };
  expect(isSubset({ data: { a: 'text' } }, live)).toBe(true);
  for (const a of ['text ', '', undefined, { sha256: 'x' }, 0]) expect(isSubset({ data: { a } }, live)).toBe(false);
  expect(() => JSON.stringify(live)).toThrow('only a digest is kept');
});

test('what is alike is the same, and nobody can change it', () => {
  const make = () => ({ a: ['x'.repeat(20)], b: { c: 1 } });
  const one = shared(make());
  expect(shared(make())).toBe(one);
  expect(one).toEqual(make());
  expect(() => {
    one.b.c = 2;
  }).toThrow(TypeError);
  expect(shared('["a"]')).toBe('["a"]');
  expect(shared(['a'])).toEqual(['a']);
  expect(shared('["a"]')).toBe('["a"]');
  expect(shared(undefined)).toBeUndefined();
  expect(shared(null)).toBeNull();
});

test('what is long is kept as it is, and what nobody asks for any more is forgotten', () => {
  const long = { a: 'x'.repeat(2_000) };
  expect(shared(long)).toBe(long);
  expect(Object.isFrozen(long)).toBe(false);
  const before = shared({ first: true });
  for (let n = 0; n < 20_000; n += 1) shared({ n });
  expect(shared({ first: true })).not.toBe(before);
});
