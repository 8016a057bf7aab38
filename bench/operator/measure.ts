/** One shape: as plain objects, then with the operator, from empty to a rollout of all of it. */
import { setTimeout as delay } from 'node:timers/promises';
import { collectionPath, kinds } from '../../operator/src/kube/kinds.ts';
import { OperatorProcess, type OperatorSettings } from '../../operator/test/support/operator-process.ts';
import type { Progress } from '../lib/progress.ts';
import { since, total, type Writes } from '../lib/writes.ts';
import { isDeploymentReady, isRenderServiceReady } from './arrivals.ts';
import { Cluster, type Kwok, OPERATOR_NAMESPACE } from './cluster.ts';
import { plainObjects, renderServices } from './objects.ts';
import type { Pages } from './pages.ts';
import { Probe } from './probe.ts';
import type { Profiler } from './profiler.ts';
import { type Readiness, untilReady } from './ready.ts';
import { namespacesOf, podsOf, type Shape } from './shape.ts';
import { between, type Look, Usage } from './usage.ts';

/** Four rounds of the sampler. */
const STEADY_S = 60;
/** Nothing is written for so long when a fleet has come to rest: figures of status wait half a minute. */
const REST_S = 35;
const REST_S_MAX = 240;
const REST_LOOK_MS = 5_000;
/** Two rounds of the sampler, and what status waits for. */
const RESTARTED_S = 50;
const CACHES_MS_MAX = 120_000;
const PROBE_AT_REST_S = 10;
const PROBE_ROLLING_S = 60;

export interface Result {
  shape: Shape;
  plain: Readiness;
  corelane: Readiness;
  /** Of the operator's process. */
  memory: { rssMib: number; rssMibMax: number; restartedRssMib: number; looks: Look[] };
  /** What happened when, on the axis of the looks. */
  events: [atS: number, what: string][];
  /** How long it took until nobody wrote any more, or undefined where that did not come. */
  restS: number | undefined;
  steady: {
    seconds: number;
    writes: Writes;
    coreShare: number;
    samples: number;
    sampleErrors: number;
    operatorWrites: number;
    /** Used of the heap at the end, garbage and all. */
    heapMib: number;
  };
  restart: { cachesS: number; leadsS: number; writes: Writes; operatorWrites: number };
  /** Milliseconds until a change of a spec has reached its Deployment. */
  changes: { atRestMs: number[]; rollingMs: number[]; queueDepthMax: number };
}

export interface Tools {
  kwok: Kwok;
  pages: Pages;
  progress: Progress;
  run: Run;
}

/** How the operator runs. */
export interface Run {
  /** What V8 may keep, as --max-old-space-size. */
  heapMib: number;
  /** Where somebody wants to know what takes the time and the memory. */
  profiler?: Profiler | undefined;
}

/** Seconds that a shape takes on two cores, for those who wait. */
export function expectedSeconds(shape: Shape): number {
  return 2 * readySeconds(shape) + REST_S + STEADY_S + RESTARTED_S + PROBE_AT_REST_S + PROBE_ROLLING_S + 60;
}

/** Pods come at some 40 a second, objects of kubectl at some 50. */
const readySeconds = (shape: Shape) => 15 + podsOf(shape) / 40 + shape.services / 50;

/** Measures it. Whatever happens, `Cluster.removeCurrent` and `OperatorProcess.killAll` take away what is left. */
export async function measure(shape: Shape, tools: Tools): Promise<Result> {
  const { progress, kwok, pages } = tools;
  const plain = await progress.step(
    'plain objects, until all are ready',
    readySeconds(shape) + 10,
    async () => {
      const cluster = await Cluster.start(shape, kwok, pages);
      const wanted = { objects: plainObjects(shape), path: '/apis/apps/v1/deployments', isReady: isDeploymentReady };
      return await untilReady(cluster, shape, wanted).finally(() => cluster.remove());
    },
    readinessText,
  );
  const cluster = await progress.step('a fresh cluster', 15, () => Cluster.start(shape, kwok, pages));
  try {
    return { shape, plain, ...(await withOperator(shape, cluster, tools)) };
  } finally {
    await OperatorProcess.killAll();
    await cluster.remove();
  }
}

