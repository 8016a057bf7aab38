/** What a live field may change: the live settings, and not a byte of the pod template. */
import { REACH, reachOf } from '../../../src/api/live.ts';
import { parseRenderService, type RenderService } from '../../../src/api/resource.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { desiredObjects } from '../../../src/plan/index.ts';
import { renderLive } from '../../../src/render/live.ts';
import { HOSTILE_COUNT, HOSTILE_SEED, hostileResource } from '../../support/hostile.ts';

const CACHE = { enabled: true, ttl: [{ pathPrefix: '/a', value: '5s' }] };
const class1 = { name: 'one', match: [{ visitor: 'Crawler' as const }] };
const class2 = { name: 'two', match: [{ visitor: 'Prefetch' as const }] };
const classes = (first: object, second: object) => ({
  priority: {
    classes: [
      { ...class1, delay: '9s', ...first },
      { ...class2, delay: '3s', ...second },
    ],
  },
});

function planned(input: object) {
  const template = { spec: { containers: [{ name: 'worker', image: 'shop:1' }] } };
  const spec = renderServiceSpec.parse({ template, ...input });
  const metadata = { name: 'shop', namespace: 'default', uid: 'u', generation: 1, resourceVersion: '1' };
  const objects = desiredObjects(
    { metadata, spec } as RenderService,
    { image: 'sidecar:1' },
    { namespace: 'corelane-system', monitoring: [] },
  );
  const find = (kind: string, name: string) =>
    objects.find(({ kind: one, metadata: { name: of } }) => one === kind && of.startsWith(name)) as Record<
      string,
      unknown
    >;
  const { template: pods } = find('Deployment', 'shop-').spec as { template: unknown };
  return { template: JSON.stringify(pods), live: JSON.stringify(find('ConfigMap', 'shop-live').data) };
}

const LIVE: [field: string, one: object, other: object][] = [
  ['concurrency', { concurrency: 1 }, { concurrency: 16 }],
  ['concurrency', { concurrency: 17 }, { concurrency: 64 }],
  ['concurrencyRange', { concurrency: 'Auto' }, { concurrency: 'Auto', concurrencyRange: { min: 3, max: 60 } }],
  ['queue.maxLength', { queue: { maxLength: 0 } }, { queue: { maxLength: 10_000 } }],
  ['timeouts.render', { timeouts: { render: '10s' } }, { timeouts: { render: '1m' } }],
  ['timeouts.render', { timeouts: { render: '61s' } }, { timeouts: { render: '10m' } }],
  // Classes of a preset follow from other fields.
  ['concurrency', { framework: 'Next', concurrency: 1 }, { framework: 'Next', concurrency: 64 }],
  [
    'timeouts.render',
    { framework: 'SvelteKit', timeouts: { render: '10s' } },
    { framework: 'SvelteKit', timeouts: { render: '1m' } },
  ],
  [
    'limits.perClient.requests',
    { limits: { perClient: { requests: 1 } } },
    { limits: { perClient: { requests: 10_000 } } },
  ],
  ['pooling.acrossRevisions', {}, { pooling: { acrossRevisions: true } }],
  ['pooling.maxAsks', { pooling: { maxAsks: 1 } }, { pooling: { maxAsks: 16 } }],
  ['readiness.shedWhenFull', { readiness: { shedWhenFull: true } }, { readiness: { shedWhenFull: false } }],
  ['priority.classes[].delay', classes({}, {}), classes({ delay: '10s' }, { delay: '9s' })],
  ['priority.classes[].maxQueue', classes({}, {}), classes({ maxQueue: '90%' }, { maxQueue: '1%' })],
  ['cache.maxTtl', { cache: CACHE }, { cache: { ...CACHE, maxTtl: '4h' } }],
  ['cache.staleWhileRevalidate', { cache: CACHE }, { cache: { ...CACHE, staleWhileRevalidate: '9s' } }],
  ['cache.staleIfError', { cache: CACHE }, { cache: { ...CACHE, staleIfError: '9s' } }],
  ['cache.ttl[].value', { cache: CACHE }, { cache: { ...CACHE, ttl: [{ pathPrefix: '/a', value: '9s' }] } }],
  ['fallback.html', { fallback: { html: 'one' } }, { fallback: { html: 'another' } }],
  ['rollout.stickiness', {}, { rollout: { stickiness: { cookie: 'Always' } } }],
  ['rollout.stickiness', {}, { rollout: { stickiness: { cookie: 'Off' } } }],
];

