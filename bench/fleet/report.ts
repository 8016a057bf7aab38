/** The report of `make bench-fleet`. Computes only. */
import { plot } from '../../operator/plots/index.ts';
import type { Latency } from '../lib/stats.ts';
import { ms, ratio, table } from '../lib/table.ts';
import type { Hop } from './hop.ts';
import { FLEETS } from './systems.ts';

export interface Point {
  system: string;
  pods: number;
  workersPerPod: number;
  load: number;
  requests: number;
  failed: number;
  overlaps: number;
  /** Share of the requests that another pod than the first one rendered. */
  handedOver: number;
  latency: Latency;
  /** One perfect queue over all workers, with the same arrivals and renders. */
  bound: Latency;
}

export interface FleetReport {
  machine: { cpus: number; kernel: string; node: string; loadBefore: number };
  secondsPerPoint: number;
  points: Point[];
  hop: Hop;
}

const HEAD = ['fleet', 'requests', 'failed', 'overlaps', 'moved', 'p50', 'p95', 'p99', 'max', 'p50/bound', 'p99/bound'];

function isSame(one: Point, { pods, workersPerPod, load }: Point): boolean {
  return one.pods === pods && one.workersPerPod === workersPerPod && one.load === load;
}

function times({ p50, p95, p99, max }: Latency): string[] {
  return [p50, p95, p99, max].map(ms);
}

function over(value: number | null, bound: number | null): number {
  return value === null || bound === null ? Number.NaN : value / bound;
}

function hopText({ requests, atHomeMs, handedOverMs }: Hop): string {
  const added = (handedOverMs - atHomeMs).toFixed(2);
  return `To be handed over costs ${added} ms at the median, the question included: an empty render asked for at a pod that is busy takes ${handedOverMs.toFixed(2)} ms, at the free one ${atHomeMs.toFixed(2)} ms (one client, ${requests} requests in turn).`;
}

/** One table per shape of the fleet and load. */
export function markdown({ points, machine, secondsPerPoint, hop }: FleetReport): string {
  const firsts = points.filter((point, index) => points.findIndex((other) => isSame(other, point)) === index);
  const tables = firsts.map((first) => {
    const rows = points
      .filter((point) => isSame(point, first))
      .map((point) => [
        FLEETS[point.system]?.title ?? point.system,
        ...[point.requests, point.failed, point.overlaps, `${Math.round(100 * point.handedOver)} %`],
        ...times(point.latency),
        ratio(over(point.latency.p50, point.bound.p50)),
        ratio(over(point.latency.p99, point.bound.p99)),
      ]);
    rows.push([
      'one queue over all workers (bound)',
      first.requests,
      '',
      '',
      '',
      ...times(first.bound),
      '1.00',
      '1.00',
    ]);
    const title = `### ${first.pods} pods x ${first.workersPerPod} workers, load ${first.load}`;
    return `${title}\n\n${table(HEAD, rows)}`;
  });
  const where = `${machine.cpus} CPUs, Linux ${machine.kernel}, Node ${machine.node}, load average ${machine.loadBefore.toFixed(1)} before`;
  const intro = `Poisson arrivals at a random pod, lognormal renders (mean 100 ms, cv 1) that block without burning CPU; ${secondsPerPoint} s a point; times in ms.`;
  return `${['# Fleet: pods that share their work, beside peers', `${intro} ${where}.`, hopText(hop), '![p99 over load](fleet.svg)', ...tables].join('\n\n')}\n`;
}

/** p99 over load, for the first shape. */
export function picture({ points }: FleetReport): string {
  const [first] = points;
  if (!first) return '';
  const own = points.filter(({ pods, workersPerPod }) => pods === first.pods && workersPerPod === first.workersPerPod);
  const names = [...new Set(own.map(({ system }) => system))];
  const of = (system: string) => own.filter((point) => point.system === system);
  const series = names.map((name) => ({
    name: FLEETS[name]?.title ?? name,
    points: of(name).map(({ load, latency }) => ({ x: load, y: latency.p99 ?? 1 })),
  }));
  const bound = of(names[0] as string).map(({ load, bound: { p99 } }) => ({ x: load, y: p99 ?? 1 }));
  const subtitle = `${first.pods} pods x ${first.workersPerPod} workers, a random pod per request; ms`;
  return plot([
    {
      title: 'p99 of a fleet under load',
      subtitle,
      xLabel: 'load',
      curves: [...series, { name: 'one queue over all workers (bound)', points: bound }],
    },
  ]);
}

/** What the goal of pooling is measured by. */
export function lastLine({ points }: FleetReport): string {
  const point = points.find(({ system, load, pods }) => system === 'corelane' && load === 0.8 && pods === 5);
  return `fleet: p99_ratio_to_bound=${point ? over(point.latency.p99, point.bound.p99).toFixed(3) : '-'} at load 0.8`;
}
