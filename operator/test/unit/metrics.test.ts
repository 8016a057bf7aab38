/** The operator's page of metrics: what is on it, of whom, and that docs/metrics.md has all of it. */
import { OPERATOR_METRICS } from '../../gen/metrics/operator.ts';
import type { RenderServiceResource } from '../../src/api/resource.ts';
import type { ScalingFigures } from '../../src/controller/autoscaler.ts';
import { createMetrics } from '../../src/metrics.ts';
import { trackRenderServices } from '../../src/renderservice-metrics.ts';

function service(name: string, spec: object = {}, status: object = {}): RenderServiceResource {
  const metadata = { name, namespace: 'web', uid: `uid-${name}`, generation: 1, resourceVersion: '1' };
  return { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderService', metadata, spec, status };
}

/** A registry over these RenderServices, which a test may change. */
function registryOf(list: RenderServiceResource[], scaling: Record<string, ScalingFigures> = {}) {
  const metrics = createMetrics('1.2.3');
  metrics.trackQueueDepth(() => 0);
  metrics.trackDataPlane(() => ({ waiting: 0, held: 0 }));
  trackRenderServices(metrics.registry, {
    list: () => list,
    revisions: () => new Map([['uid-shop', '6f7d9c']]),
    scalingOf: (uid) => scaling[uid],
  });
  return metrics.registry;
}

/** Lines of the page about RenderServices. */
async function page(registry: ReturnType<typeof registryOf>): Promise<string[]> {
  const text = await registry.metrics();
  return text.split('\n').filter((line) => /^corelane_(renderservice|scaling)/.test(line));
}

interface Registered {
  name: string;
  type: string;
  help: string;
  labelNames: string[];
}

test('the table of docs/metrics.md has what is registered: names, types, labels', () => {
  const registered = registryOf([]).getMetricsAsArray() as unknown as Registered[];
  const own = registered.filter(({ name }) => !/^(process|nodejs)_/.test(name));
  const rows = own.map(({ name, type, labelNames }) => ({ name, type, labels: labelNames }));
  const byName = (one: { name: string }, other: { name: string }) => one.name.localeCompare(other.name);
  const table = OPERATOR_METRICS.map(({ name, type, labels }) => ({ name, type, labels: [...labels] }));
  expect(rows.toSorted(byName)).toEqual(table.toSorted(byName));
  expect(own.filter(({ help }) => help.trim() === '')).toEqual([]);
  expect(OPERATOR_METRICS.filter(({ meaning }) => meaning.trim() === '' || meaning.includes('|'))).toEqual([]);
});

test('a RenderService with everything', async () => {
  const conditions = [
    { type: 'Ready', status: 'True', reason: 'AllPodsReady' },
    { type: 'Stalled', status: 'False', reason: 'UpToDate' },
    { type: 'ScalingActive', status: 'Unknown', reason: 'FillingWindow' },
  ];
  const shop = service(
    'shop',
    {
      replicas: 5,
      scaling: { minReplicas: 2, maxReplicas: 9, occupancy: { scaleUp: { abovePercent: 70 } } },
      objectives: { availability: 99.9, latency: { p50: '1s', p99: '3s' } },
    },
    { readyReplicas: 4, updatedReplicas: 3, workers: { total: 20, ready: 15 }, conditions },
  );
  const decisions = [{ direction: 'up', reason: 'QueueFull', count: 7 }] as const;
  const registry = registryOf([shop], { 'uid-shop': { utilization: 0.25, decisions: [...decisions] } });
  const own = 'namespace="web",renderservice="shop"';
  expect(await page(registry)).toEqual([
    `corelane_scaling_utilization_ratio{${own}} 0.25`,
    `corelane_scaling_decisions_total{${own},direction="up",reason="QueueFull"} 7`,
    `corelane_renderservice_info{${own},revision="6f7d9c"} 1`,
    `corelane_renderservice_replicas{${own},state="wanted"} 5`,
    `corelane_renderservice_replicas{${own},state="ready"} 4`,
    `corelane_renderservice_replicas{${own},state="updated"} 3`,
    `corelane_renderservice_replicas_min{${own}} 2`,
    `corelane_renderservice_replicas_max{${own}} 9`,
    `corelane_renderservice_workers{${own},state="total"} 20`,
    `corelane_renderservice_workers{${own},state="ready"} 15`,
    `corelane_renderservice_condition{${own},type="Ready",reason="AllPodsReady"} 1`,
    `corelane_renderservice_condition{${own},type="Stalled",reason="UpToDate"} 0`,
    `corelane_renderservice_condition{${own},type="ScalingActive",reason="FillingWindow"} -1`,
    `corelane_renderservice_scaling_threshold_ratio{${own},direction="up"} 0.7`,
    `corelane_renderservice_scaling_threshold_ratio{${own},direction="down"} 0.45`,
    `corelane_renderservice_objective_ratio{${own},objective="availability"} 0.999`,
    `corelane_renderservice_objective_ratio{${own},objective="p50"} 0.5`,
    `corelane_renderservice_objective_ratio{${own},objective="p99"} 0.99`,
    `corelane_renderservice_objective_latency_seconds{${own},objective="p50"} 1`,
    `corelane_renderservice_objective_latency_seconds{${own},objective="p99"} 3`,
    `corelane_renderservice_objective_latency_weight_ratio{${own},objective="p50",le="1"} 1`,
    `corelane_renderservice_objective_latency_weight_ratio{${own},objective="p50",le="1.0"} 1`,
    `corelane_renderservice_objective_latency_weight_ratio{${own},objective="p99",le="2.5"} 0.8`,
    `corelane_renderservice_objective_latency_weight_ratio{${own},objective="p99",le="5"} 0.2`,
    `corelane_renderservice_objective_latency_weight_ratio{${own},objective="p99",le="5.0"} 0.2`,
  ]);
});

test('one that is new has what is known of it, and nothing that is not', async () => {
  const fresh = service('fresh', { replicas: 2 });
  expect(await page(registryOf([fresh]))).toEqual([
    'corelane_renderservice_info{namespace="web",renderservice="fresh",revision=""} 1',
    'corelane_renderservice_replicas{namespace="web",renderservice="fresh",state="wanted"} 2',
  ]);
});

test('what is wrong in a spec, or strange in a status, is left out or a value, and the page stays a page', async () => {
  const type = 'a"} 1\ncorelane_operator_leader 7\\';
  const wrong = service(
    'wrong',
    { replicas: 'many', scaling: { maxReplicas: -1 }, objectives: { availability: 101, latency: 7 } },
    { readyReplicas: Number.POSITIVE_INFINITY, conditions: [{ type, status: 'True' }] },
  );
  expect(await page(registryOf([wrong, service('none', undefined), { ...wrong, spec: null } as never]))).toEqual([
    'corelane_renderservice_info{namespace="web",renderservice="wrong",revision=""} 1',
    'corelane_renderservice_info{namespace="web",renderservice="none",revision=""} 1',
    'corelane_renderservice_info{namespace="web",renderservice="wrong",revision=""} 1',
    ...Array(2).fill(
      'corelane_renderservice_condition{namespace="web",renderservice="wrong",type="a\\"} 1\\ncorelane_operator_leader 7\\\\",reason=""} 1',
    ),
  ]);
});

test('a change is on the next page, and nothing is left of one that is gone', async () => {
  const list = [service('shop', { replicas: 2 }), service('blog', { replicas: 1 })];
  const scaling = { 'uid-blog': { utilization: 0.5, decisions: [] } };
  const registry = registryOf(list, scaling);
  const wanted = (name: string, value: number) =>
    `corelane_renderservice_replicas{namespace="web",renderservice="${name}",state="wanted"} ${value}`;
  expect(await page(registry)).toEqual(expect.arrayContaining([wanted('shop', 2), wanted('blog', 1)]));
  list.splice(0, 2, service('shop', { replicas: 7 }));
  const next = await page(registry);
  expect(next).toContain(wanted('shop', 7));
  expect(next.filter((line) => line.includes('blog'))).toEqual([]);
  list.pop();
  expect(await page(registry)).toEqual([]);
});

test('the version is there', async () => {
  expect(await registryOf([]).metrics()).toContain('\ncorelane_operator_info{version="1.2.3"} 1\n');
});
