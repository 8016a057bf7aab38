/**
 * `make bench-fleet`: several pods behind a Service that picks one at random, and peers. docs/benchmarks/README.md
 * tells what is compared. BENCH=corelane,cluster and LOADS=0.8,0.9 choose; then nothing is written to docs/benchmarks.
 */
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { until } from '../e2e/harness/engine/pod.ts';
import { type Arrival, arrivals } from './fleet/arrivals.ts';
import { HOP_SECONDS, measureHop } from './fleet/hop.ts';
import { type FleetReport, lastLine, markdown, type Point, picture } from './fleet/report.ts';
import { FLEETS, type FleetKind, type RunningFleet } from './fleet/systems.ts';
import { chosen } from './lib/choice.ts';
import { fifoResponseMs } from './lib/fifo.ts';
import { type Group, runLoad } from './lib/load.ts';
import { outcomeOf } from './lib/outcome.ts';
import { Progress } from './lib/progress.ts';
import { runBench } from './lib/run-bench.ts';
import { summarize } from './lib/stats.ts';
import { ms } from './lib/table.ts';

const DOCS = fileURLToPath(new URL('../docs/benchmarks', import.meta.url));
const SECONDS = Number(process.env.SECONDS_PER_POINT ?? 60);
const START_SECONDS = 20;
const AROUND_SECONDS = 6;
/** So that cold code and DNS are not part of the first point. */
const WARM_UP_SECONDS = 4;
const TIMEOUT_MS = 60_000;
const SEED = 1;

const systems = chosen('BENCH', Object.keys(FLEETS));
const loads = chosen('LOADS', ['0.5', '0.7', '0.8', '0.9']).map(Number);
const isWhole = !process.env.BENCH && !process.env.LOADS && !process.env.SECONDS_PER_POINT;

/** Many pods of one worker: where pooling has most to win. The fleets whose result would be the same are left out. */
const SHAPES = [
  { pods: 5, workersPerPod: 4, loads, systems },
  {
    pods: 20,
    workersPerPod: 1,
    loads: loads.filter((load) => load === 0.8),
    systems: systems.filter((name) => name === 'corelane' || name === 'no-pooling'),
  },
].filter((shape) => shape.loads.length > 0 && shape.systems.length > 0);

function groupOf(name: string, work: Arrival[], fleet: RunningFleet): Group {
  const { targets, readiness } = fleet;
  return {
    name,
    requests: work.map(({ at, service, choice }) => ({
      path: `/?id={id}&steps=b${service.toFixed(3)}`,
      atMs: at,
      ...(readiness ? { choice } : { target: Math.floor(choice * targets.length) }),
    })),
    ...(readiness && { readiness }),
  };
}

async function measurePoint(name: string, shape: (typeof SHAPES)[number], load: number, fleet: RunningFleet) {
  const { pods, workersPerPod } = shape;
  const work = arrivals(pods * workersPerPod, load, SECONDS, SEED);
  const warmUp = arrivals(pods * workersPerPod, load / 2, WARM_UP_SECONDS, SEED + 1);
  const startedAtMs = Date.now();
  const handedOverBefore = await fleet.handedOver();
  const group = `load-${load}`;
  const phases = [[groupOf('warm-up', warmUp, fleet)], [groupOf(group, work, fleet)]];
  const records = await runLoad(fleet.network, { targets: fleet.targets, bodyBytes: 0, timeoutMs: TIMEOUT_MS, phases });
  const outcome = outcomeOf(
    records,
    fleet.notes().filter(({ at }) => at >= startedAtMs),
    group,
  );
  const point: Point = {
    ...{ system: name, pods, workersPerPod, load },
    requests: outcome.requests,
    failed: outcome.failed,
    overlaps: outcome.overlaps,
    handedOver: ((await fleet.handedOver()) - handedOverBefore) / (work.length + warmUp.length),
    latency: outcome.latency,
    bound: summarize(fifoResponseMs(work, pods * workersPerPod)),
  };
  return point;
}

async function untilServing({ network, targets }: RunningFleet): Promise<void> {
  for (const target of targets) {
    await until('it serves', async () => {
      const group = { name: 'hello', concurrency: 1, count: 1, seconds: 10, requests: [{ path: '/?id={id}' }] };
      const plan = { targets: [target], bodyBytes: 0, timeoutMs: TIMEOUT_MS, phases: [[group]] };
      return (await runLoad(network, plan))[0]?.status === 200;
    });
  }
}

async function measure(): Promise<FleetReport> {
  const loadBefore = loadavg()[0] ?? 0;
  const machine = { cpus: cpus().length, kernel: release().split('-')[0] ?? '', node: process.version, loadBefore };
  const seconds = SECONDS + WARM_UP_SECONDS + AROUND_SECONDS;
  const planned = SHAPES.reduce(
    (sum, shape) => sum + shape.systems.length * (START_SECONDS + shape.loads.length * seconds),
    HOP_SECONDS,
  );
  const progress = new Progress(planned);
  const points: Point[] = [];
  for (const shape of SHAPES) {
    for (const name of shape.systems) {
      const kind = FLEETS[name] as FleetKind;
      const what = `${name}, ${shape.pods} x ${shape.workersPerPod}`;
      const fleet = await progress.step(`${what}: start`, START_SECONDS, async () => {
        const started = await kind.start(shape.pods, shape.workersPerPod);
        await untilServing(started);
        return started;
      });
      for (const load of shape.loads) {
        const work = () => measurePoint(name, shape, load, fleet);
        points.push(
          await progress.step(
            `${what}: load ${load}`,
            seconds,
            work,
            ({ latency, bound, failed }) =>
              `p50 ${ms(latency.p50)} (bound ${ms(bound.p50)}), p99 ${ms(latency.p99)} (bound ${ms(bound.p99)}), ${failed} failed`,
          ),
        );
      }
      await fleet.stop();
    }
  }
  const hop = await progress.step('cost of a hand-over', HOP_SECONDS, measureHop);
  return { machine, secondsPerPoint: SECONDS, points, hop };
}

await runBench(async () => {
  const report = await measure();
  if (isWhole) {
    writeFileSync(`${DOCS}/fleet.json`, `${JSON.stringify(report, null, 1)}\n`);
    writeFileSync(`${DOCS}/fleet.md`, markdown(report));
    writeFileSync(`${DOCS}/fleet.svg`, picture(report));
  }
  console.log(markdown(report));
  console.log(lastLine(report));
});
