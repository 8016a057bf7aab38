/**
 * examples/autoscaling/keda.yaml as it is: a real Prometheus scrapes real pods under load, KEDA asks it, and the
 * RenderService gets more pods. Those are on an API server without nodes: what is scraped are two pods of the engine.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Json } from '../../operator/test/support/api-client.ts';
import { repository } from '../../operator/test/support/api-server.ts';
import { eventually } from '../../operator/test/support/eventually.ts';
import { Fleet } from '../harness/engine/fleet.ts';
import { Load } from './load.ts';
import { DETAILED, Prometheus } from './prometheus.ts';
import { PATIENT } from './scaled-object.ts';
import { KedaWorld, SETUP_TIMEOUT_MS, tellProgress } from './world.ts';

const FILE = join(repository, 'examples/autoscaling/keda.yaml');
const NAME = 'with-keda';
const PODS = 2;
const documents: Json[] = parseAllDocuments(readFileSync(FILE, 'utf8')).map((one) => one.toJS());
const { workersPerPod } = documents[0].spec;

let keda: KedaWorld;
let fleet: Fleet | undefined;
let prometheus: Prometheus | undefined;
let load: Load | undefined;

tellProgress();

beforeAll(async () => {
  keda = await KedaWorld.start('keda-example', 'default');
  fleet = await Fleet.start(PODS, { workersPerPod });
  prometheus = await Prometheus.start(fleet, NAME, keda.server.network);
  await keda.server.kubectl('default').run('apply', '-f', FILE);
}, SETUP_TIMEOUT_MS);

afterAll(async () => {
  await load?.stop();
  await prometheus?.stop();
  await fleet?.stop();
  await keda?.stop();
});

async function condition(type: string): Promise<string | undefined> {
  return (await keda.scaledObjects.conditions(NAME)).find((one) => one.startsWith(`${type}=`));
}

/** What a pod has of each trigger, as the autoscaler of Kubernetes was told. */
async function values(): Promise<string[]> {
  const { currentMetrics = [] } = (await keda.scaledObjects.autoscaler(NAME))?.status ?? {};
  return currentMetrics.map(({ external }: Json) => external?.current.averageValue);
}

test('without requests both queries have an answer, and the minimum of pods is there', async () => {
  await eventually('the autoscaler has both', async () => expect(await values()).toEqual(['0', '0']), PATIENT);
  await eventually('all is well', async () => expect(await condition('HPAActive')).toBe('HPAActive=True'), PATIENT);
  await keda.untilReplicas(NAME, 2);
});

test('workers are busy: pods for 60 % of that', async () => {
  load = new Load(fleet as Fleet, workersPerPod, '/?ms=200&id=busy');
  // 4 workers render but for the moments between two pages: 3.3 times what a pod is to have.
  await eventually('3 or 4 pods', async () => expect([3, 4]).toContain(await keda.replicas(NAME)), PATIENT);
});

test('each query of docs/keda.md has a value', async () => {
  const page = readFileSync(join(repository, 'docs/keda.md'), 'utf8');
  const [, table = ''] = /^## What to ask Prometheus$(.*?)^## /ms.exec(page) ?? [];
  const queries = [...table.matchAll(/^\|[^|]+\| `([^`]+)` \|/gm)].map(([, query]) =>
    (query as string).replaceAll(/([{,])S}/g, `$1namespace="${DETAILED}",renderservice="${NAME}"}`),
  );
  expect(queries).toHaveLength(4);
  const answers = async () => Promise.all(queries.map((query) => prometheus?.value(query)));
  // All workers are busy. Beyond them one or two may wait between two pages.
  await eventually('so many are busy', async () => {
    const [rendering = 0, busy = 0, share = 0, waiting = -1] = await answers();
    expect([rendering > 2, busy > 2, share > 1, waiting >= 0]).toEqual([true, true, true, true]);
  });
});

test('requests wait: more pods still', async () => {
  await load?.stop();
  load = new Load(fleet as Fleet, 4 * workersPerPod, '/?ms=200&id=waits');
  await keda.untilReplicas(NAME, 10);
});

test('Prometheus knows no pod any more: KEDA falls back to as many as there are, and none goes', async () => {
  await prometheus?.forgetPods();
  // As with what is still in the window of the query, and then for three failures.
  await eventually('KEDA falls back', async () => expect(await condition('Fallback')).toBe('Fallback=True'), {
    timeoutMs: 240_000,
  });
  await eventually(
    'the autoscaler is told of 10 pods, each at its threshold',
    async () => expect(await values()).toEqual(['1200m', '1']),
    PATIENT,
  );
  expect(await keda.replicas(NAME)).toBe(10);
});