function readinessText({ appliedS, readyS }: Readiness): string {
  return `applied after ${appliedS.toFixed(1)} s, ready after ${readyS.toFixed(1)} s`;
}

async function withOperator(
  shape: Shape,
  cluster: Cluster,
  { progress, run }: Tools,
): Promise<Omit<Result, 'shape' | 'plain'>> {
  const { profiler } = run;
  const began = performance.now();
  const atS = () => (performance.now() - began) / 1_000;
  const events: Result['events'] = [];
  const first = await startOperator(cluster, 'operator-0', run);
  const usage = new Usage(first.pid, began);
  await profiler?.begin(first, 'ready');
  events.push([atS(), 'apply']);
  const corelane = await progress.step(
    'RenderServices, until all are ready',
    readySeconds(shape),
    () => {
      const wanted = { objects: renderServices(shape), path: RENDER_SERVICES, isReady: isRenderServiceReady };
      return untilReady(cluster, shape, wanted, () => mustRun(first));
    },
    readinessText,
  );
  events.push([atS(), 'ready']);
  await profiler?.end();
  const restS = await progress.step(
    'until nobody writes any more',
    REST_S,
    () => untilRest(cluster),
    (seconds) => `${seconds ?? 'not'} s`,
  );
  events.push([atS(), 'steady']);
  await profiler?.begin(first, 'steady');
  const steady = await progress.step('at rest', STEADY_S, () => atRest(cluster, first, usage), steadyText);
  await profiler?.end();
  await profiler?.snapshot(first, 'steady');
  usage.stop();
  events.push([atS(), 'restart']);
  const {
    second,
    usage: usage2,
    ...restart
  } = await progress.step(
    'another operator takes over',
    RESTARTED_S,
    () => restarted(cluster, first, run, began),
    ({ cachesS, writes }) => `caches after ${cachesS.toFixed(1)} s, ${total(writes)} writes`,
  );
  const restartedRssMib = usage2.look().rssMib;
  const changes = await changesOf(shape, cluster, second, {
    progress,
    profiler: run.profiler,
    onRoll: () => events.push([atS(), 'roll']),
  });
  usage2.stop();
  const { rssMib } = steady;
  const looks = [...usage.looks, ...usage2.looks];
  const rssMibMax = Math.max(usage.rssMibMax, usage2.rssMibMax);
  return { corelane, memory: { rssMib, rssMibMax, restartedRssMib, looks }, events, restS, steady, restart, changes };
}

const RENDER_SERVICES = collectionPath(kinds.renderService);

/** As the image has it: the bundle, in a heap of its limits. The chart's values are the defaults of the settings. */
async function startOperator(cluster: Cluster, podName: string, run: Run): Promise<OperatorProcess> {
  const operator = await spawnOperator(cluster, podName, run);
  await operator.untilReady();
  await operator.untilLeading();
  return operator;
}

function spawnOperator(cluster: Cluster, podName: string, { heapMib, profiler }: Run): Promise<OperatorProcess> {
  const settings: OperatorSettings = {
    kubeconfig: cluster.server.operatorKubeconfig,
    podName,
    podNamespace: OPERATOR_NAMESPACE,
    main: profiler ? 'operator/src/main.ts' : 'operator/dist/main.mjs',
  };
  const nodeOptions = ['--max-semi-space-size=4', `--max-old-space-size=${heapMib}`, ...(profiler?.nodeOptions ?? [])];
  return OperatorProcess.spawn(settings, { NODE_OPTIONS: nodeOptions.join(' ') });
}

function mustRun(operator: OperatorProcess): void {
  if (operator.hasEnded) throw new Error(`the operator has ended:\n${operator.log.split('\n').slice(-20).join('\n')}`);
}

