/** What the simulator says about renders that wait: the page in docs/benchmarks, and the tables in other pages. */
import { plot } from '../plots/index.ts';
import type { CrowdResult, LoadPoint, Named, PlanPoint, WaitingStudy } from '../simulate/waiting-study.ts';
import { table } from './block.ts';

const percent = (ratio: number) => `${Math.round(100 * ratio)} %`;
const precise = (ratio: number) => `${(100 * ratio).toFixed(2)} %`;
const whole = (value: number) => Math.round(value).toLocaleString('en');
const nameOf = ({ renders, concurrency }: Named) => `${renders}, ${concurrency}`;

function groups<T extends Named>(points: T[]): T[][] {
  return [...Map.groupBy(points, nameOf).values()];
}

/** Loads that a table shows. */
const SHOWN_LOADS = [0.2, 0.4, 0.6, 0.8, 0.9];

function loadHead(): string[] {
  return ['renders: CPU + waiting', '`concurrency`', ...SHOWN_LOADS.map(percent)];
}

function loadRows(loads: LoadPoint[], value: (point: LoadPoint) => string): string[][] {
  return groups(loads).map((points) => [
    points[0]?.renders ?? '',
    placesText(points[0]),
    ...SHOWN_LOADS.map((load) => points.find((point) => point.load === load)).map((point) =>
      point ? value(point) : '',
    ),
  ]);
}

function placesText(point: { concurrency: string; limit: number } | undefined): string {
  if (point === undefined) return '';
  return point.concurrency === 'Auto' ? `Auto: ${point.limit}` : point.concurrency;
}

/** Per-core CPU and occupancy over load. */
function signalsOverLoad({ loads }: WaitingStudy): string {
  return table(
    loadHead(),
    loadRows(loads, ({ cpu, occupancy }) => `${percent(cpu)}, ${percent(occupancy)}`),
  );
}

/** How many pods a load takes. */
function podsForLoad({ plans }: WaitingStudy): string {
  return table(
    [
      'renders: CPU + waiting',
      '`concurrency`',
      'requests/s',
      'pods of 4',
      'per-core CPU',
      'of at most',
      'places taken',
      'p99',
    ],
    plans.map((point: PlanPoint) => [
      point.renders,
      placesText(point),
      String(point.rps),
      String(point.pods),
      percent(point.cpu),
      percent(point.mostCpu),
      percent(point.occupancy),
      `${whole(point.p99Ms)} ms`,
    ]),
  );
}

/** What thresholds make of a flash crowd. */
function thresholdsInCrowd({ crowd }: WaitingStudy, only?: string[]): string {
  return table(
    ['renders: CPU + waiting', '`concurrency`', 'policy', 'core-hours', 'over p99', 'refused', 'pods', 'ready after'],
    crowd
      .filter(({ policy }) => only === undefined || only.includes(policy))
      .map((result) => [
        result.renders,
        result.concurrency,
        result.policy,
        result.coreHours.toFixed(0),
        misses(result),
        whole(result.refused),
        `${result.fewestPods} to ${result.mostPods}`,
        result.reachedS === undefined ? 'never' : `${result.reachedS} s`,
      ]),
  );
}

/** The objective allows 1 % of the requests. */
const ALLOWED = 0.01;

function misses({ missed }: CrowdResult): string {
  return missed > ALLOWED ? `**${precise(missed)}**` : precise(missed);
}

export function waitingPage(study: WaitingStudy): string {
  return `<!-- Made by "make simulate"; do not edit. -->
# Renders that wait, simulated

A render computes, waits once for others, and computes again; both times are lognormal (cv 1). "30 ms + 100 ms" are 30 ms of CPU and 100 ms of waiting. A worker has one render at a time,
or as many as [\`concurrency: Auto\`](../concurrency.md) finds (1 to 16; the rule is the worker's own). Its event loop gives turns in the order in which they are ready, and nothing interrupts one. A request goes to any pod, and there to the
worker with the fewest; a full pod hands it over. 4 workers a pod.

## What CPU and occupancy are at a load

5 pods. Load is the share of what the fleet can do. In each cell per-core CPU and occupancy (requests in progress over places of the moment).

${signalsOverLoad(study)}

p99 in ms:

${table(
  loadHead(),
  loadRows(study.loads, ({ p99Ms }) => whole(p99Ms)),
)}

![CPU, occupancy and p99 over load](simulate-waiting.svg)

## How many pods

As [\`corelane plan\`](../scaling.md#how-many-pods-at-all) says; objective p99 of 500, 500, 700 and 600 ms. "Of at most" is the per-core CPU of a worker that is never without work.

${podsForLoad(study)}

## What thresholds make of a flash crowd

Two hours around the flash crowd of the [simulated day](simulate.md), three times the traffic within two minutes: 220 requests a second before it, a pod starts in 20 s. "Over p99" is the share of requests over the
objective, which allows 1 %; those refused count as well.

${thresholdsInCrowd(study)}

[docs/scaling.md](../scaling.md#renders-that-wait) says what to make of it.
`;
}

/** Settings that the picture has, and their names there. */
const DRAWN = ['80 ms of CPU', '30 ms + 100 ms', '10 ms + 90 ms'];

export function waitingPlot({ loads }: WaitingStudy): string {
  const drawn = groups(loads.filter(({ renders }) => DRAWN.includes(renders)));
  const curves = (value: (point: LoadPoint) => number) =>
    drawn.map((points) => ({
      name: nameOf(points[0] as LoadPoint),
      points: points.map((point) => ({ x: 100 * point.load, y: value(point) })),
    }));
  const xLabel = 'load: share of what the fleet can do (%)';
  const subtitle = '5 pods of 4 workers; CPU + waiting of a render, and how many a worker has at a time';
  return plot([
    {
      title: 'Per-core CPU (%)',
      ...{ subtitle, xLabel, linearTo: 100 },
      marks: [
        { value: 20, text: 'scaling.cpu adds above 20 %' },
        { value: 15, text: '' },
      ],
      curves: curves(({ cpu }) => 100 * cpu),
    },
    {
      title: 'Occupancy: requests in progress over places of the moment (%)',
      ...{ subtitle, xLabel, linearTo: 100 },
      marks: [
        { value: 60, text: 'scaling.occupancy adds above 60 %' },
        { value: 45, text: '' },
      ],
      curves: curves(({ occupancy }) => 100 * occupancy),
    },
    { title: 'p99 (ms)', subtitle, xLabel, curves: curves(({ p99Ms }) => p99Ms) },
  ]);
}
