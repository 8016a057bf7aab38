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
    ...match.map(
      ({ method = '', path, pathPrefix, pathSuffix }) =>
        `${method} ${path ?? (pathPrefix ? `${pathPrefix}*` : `*${pathSuffix}`)}`,
    ),
    concurrency,
  ]);

test.each([
  [
    'Next',
    [
      ['image', ' /_next/image', ' /_next/image/', 2],
      ['data', 'GET /_next/data*', 10],
    ],
  ],
  [
    'Nuxt',
    [
      ['image', ' /_ipx*', 2],
      ['data', 'GET */_payload.json', 2],
    ],
  ],
  ['SvelteKit', [['data', 'GET */__data.json', 10]]],
  ['ReactRouter', [['data', 'GET *.data', 10]]],
  [
    'Astro',
    [
      ['image', ' /_image', ' /_image/', 2],
      ['data', 'GET /_server-islands*', 2],
    ],
  ],
  ['Angular', []],
] as const)('classes of %s', (framework, expected) => {
  expect(classes({ framework })).toEqual(expected);
});

test('they are below the base path', () => {
  expect(classes({ framework: 'Next', basePath: '/shop' })).toEqual([
    ['image', ' /shop/_next/image', ' /shop/_next/image/', 2],
    ['data', 'GET /shop/_next/data*', 10],
  ]);
  expect(presetPhrases(specOf({ framework: 'Nuxt', basePath: '/shop' }))).toEqual(
    expect.arrayContaining(['nginx serves /shop/_nuxt/ from .output/public/_nuxt']),
  );
});

test('a program with a fixed number of requests gets no further one with code of its pages', () => {
  for (const concurrency of [1, 7]) {
    expect(classes({ framework: 'Next', concurrency }).map(([name]) => name)).toEqual(['image']);
    // A page, unless the application has @nuxt/image.
    expect(classes({ framework: 'Nuxt', concurrency })).toEqual([]);
    expect(presetPhrases(specOf({ framework: 'Nuxt', concurrency }))).toContain(
      'there is no class image: concurrency is not Auto',
    );
  }
  expect(classes({ framework: 'SvelteKit', webSockets: { enabled: true } })).toEqual([]);
});

test('classes of the resource are all that there are', () => {
  expect(classes({ framework: 'Next', classes: [] })).toEqual([]);
  expect(classes({ framework: 'Next', classes: [api] }).map(([name]) => name)).toEqual(['api']);
  expect(classes({})).toEqual([]);
});

test.each([
  {},
  { cache: { enabled: true } },
  { workersPerPod: 12 },
  { cache: { enabled: true }, workersPerPod: 12 },
  { sidecar: { nginx: { memoryLimit: '64Mi' } } },
])('both classes fit, and streams beside them: %j', (input) => {
  const spec = specOf({ framework: 'Next', ...input });
  const found = classesOf(spec);
  expect(found.map(({ name }) => name)).toEqual(['image', 'data']);
  const [image, data] = found.map(({ queue }) => queue.maxLength) as [number, number];
  expect([image, data].every((length) => length > 0)).toBe(true);
  expect([image <= 40, data <= 20]).toEqual([true, true]);
  expect(classRequests({ classes: found, workersPerPod: spec.workersPerPod })).toBeLessThan(classRequestsMax(spec));
  // Streams without a slot have a part of it.
  expect(budget(spec).withoutSlot).toBeGreaterThan(0);
});

test('the queues are shorter where nginx has memory for fewer requests', () => {
  const lengths = (input: object) =>
    classesOf(specOf({ framework: 'Next', ...input })).map((one) => one.queue.maxLength);
  expect(lengths({})).toEqual([40, 20]);
  expect(Math.max(...lengths({ sidecar: { nginx: { memoryLimit: '64Mi' } } }))).toBeLessThan(20);
});

test('data requests wait for as long as a page may take, and a pod that drains waits for them', () => {
  const [image, data] = classesOf(specOf({ framework: 'Next', timeouts: { render: '45s' } }));
  expect(image?.timeouts).toEqual({ idle: '60s', drain: '60s' });
  expect(data?.timeouts).toEqual({ idle: '45s', drain: '45s' });
});

test.each([{ workersPerPod: 64 }, { concurrency: 257 }])('there is no room, and that is said: %j', (input) => {
  const spec = specOf({ framework: 'Next', ...input });
  expect(classesOf(spec)).toEqual([]);
  expect(presetPhrases(spec)).toContain(
    'there is no class image: sidecar.nginx.memoryLimit is too small for it, or concurrency is more than 256',
  );
});

test('the largest number of requests with a class', () => {
  expect(classes({ framework: 'Next', concurrency: 256 }).map(([name]) => name)).toEqual(['image']);
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
