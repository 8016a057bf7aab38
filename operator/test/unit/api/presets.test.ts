/** What `framework` stands for, and that a field of the resource takes the place of it. */
import { classRequests, classRequestsMax } from '../../../src/api/class-rules.ts';
import { classesOf, presetPhrases, priorityOf } from '../../../src/api/presets.ts';
import type { RenderServiceSpec } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { workerContainers } from '../../../src/plan/workers.ts';
import { renderConfig } from '../../../src/render/index.ts';
import { budget } from '../../../src/render/model/budget.ts';

const FRAMEWORKS = ['Next', 'Nuxt', 'SvelteKit', 'ReactRouter', 'Astro', 'Angular'] as const;
const api = { name: 'api', match: [{ pathPrefix: '/api/' }] };

function specOf(input: object): RenderServiceSpec {
  const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
  return renderServiceSpec.parse({ template, ...input });
}

const classes = (input: object) =>
  classesOf(specOf(input)).map(({ name, match, concurrency }) => [
    name,
    ...match.map(({ method, pathPrefix, pathSuffix }) => `${method ?? ''} ${pathPrefix ?? `*${pathSuffix}`}`),
    concurrency,
  ]);

test.each([
  [
    'Next',
    [
      ['image', ' /_next/image', 2],
      ['data', 'GET /_next/data', 4],
    ],
  ],
  ['Nuxt', [['image', ' /_ipx', 2]]],
  ['SvelteKit', [['data', 'GET */__data.json', 4]]],
  ['ReactRouter', [['data', 'GET *.data', 4]]],
  ['Astro', [['image', ' /_image', 2]]],
  ['Angular', []],
] as const)('classes of %s', (framework, expected) => {
  expect(classes({ framework })).toEqual(expected);
});

test('they are below the base path', () => {
  expect(classes({ framework: 'Next', basePath: '/shop' })).toEqual([
    ['image', ' /shop/_next/image', 2],
    ['data', 'GET /shop/_next/data', 4],
  ]);
  expect(presetPhrases(specOf({ framework: 'Nuxt', basePath: '/shop' }))).toEqual(
    expect.arrayContaining(['nginx serves /shop/_nuxt/ from .output/public/_nuxt']),
  );
});

test('a program that gets one request at a time by its own word gets no second one with code of its pages', () => {
  for (const concurrency of [1, 7])
    expect(classes({ framework: 'Next', concurrency })).toEqual([['image', ' /_next/image', 2]]);
  expect(classes({ framework: 'SvelteKit', webSockets: { enabled: true } })).toEqual([]);
});

test('classes of the resource are all that there are', () => {
  expect(classes({ framework: 'Next', classes: [] })).toEqual([]);
  expect(classes({ framework: 'Next', classes: [api] }).map(([name]) => name)).toEqual(['api']);
  expect(classes({})).toEqual([]);
});

test.each([
  [{}, [40, 20]],
  [{ cache: { enabled: true } }, [29, 20]],
  [{ cache: { enabled: true }, workersPerPod: 12 }, [14, 14]],
  [{ sidecar: { nginx: { memoryLimit: '64Mi' } } }, [2, 2]],
  // No room for their places.
  [{ workersPerPod: 64 }, []],
  [{ concurrency: 256 }, [40]],
  [{ concurrency: 257 }, []],
])('how many may wait, by what nginx has memory for: %j', (input, lengths) => {
  const spec = specOf({ framework: 'Next', ...input });
  const found = classesOf(spec);
  expect(found.map(({ queue }) => queue.maxLength)).toEqual(lengths);
  expect(classRequests({ classes: found, workersPerPod: spec.workersPerPod })).toBeLessThan(classRequestsMax(spec));
  // Streams without a slot have a part of it.
  expect(budget(spec).withoutSlot).toBeGreaterThan(0);
});

test('what there is no room for is said', () => {
  const phrases = presetPhrases(specOf({ framework: 'Next', workersPerPod: 64 }));
  expect(phrases).toEqual(expect.arrayContaining(['there is no class image: sidecar.nginx.memoryLimit is too small']));
});

test.each([
  [{ framework: 'Next' }, ['prefetch']],
  [{ framework: 'Next', priority: {} }, ['prefetch', 'crawler']],
  [{ framework: 'Next', priority: { classes: [] } }, []],
  // HAProxy keeps the order of the queue for no longer.
  [{ framework: 'Next', queue: { timeout: '10m' } }, undefined],
  [{ framework: 'Nuxt' }, undefined],
  [{}, undefined],
])('who waits for whom: %j', (input, expected) => {
  const spec = specOf(input);
  expect(priorityOf(spec)?.classes.map(({ name }) => name)).toEqual(expected);
  expect(renderConfig(spec)['nginx.conf'].includes('$corelane_class {')).toBe((expected?.length ?? 0) > 0);
});

test.each([
  [{ framework: 'Next' }, {}, '127.0.0.1'],
  [{ framework: 'Next' }, { env: [{ name: 'HOSTNAME', value: '0.0.0.0' }] }, '0.0.0.0'],
  // It may be in there.
  [{ framework: 'Next' }, { envFrom: [{ configMapRef: { name: 'shop' } }] }, undefined],
  [{ framework: 'Nuxt' }, {}, undefined],
  [{}, {}, undefined],
])('HOSTNAME of the workers: %j, %j', (input, fields, expected) => {
  const template = { name: 'worker', image: 'example/app:1', ...fields };
  for (const instrument of [true, false]) {
    const [worker] = workerContainers(specOf({ ...input, runtime: { instrument } }), template);
    expect(worker?.env?.filter(({ name }) => name === 'HOSTNAME').map(({ value }) => value)).toEqual(
      expected === undefined ? [] : [expected],
    );
  }
});

test.each(FRAMEWORKS)('%s says what it stands for, and nothing that the resource says', (framework) => {
  const all = presetPhrases(specOf({ framework }));
  expect(all[0]).toMatch(/^nginx serves \//);
  expect(all).toContain('concurrency is Auto');
  const own = presetPhrases(specOf({ framework, assets: [], classes: [], concurrency: 2, priority: {} }));
  expect(own.join('\n')).not.toMatch(/nginx serves|class|Auto|prefetches/);
  expect(own.length).toBeLessThan(all.length);
});

test('without a framework there is nothing to say', () => {
  expect(presetPhrases(specOf({}))).toEqual([]);
});
