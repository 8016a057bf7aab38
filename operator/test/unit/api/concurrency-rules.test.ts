/** concurrency: Auto: what it may be together with, and what is said where it may not. */
import { concurrencyBounds } from '../../../src/api/spec/concurrency.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const parse = (spec: object) => renderServiceSpec.safeParse({ template, ...spec });

test.each([
  [{}, { min: 1, max: 1 }],
  [{ concurrency: 7 }, { min: 7, max: 7 }],
  [{ concurrency: 'Auto' }, { min: 1, max: 16 }],
  [
    { concurrency: 'Auto', concurrencyRange: { max: 4 } },
    { min: 1, max: 4 },
  ],
  [
    { concurrency: 'Auto', concurrencyRange: { min: 3 } },
    { min: 3, max: 16 },
  ],
  [
    { concurrency: 'Auto', concurrencyRange: { min: 64, max: 64 } },
    { min: 64, max: 64 },
  ],
  [{ framework: 'Next' }, { min: 1, max: 16 }],
  [
    { framework: 'SvelteKit', concurrencyRange: { max: 4 } },
    { min: 1, max: 4 },
  ],
  [
    { framework: 'Nuxt', concurrency: 2 },
    { min: 2, max: 2 },
  ],
  // Where Auto would be refused.
  [
    { framework: 'Next', balance: 'first' },
    { min: 1, max: 1 },
  ],
  [
    { framework: 'Next', webSockets: { enabled: true } },
    { min: 1, max: 1 },
  ],
  [
    { framework: 'Next', runtime: { instrument: false } },
    { min: 1, max: 1 },
  ],
])('%j: from %j', (spec, bounds) => {
  const { data, error } = parse(spec);
  expect(error).toBeUndefined();
  expect(data && concurrencyBounds(data)).toEqual(bounds);
});

test.each([
  [{ concurrency: 'auto' }, 'concurrency', /a number from 1 to 1000, or Auto/],
  [{ concurrency: 0 }, 'concurrency', /Too small/],
  [{ concurrency: 1.5 }, 'concurrency', /a number from 1 to 1000, or Auto/],
  [{ concurrency: '2' }, 'concurrency', /a number from 1 to 1000, or Auto/],
  [{ concurrency: 2, concurrencyRange: { max: 4 } }, 'concurrencyRange', /is for concurrency: Auto/],
  [{ concurrencyRange: { max: 4 } }, 'concurrencyRange', /is for concurrency: Auto/],
  [{ framework: 'Next', balance: 'first', concurrencyRange: {} }, 'concurrencyRange', /is for concurrency: Auto/],
  [{ concurrency: 'Auto', concurrencyRange: { min: 5, max: 4 } }, 'concurrencyRange', /min must not be larger/],
  [{ concurrency: 'Auto', concurrencyRange: { max: 65 } }, 'concurrencyRange.max', /64/],
  [{ concurrency: 'Auto', concurrencyRange: { min: 0 } }, 'concurrencyRange.min', /1/],
  [{ concurrency: 'Auto', runtime: { instrument: false } }, 'concurrency', /runtime\.instrument/],
  [{ concurrency: 'Auto', balance: 'first' }, 'balance', /leave it out/],
  [{ concurrency: 'Auto', webSockets: { enabled: true } }, 'webSockets.enabled', /another RenderService/],
  [{ concurrency: 'Auto', webSockets: { maxPerWorker: 17 } }, 'webSockets.maxPerWorker', /larger than concurrency/],
])('%j: refused at %s', (spec, path, message) => {
  const issues = parse(spec).error?.issues.map((issue) => ({ path: issue.path.join('.'), message: issue.message }));
  expect(issues).toEqual(expect.arrayContaining([{ path, message: expect.stringMatching(message) }]));
});

test('the most that it may be counts among the requests that a worker keeps account of', () => {
  const classes = (concurrency: number) => [
    { name: 'api', match: [{ pathPrefix: '/api/' }], concurrency, queue: { maxLength: 1 } },
  ];
  const sidecar = { nginx: { memoryLimit: '8Gi' } };
  const spec = { concurrency: 'Auto', workersPerPod: 1, sidecar };
  expect(parse({ ...spec, classes: classes(984) }).error).toBeUndefined();
  expect(parse({ ...spec, classes: classes(985) }).error?.issues[0]?.message).toMatch(/1000/);
});
