/** docs/benchmarks/operator.{json,md,svg} and the last line. Computes only. */
import { plot } from '../../operator/plots/index.ts';
import { percentile } from '../lib/stats.ts';
import { ms, ratio, table } from '../lib/table.ts';
import { total, writesText } from '../lib/writes.ts';
import type { Result } from './measure.ts';
import { podsOf, shapeText } from './shape.ts';

export interface Machine {
  cpus: number;
  model: string;
  kernel: string;
  node: string;
  loadBefore: number;
  /** The operator's --max-old-space-size. */
  heapMib: number;
}

export interface OperatorReport {
  machine: Machine;
  /** Length of a pod's answer. */
  pageBytes: number;
  results: Result[];
}

/** A change of a spec has to arrive within this time. */
const CHANGE_MS_MAX = 200;

function readyRatio({ plain, corelane }: Result): number {
  return corelane.readyS / plain.readyS;
}

/** `p50 / slowest` of some times. */
function times(values: number[]): string {
  const sorted = values.toSorted((one, other) => one - other);
  return `${ms(percentile(sorted, 50))} / ${ms(percentile(sorted, 100))}`;
}

function shareInTime(values: number[]): string {
  const inTime = values.filter((value) => value <= CHANGE_MS_MAX).length;
  return `${Math.round((100 * inTime) / Math.max(1, values.length))} %`;
}

function readyTable(results: Result[]): string {
  const head = [
    'services x pods / namespaces',
    'plain applied, s',
    'ready, s',
    'Corelane applied, s',
    'ready, s',
    'ratio',
  ];
  const rows = results.map((result) => [
    shapeText(result.shape),
    ...[result.plain, result.corelane].flatMap(({ appliedS, readyS }) => [ms(appliedS), ms(readyS)]),
    ratio(readyRatio(result)),
  ]);
  return table(head, rows);
}

function processTable(results: Result[]): string {
  const head = [
    'services x pods / namespaces',
    'RSS at rest, MiB',
    'at most, MiB',
    'heap, MiB',
    'at rest, % of a core',
    'pods asked in 15 s',
    'without an answer',
    'caches after a restart, s',
    'leads, s',
  ];
  const rows = results.map(({ shape, memory, steady, restart }) => [
    shapeText(shape),
    Math.round(memory.rssMib),
    Math.round(memory.rssMibMax),
    Math.round(steady.heapMib),
    (100 * steady.coreShare).toFixed(1),
    Math.round((15 * steady.samples) / steady.seconds),
    steady.sampleErrors,
    restart.cachesS.toFixed(1),
    restart.leadsS.toFixed(1),
  ]);
  return table(head, rows);
}

function changesTable(results: Result[]): string {
  const head = [
    'services x pods / namespaces',
    'at rest, p50 / slowest, ms',
    'while the others roll, ms',
    `within ${CHANGE_MS_MAX} ms`,
    'RenderServices waiting, at most',
  ];
  const rows = results.map(({ shape, changes }) => [
    shapeText(shape),
    times(changes.atRestMs),
    times(changes.rollingMs),
    shareInTime(changes.rollingMs),
    changes.queueDepthMax,
  ]);
  return table(head, rows);
}

function writesTable(results: Result[]): string {
  const head = ['services x pods / namespaces', 'at rest after, s', 'writes at rest', 'writes after a restart'];
  const rows = results.map(({ shape, restS, steady, restart }) => [
    shapeText(shape),
    restS ?? 'never',
    writesText(steady.writes),
    writesText(restart.writes),
  ]);
  return table(head, rows);
}

export function markdown({ machine, pageBytes, results }: OperatorReport): string {
  const where = `${machine.cpus} CPUs (${machine.model}), Linux ${machine.kernel}, Node ${machine.node}, load average ${machine.loadBefore.toFixed(1)} before`;
  return `${[
    '# The operator with many services',
    `\`make bench-operator\`: etcd, API server, controllers and the operator on one machine, and kwok in the place of nodes. ${where}. [README.md](README.md#operator) says what is compared.`,
    '![services that are ready, and memory](operator.svg)',
    '## From `kubectl apply` until all are ready',
    readyTable(results),
    '## The operator',
    `A pod answers with ${Math.round(pageBytes / 1024)} KiB, and is asked every 15 s. The heap may have ${machine.heapMib} MiB.`,
    processTable(results),
    '## Writes',
    'What the API server has written in a minute, of whoever, but for leases.',
    writesTable(results),
    '## A change of a spec, until it is in the Deployment',
    changesTable(results),
  ].join('\n\n')}\n`;
}

/** Of each shape: who is ready when, and the memory of the operator. */
export function picture({ results }: OperatorReport): string {
  return plot(results.flatMap((result) => [readyChart(result), memoryChart(result)]));
}

const TICKS = 6;

function ticksTo(endS: number): [number, string][] {
  return Array.from({ length: TICKS + 1 }, (_unused, index) => {
    const atS = Math.round((index * endS) / TICKS);
    return [atS, `${atS} s`];
  });
}

function readyChart({ shape, plain, corelane }: Result) {
  const endS = Math.max(plain.readyS, corelane.readyS);
  const points = (timesS: number[]): [number, number][] => [
    [0, 0],
    ...timesS.map((atS, index): [number, number] => [atS, index + 1]),
  ];
  return {
    title: `${shapeText(shape)}: services that are ready`,
    subtitle: 'seconds since kubectl apply',
    endS,
    ticks: ticksTo(endS),
    isStepped: true,
    lines: [
      { name: 'Deployments, Services, budgets', points: points(plain.timesS) },
      { name: 'RenderServices', points: points(corelane.timesS) },
    ],
  };
}

function memoryChart({ shape, memory, events }: Result) {
  const endS = memory.looks.at(-1)?.atS ?? 1;
  return {
    title: `${shapeText(shape)}: memory of the operator (RSS)`,
    subtitle: 'MiB',
    endS,
    ticks: ticksTo(endS),
    events,
    lines: [{ name: 'operator', points: memory.looks.map(({ atS, rssMib }): [number, number] => [atS, rssMib]) }],
  };
}

/** Of the shape with the most services and pods. */
export function lastLine({ results }: OperatorReport): string {
  const [largest] = results.toSorted(
    (one, other) => podsOf(other.shape) - podsOf(one.shape) || other.shape.services - one.shape.services,
  );
  if (!largest) return 'operator: nothing was measured';
  const { shape, memory, steady, restart } = largest;
  const figures = {
    services: shape.services,
    pods: podsOf(shape),
    ready_ratio: readyRatio(largest).toFixed(2),
    rss_mib: Math.round(memory.rssMib),
    steady_writes: total(steady.writes),
    restart_writes: total(restart.writes),
  };
  return `operator: ${Object.entries(figures)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')}`;
}
