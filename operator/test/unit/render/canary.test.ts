/** What pods are told of a canary, by the live settings and the file beside them. */
import type { RenderServiceSpec } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { type LiveCanary, liveSerial, renderLive } from '../../../src/render/live.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const spec = renderServiceSpec.parse({ template }) as RenderServiceSpec;
const CANARY: LiveCanary = {
  ...{ revision: '19be04aa3c', stable: '7f3a9c21d0', share: 2_500, untilSeconds: 1_800_000_000, match: [] },
};
const live = (more: Partial<LiveCanary> = {}) => renderLive(spec, undefined, undefined, { ...CANARY, ...more });
const linesOf = (text: string) => text.split('\n').filter((line) => line.startsWith('canary-'));

test('the settings have both revisions, the share and its end; without a canary none of them', () => {
  expect(linesOf(live().settings)).toEqual([
    'canary-revision=110562159164',
    'canary-stable=546444157392',
    'canary-share=2500',
    'canary-until-s=1800000000',
  ]);
  expect(live()).not.toHaveProperty('canary');
  expect(linesOf(renderLive(spec).settings)).toEqual([]);
});

test('each of these is another serial, but for the end', () => {
  const serials = [
    renderLive(spec),
    live(),
    live({ share: 2_501 }),
    live({ revision: '19be04aa3d' }),
    live({ stable: '7f3a9c21d1' }),
    live({ key: { header: 'X-User' } }),
    live({ match: [{ header: 'X-User', value: '1' }] }),
  ].map(liveSerial);
  expect(new Set(serials).size).toBe(serials.length);
  expect(liveSerial(live({ untilSeconds: 0 }))).toBe(liveSerial(live()));
});

test('the file has a line for the key and for each rule', () => {
  const { canary } = live({
    key: { cookie: 'user' },
    match: [
      { header: 'X-Tester', value: 'yes, of course' },
      { query: 'canary', value: '1' },
    ],
  });
  expect(canary?.split('\n').slice(1)).toEqual([
    'key cookie user',
    'match header X-Tester yes, of course',
    'match query canary 1',
    '',
  ]);
});

test.each<[string, Partial<LiveCanary>]>([
  ['a share below 0', { share: -1 }],
  ['a part of a hundredth', { share: 0.5 }],
  ['a revision that is none', { revision: 'x' }],
  ['a name with a blank', { match: [{ header: 'X A', value: '1' }] }],
  ['a name that ends the line', { key: { header: 'X\nmatch header A 1' } }],
  ['a value that ends the line', { match: [{ header: 'X', value: '1\nkey header A' }] }],
  ['an empty value', { match: [{ query: 'X', value: '' }] }],
  ['a value beyond ASCII', { match: [{ cookie: 'X', value: 'ä' }] }],
  ['a value that is too long', { match: [{ cookie: 'X', value: 'x'.repeat(257) }] }],
])('%s cannot stand in a file', (_what, more) => expect(() => live(more)).toThrow(RangeError));
