/** Some worlds in which pods are missing or do not run, one of each kind; why-no-pods.load.test.ts has all of them. */
import { readFileSync } from 'node:fs';
import { endWorld, GOLDEN, rowOf, WORLDS } from './why-no-pods.ts';

const SOME = [
  'a ResourceQuota that is used up',
  'an admission policy of somebody else',
  'too little CPU',
  'an image that is not there',
  'a program that ends at once',
  'assets that the image has not got',
];

afterEach(endWorld);

test('the worlds are there', () => {
  expect(WORLDS.map(({ what }) => what)).toEqual(expect.arrayContaining(SOME));
});

test.each(WORLDS.map((one, index) => ({ ...one, index })).filter(({ what }) => SOME.includes(what)))(
  '$what',
  async ({ index, ...one }) => {
    const row = await rowOf(one, `why-no-pods-${index}`);
    if (!process.env.UPDATE_GOLDEN) expect(readFileSync(GOLDEN, 'utf8')).toContain(`${row}\n`);
  },
);