/** Seconds until there was no write for a while; undefined if there always was one. */
async function untilRest(cluster: Cluster): Promise<number | undefined> {
  const began = performance.now();
  let writes = await cluster.writes();
  let sinceMs = began;
  while (performance.now() - began < REST_S_MAX * 1_000) {
    await delay(REST_LOOK_MS);
    const now = await cluster.writes();
    if (total(since(writes, now)) > 0) sinceMs = performance.now();
    writes = now;
    if (performance.now() - sinceMs >= REST_S * 1_000) return Math.round((sinceMs - began) / 1_000);
  }
  return undefined;
}

async function atRest(cluster: Cluster, operator: OperatorProcess, usage: Usage) {
  const counts = () => countsOf(operator);
  const [writesBefore, before] = [await cluster.writes(), await counts()];
  const from = usage.look();
  await delay(STEADY_S * 1_000);
  const to = usage.look();
  const [after, writes] = [await counts(), since(writesBefore, await cluster.writes())];
  mustRun(operator);
  return {
    seconds: to.atS - from.atS,
    writes,
    ...between(usage.looks, from, to),
    samples: after.samples - before.samples,
    sampleErrors: after.sampleErrors - before.sampleErrors,
    operatorWrites: after.writes - before.writes,
    heapMib: after.heapMib,
  };
}

function steadyText({ writes, coreShare, rssMib, samples }: Awaited<ReturnType<typeof atRest>>): string {
  return `${total(writes)} writes, ${(100 * coreShare).toFixed(1)} % of a core, ${Math.round(rssMib)} MiB, ${samples} pods asked`;
}

/** What the operator says of itself. */
async function countsOf(operator: OperatorProcess) {
  const result = (value: string) =>
    operator.sum('corelane_operator_pod_samples_total', (labels) => labels.result === value);
  return {
    writes: await operator.sum('corelane_operator_writes_total'),
    samples: await result('ok'),
    sampleErrors: await result('error'),
    heapMib: (await operator.sum('nodejs_heap_size_used_bytes')) / 1024 ** 2,
  };
}

/** @param axisMs where the time axis of the looks begins */
async function restarted(cluster: Cluster, first: OperatorProcess, run: Run, axisMs: number) {
  await first.stop();
  const before = await cluster.writes();
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1_000;
  const second = await spawnOperator(cluster, 'operator-1', run);
  const usage = new Usage(second.pid, axisMs);
  await second.untilReady(CACHES_MS_MAX);
  const cachesS = seconds();
  await second.untilLeading();
  const leadsS = seconds();
  await delay(RESTARTED_S * 1_000);
  mustRun(second);
  const writes = since(before, await cluster.writes());
  return { second, usage, cachesS, leadsS, writes, operatorWrites: (await countsOf(second)).writes };
}

/** All services get other pods, and one of them is changed meanwhile. */
async function changesOf(
  shape: Shape,
  cluster: Cluster,
  operator: OperatorProcess,
  { progress, profiler, onRoll }: Pick<Tools, 'progress'> & Pick<Run, 'profiler'> & { onRoll: () => void },
): Promise<Result['changes']> {
  const probe = await Probe.start(cluster, namespacesOf(shape)[0] as string);
  try {
    const title = (what: string) => `a change of a spec, ${what}`;
    const atRestMs = await progress.step(
      title('all others at rest'),
      PROBE_AT_REST_S,
      () => probe.measure(PROBE_AT_REST_S),
      changesText,
    );
    onRoll();
    await profiler?.begin(operator, 'roll');
    let queueDepthMax = 0;
    const timer = setInterval(async () => {
      queueDepthMax = Math.max(queueDepthMax, (await operator.work().catch(() => ({ depth: 0 }))).depth);
    }, 5_000).unref();
    const applied = cluster.apply(renderServices(shape, '2'));
    const rolling = async () => {
      const [times] = await Promise.all([probe.measure(PROBE_ROLLING_S), applied]);
      return times;
    };
    const rollingMs = await progress.step(title('while all others roll'), PROBE_ROLLING_S, rolling, changesText);
    clearInterval(timer);
    mustRun(operator);
    await profiler?.end();
    return { atRestMs, rollingMs, queueDepthMax };
  } finally {
    probe.stop();
  }
}

function changesText(times: number[]): string {
  return `${times.length} changes, the slowest after ${Math.round(Math.max(...times))} ms`;
}
