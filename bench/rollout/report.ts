/** The report of `make bench-rollout`. Computes only. */
import { plot } from '../../operator/plots/index.ts';
import { ms, table } from '../lib/table.ts';
import type { ChunksRow } from './chunks.ts';
import type { JudgementResult } from './judgement.ts';
import type { TrafficResult } from './traffic.ts';

export interface RolloutReport {
  machine: { cpus: number; kernel: string; node: string; loadBefore: number };
  seconds: number;
  /** Corelane first. */
  traffic?: TrafficResult[];
  judgement?: JudgementResult;
  chunks?: ChunksRow[];
}

/** The system that the last line tells of. */
const OWN = 'Corelane';

function figure(value: number | undefined, digits = 0): string {
  return value === undefined || value === null || Number.isNaN(value) ? '-' : value.toFixed(digits);
}

const percent = (share: number) => figure(100 * share, 2);

/** A script that comes only when it is asked for again has failed, too: not all ask again. */
function chunkErrorsOf({ chunkErrors, scriptsMissing }: ChunksRow): number {
  return Math.max(chunkErrors, scriptsMissing);
}

/** Whether what Corelane promises was kept, as far as it was run. */
export function isKept({ traffic, chunks = [] }: RolloutReport): boolean {
  return !traffic?.[0]?.lost && chunks.every((row) => row.system !== OWN || chunkErrorsOf(row) === 0);
}

/** `-` for what was not run. */
export function lastLine({ traffic, judgement, chunks }: RolloutReport): string {
  const [own] = traffic ?? [];
  const chunkErrors = chunks?.filter(({ system }) => system === OWN).reduce((sum, row) => sum + chunkErrorsOf(row), 0);
  return [
    `rollout: lost=${figure(own?.lost)}`,
    `share_error_points=${figure(own?.shareErrorPoints, 2)}`,
    `abort_seconds=${figure(own?.abortSeconds, 2)}`,
    `false_aborts=${figure(judgement?.falseAborts)}`,
    `chunk_errors=${figure(chunkErrors)}`,
  ].join(' ');
}

function stretchTable({ stretches }: TrafficResult): string {
  const head = [
    '',
    'old + new pods',
    'requests',
    'wanted, %',
    'reached, %',
    'off by, points',
    'fell back',
    'p99, ms',
    'lost',
    'with a dead pod',
  ];
  const rows = stretches.map(({ name, pods, requests, wanted, reached, fallbacks, p99, lost, atDead }) => [
    ...[name, `${pods.stable} + ${pods.canary}`, requests, percent(wanted), percent(reached)],
    ...[figure(100 * Math.abs(reached - wanted), 2), figure(fallbacks), ms(p99), lost, atDead],
  ]);
  return table(head, rows);
}

function waysOf(failures: Record<string, number>): string {
  return Object.entries(failures)
    .map(([reason, count]) => `${count} x ${reason}`)
    .join(', ');
}

function failureText({ failures }: TrafficResult): string[] {
  return Object.keys(failures).length === 0 ? [] : [`How requests failed: ${waysOf(failures)}.`];
}

function trafficText(results: TrafficResult[]): string {
  const head = ['', 'requests', 'lost', 'with a dead pod', 'largest share error, points', 'abort, s'];
  const rows = results.map(({ system, requests, lost, atDead, shareErrorPoints, abortSeconds }) => [
    ...[system, requests, lost, atDead, figure(shareErrorPoints, 2), figure(abortSeconds, 2)],
  ]);
  const each = results.flatMap((result) => [`### ${result.system}`, stretchTable(result), ...failureText(result)]);
  const rate = results[0]?.perSecond;
  return [
    '## Traffic',
    `${rate} requests a second, evenly, each on a connection of its own, to the pods of the Service in turn.`,
    table(head, rows),
    ...each,
  ].join('\n\n');
}

function judgementText({ runs, seed, falseAborts, byErrorRate, errorsToAbort }: JudgementResult): string {
  const equal = byErrorRate.map((one) => [`${100 * one.errorRate} %`, one.runs, one.falseAborts]);
  const rows = errorsToAbort.map(({ sharePercent, median, max }) => [`${sharePercent} %`, median, max]);
  return [
    '## Judgement',
    `Of ${runs} simulated canaries (seed ${seed}) that were as good as the version before, ${falseAborts} were stopped.`,
    table(['errors of both versions', 'canaries', 'stopped'], equal),
    table(['share of a version that fails always', 'errors until it is stopped, median', 'max'], rows),
  ].join('\n\n');
}

function chunksText(rows: ChunksRow[]): string {
  const cells = rows.map(({ system, app, rollouts, chunks, chunkErrors, scriptsMissing, failures }) => [
    ...[`${app}, ${system}`, rollouts, chunks, chunkErrors, scriptsMissing, waysOf(failures)],
  ]);
  const head = ['', 'rollouts', 'parts asked for', 'not there', 'scripts that failed', 'how'];
  return ['## Chunks', table(head, cells)].join('\n\n');
}

export function markdown(report: RolloutReport): string {
  const { machine, seconds, traffic, judgement, chunks } = report;
  const { cpus, kernel, node, loadBefore } = machine;
  const where = `${cpus} CPUs, Linux ${kernel}, Node ${node}, load average ${loadBefore.toFixed(1)} before; ${Math.round(seconds)} s in all`;
  const parts = [
    '# Changes: canary, abort, sticky versions',
    `[README.md](README.md#rollout) says what is compared. ${where}.`,
    `\`${lastLine(report)}\``,
    '![shares over time](rollout.svg)',
    ...(traffic ? [trafficText(traffic)] : []),
    ...(judgement ? [judgementText(judgement)] : []),
    ...(chunks ? [chunksText(chunks)] : []),
  ];
  return `${parts.join('\n\n')}\n`;
}

/** Shares over time, a chart for each system, and how far they were off. */
export function picture({ traffic = [], chunks }: RolloutReport): string {
  const curves = traffic.map(({ system, curve, wanted }) => {
    const endS = curve.at(-1)?.[0] ?? 1;
    const ticks = Array.from({ length: Math.floor(endS / 60) + 1 }, (_unused, minute): [number, string] => [
      60 * minute,
      `${minute} min`,
    ]);
    return {
      title: system,
      subtitle: 'percent of the requests that the new version rendered',
      lines: [
        { name: 'wanted', points: wanted },
        { name: 'rendered by the new version', points: curve },
      ],
      ...{ endS, ticks, max: 105 },
    };
  });
  const bars = (chunks ?? []).map(({ system, app, scriptsMissing }) => ({
    label: `${app}, ${system}`,
    bars: [{ series: 'scripts that failed', value: scriptsMissing, text: String(scriptsMissing) }],
  }));
  const charts =
    bars.length === 0 ? [] : [{ title: 'Chunks of yesterday', subtitle: 'that were not there', groups: bars }];
  return plot([...curves, ...charts]);
}
