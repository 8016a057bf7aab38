/** What the operator's metrics say about RenderServices: they come, follow changes, and go, with a real API server. */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

let world: World;
let leader: OperatorProcess;
let standby: OperatorProcess;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'metrics');
  leader = await world.startOperator('operator-a');
  standby = await OperatorProcess.start(world.settings('operator-b'));
});

afterAll(() => OperatorProcess.killAll());

/** Series about a RenderService, `name{label=value ...} value` without the labels that say which one it is. */
async function seriesOf(operator: OperatorProcess, renderservice: string): Promise<string[]> {
  const samples = await operator.metrics();
  return samples
    .filter(({ labels }) => labels.renderservice === renderservice && labels.namespace === world.namespace)
    .map(({ name, labels: { namespace: _namespace, renderservice: _renderservice, ...labels }, value }) => {
      // Which one a condition has is what the tests of the status are about.
      if (name === 'corelane_renderservice_condition') delete labels.reason;
      const text = Object.entries(labels).map(([label, of]) => `${label}=${of}`);
      return `${name.replace(/^corelane_renderservice_/, '')}{${text.join(' ')}} ${value}`;
    });
}

function untilSeries(renderservice: string, ...expected: string[]): Promise<void> {
  return eventually(`metrics of ${renderservice} are ${expected}`, async () => {
    expect(await seriesOf(leader, renderservice)).toEqual(expect.arrayContaining(expected));
  });
}

/** The one that its pods have as a label. */
async function untilRevision(name: string): Promise<string> {
  return await eventually(`${name} has a revision, which is that of its pods`, async () => {
    const pods = (await world.list('Pod')).filter(
      ({ metadata }) => metadata.labels['corelane.dev/renderservice'] === name,
    );
    const infos = (await seriesOf(leader, name)).filter((series) => series.startsWith('info{'));
    const hashes = new Set(pods.map(({ metadata }) => metadata.labels['corelane.dev/revision']));
    expect(infos).toHaveLength(1);
    const revision = /^info\{revision=(\w+)\} 1$/.exec(infos[0] as string)?.[1];
    expect([...hashes]).toContain(revision);
    return revision as string;
  });
}

test('a RenderService is there, with its conditions, and comes up', async () => {
  await world.createRenderService('shop', { replicas: 2, workersPerPod: 3 });
  await untilSeries('shop', 'replicas{state=wanted} 2', 'replicas{state=ready} 0', 'condition{type=Ready} 0');
  await eventually('it is ready', async () => {
    await world.makePodsReady('shop');
    expect(await seriesOf(leader, 'shop')).toEqual(
      expect.arrayContaining([
        ...['replicas{state=ready} 2', 'replicas{state=updated} 2', 'workers{state=total} 6', 'workers{state=ready} 6'],
        ...['condition{type=Ready} 1', 'condition{type=Reconciling} 0', 'condition{type=Stalled} 0'],
      ]),
    );
  });
  const all = await seriesOf(leader, 'shop');
  expect(all.filter((series) => /_min|_max|threshold|objective|scaling_/.test(series))).toEqual([]);
});

test('another template is another revision', async () => {
  const before = await untilRevision('shop');
  await world.patchSpec('shop', { template: podTemplate({ image: 'corelane.test/app:2' }) });
  await eventually('the revision is another one', async () => expect(await untilRevision('shop')).not.toBe(before));
});

test('back to the template before is back to its revision', async () => {
  const later = await untilRevision('shop');
  await world.patchSpec('shop', { template: podTemplate() });
  await eventually('the revision is another one', async () => expect(await untilRevision('shop')).not.toBe(later));
});

test('bounds, thresholds and objectives follow the spec, and go with it', async () => {
  const objectives = { availability: 99.9, latency: { p95: '400ms', p99: '1s' } };
  await world.patchSpec('shop', {
    scaling: { minReplicas: 2, maxReplicas: 7, cpu: { scaleUp: { abovePercent: 30 } } },
    objectives,
  });
  await untilSeries(
    'shop',
    ...['replicas_min{} 2', 'replicas_max{} 7'],
    ...['scaling_threshold_ratio{direction=up} 0.3', 'scaling_threshold_ratio{direction=down} 0.15'],
    ...['objective_ratio{objective=availability} 0.999', 'objective_ratio{objective=p99} 0.99'],
    ...['objective_latency_seconds{objective=p95} 0.4', 'objective_latency_seconds{objective=p99} 1'],
    'objective_latency_weight_ratio{objective=p95 le=0.25} 0.4',
    'objective_latency_weight_ratio{objective=p95 le=0.5} 0.6',
    'objective_latency_weight_ratio{objective=p99 le=1} 1',
    'condition{type=ScalingActive} 0',
  );
  await world.patchSpec('shop', { scaling: null, objectives: null });
  await eventually('nothing of them is left', async () => {
    const all = await seriesOf(leader, 'shop');
    expect(all.filter((series) => /_min|_max|threshold|objective|[sS]caling/.test(series))).toEqual([]);
    expect(all).toContain('replicas{state=wanted} 2');
  });
});

test('objectives change no pod', async () => {
  await world.untilApplied('shop');
  const template = async () => (await world.deployment('shop')).spec.template;
  const before = await template();
  const { metadata } = await world.patchSpec('shop', { objectives: { availability: 99.5 } });
  await eventually('the operator has seen it', async () => {
    const { status } = await world.get('RenderService', 'shop');
    expect(status.observedGeneration).toBe(metadata.generation);
  });
  expect(await template()).toEqual(before);
});

test('what stalls is 1 in Stalled, and an unknown condition is -1', async () => {
  await world.admin.post(world.path('Service'), {
    metadata: { name: 'taken' },
    spec: { ports: [{ port: 80 }] },
  });
  await world.createRenderService('taken');
  await untilSeries('taken', 'condition{type=Stalled} 1', 'condition{type=Ready} 0');
  const samples = await leader.metrics();
  const reasons = samples.filter(({ labels }) => labels.renderservice === 'taken' && labels.type === 'Stalled');
  expect(reasons.map(({ labels }) => labels.reason)).toEqual(['NotOwned']);
  await eventually('no pod tells of its workers', async () => {
    expect(await seriesOf(leader, 'shop')).toContain('condition{type=WorkersHealthy} -1');
  });
});

test('who does not lead has none', async () => {
  expect(await seriesOf(leader, 'shop')).not.toEqual([]);
  expect(await seriesOf(standby, 'shop')).toEqual([]);
  const version = (samples: Json[]) => samples.filter(({ name }) => name === 'corelane_operator_info');
  expect(version(await standby.metrics())).toMatchObject([{ labels: { version: expect.stringMatching(/^\d+\./) } }]);
});

test('nothing is left of one that is deleted', async () => {
  await world.admin.delete(world.path('RenderService', 'taken'));
  await eventually('it is gone', async () => expect(await seriesOf(leader, 'taken')).toEqual([]));
  expect(await seriesOf(leader, 'shop')).not.toEqual([]);
});

test('who takes the lead has them, of the same revision', async () => {
  const revision = await untilRevision('shop');
  await leader.stop();
  await standby.untilLeading();
  await eventually('the other one has them', async () => {
    expect(await seriesOf(standby, 'shop')).toEqual(
      expect.arrayContaining([`info{revision=${revision}} 1`, 'replicas{state=wanted} 2']),
    );
  });
});