test.each(LIVE)('%s is live: %j, %j', (field, one, other) => {
  expect(reachOf(field)[0]).toBe('live');
  const [before, after] = [planned(one), planned(other)];
  expect(after.template).toBe(before.template);
  expect(after.live).not.toBe(before.live);
});

test('each live field has been looked at', () => {
  const live = Object.keys(REACH).filter((field) => reachOf(field)[0] === 'live');
  expect([...new Set(LIVE.map(([field]) => field))].toSorted()).toEqual(live.toSorted());
});

test.each<[string, object, object]>([
  ['a number and Auto', { concurrency: 2 }, { concurrency: 'Auto' }],
  ['past a step of the number', { concurrency: 64 }, { concurrency: 65 }],
  ['WebSockets', { webSockets: { enabled: true } }, { webSockets: { enabled: true }, concurrency: 4 }],
  ['past a step of the time', { timeouts: { render: '1m' } }, { timeouts: { render: '61s' } }],
  ['below 10 s', { timeouts: { render: '9s' } }, { timeouts: { render: '8s' } }],
  ['the time of a handler', { timeouts: { handler: '5m' } }, { timeouts: { handler: '6m' } }],
  ['another order of the classes', classes({}, {}), classes({ delay: '2s' }, {})],
  ['no page is kept there', { cache: CACHE }, { cache: { ...CACHE, ttl: [{ pathPrefix: '/a', value: '0s' }] } }],
  ['a limit at all', {}, { limits: { perClient: { requests: 5 } } }],
  ['a page at all', { fallback: undefined }, { fallback: { html: 'one' } }],
  [
    'nobody asks anybody any more',
    { pooling: { enabled: false } },
    { pooling: { enabled: false }, readiness: { shedWhenFull: false } },
  ],
])('it is rolling all the same: %s', (_what, one, other) => {
  expect(planned(other).template).not.toBe(planned(one).template);
});

test.each<[string, object]>([
  ['replicas', { replicas: 9 }],
  ['scaling', { scaling: { maxReplicas: 9 } }],
  ['service', { service: { port: 81 } }],
  ['rollout', { rollout: { rolling: { minReadySeconds: 9 } } }],
  ['disruptionBudget', { disruptionBudget: { maxUnavailable: 2 } }],
  ['networkPolicy', { networkPolicy: { enabled: false } }],
  ['objectives', { objectives: { availability: 99.9, latency: { p99: '500ms' } } }],
])('%s is not about the inside of pods', (field, spec) => {
  expect(reachOf(`${field}.x`)[0]).toBe('operator');
  expect(planned(spec)).toEqual(planned({}));
});

test('whatever a resource says, the file has numbers in it', () => {
  let files = 0;
  for (let index = 0; index < HOSTILE_COUNT; index += 1) {
    const parsed = parseRenderService(hostileResource(HOSTILE_SEED, index));
    if (!parsed.ok) continue;
    files += 1;
    const { settings } = renderLive(parsed.renderService.spec);
    expect(settings).toMatch(/^# [^\n]+\nversion=1\nserial=[0-9a-f]{16}\n([a-z0-9-]+=[0-9]+\n)+$/);
  }
  expect(files).toBeGreaterThan(HOSTILE_COUNT / 10);
});

test('what is below a field is as the field is, and what nobody has thought of is rolling', () => {
  expect(reachOf('concurrencyRange.max')).toEqual(reachOf('concurrencyRange'));
  expect([reachOf('queue'), reachOf('queue.timeout'), reachOf('x.y')]).toEqual(Array(3).fill(['rolling']));
});
