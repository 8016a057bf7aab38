/** The comparison as text, Markdown, JSON and SVG. */
import { plot, type TimeLine } from '../plots/index.ts';
import type { Comparison, Scenario } from './compare.ts';
import type { Concurrency } from './concurrency.ts';
import type { FleetModel } from './fleet.ts';
import type { Result, Slot } from './run.ts';
import { durationS, peakBetween } from './trace.ts';

const HEADINGS = [
  'policy',
  'core-hours',
  'p99 (ms)',
  'over objective',
  'refused',
  'actions',
  'flaps',
  'most pods',
  'rise reached (s)',
];

function row({ name, coreHours, p99Ms, missed, refused, actions, flaps, mostPods, reachedS }: Result): string[] {
  const numbers = [
    coreHours.toFixed(0),
    p99Ms.toFixed(0),
    `${(100 * missed).toFixed(2)} %`,
    refused,
    actions,
    flaps,
    mostPods,
  ];
  return [name, ...numbers.map(String), reachedS === undefined ? 'never' : String(reachedS)];
}

/** The table for a terminal. */
export function textTable({ results }: Comparison): string {
  const rows = [HEADINGS, ...results.map(row)];
  const widths = HEADINGS.map((_unused, column) => Math.max(...rows.map((cells) => (cells[column] as string).length)));
  return rows
    .map((cells) =>
      cells
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] as number) : cell.padStart(widths[column] as number),
        )
        .join('  '),
    )
    .join('\n');
}

/** The last line of every simulation, for programs. */
export function summaryLine({ policy, fixedByRule }: Comparison): string {
  const ratio = (policy.coreHours / fixedByRule.coreHours).toFixed(2);
  return `simulate: core_hours_vs_fixed=${ratio} slo_miss=${policy.missed.toFixed(4)} flaps=${policy.flaps}`;
}

/** What the numbers say, in sentences; `objective` is in the scenario. */
export function verdicts({ policy, fixedByRule, fixedPlanned, hpa }: Comparison, { objective }: Scenario): string[] {
  const allowed = 1 - objective.quantile;
  const against = (other: Result) => `${(100 * (policy.coreHours / other.coreHours - 1)).toFixed(0)} %`;
  return [
    `The objective (${percent(objective.quantile)} of requests within ${objective.limitS * 1000} ms) ${policy.missed <= allowed ? 'holds' : 'does not hold'}: ${(100 * policy.missed).toFixed(2)} % are over it.`,
    `Core-hours against a fixed fleet with the same head-room at the peak (${fixedByRule.mostPods} pods): ${signed(against(fixedByRule))}.`,
    `Core-hours against the smallest fixed fleet that somebody who knows the day could choose (${fixedPlanned.mostPods} pods): ${signed(against(fixedPlanned))}.`,
    `The pods for the steepest rise were ready after ${policy.reachedS ?? 'never'} s (HPA: ${hpa.reachedS ?? 'never'} s).`,
  ];
}

function signed(text: string): string {
  return text.startsWith('-') ? text : `+${text}`;
}

function percent(ratio: number): string {
  return `${Number((100 * ratio).toFixed(2))} %`;
}

/** The scenario in one sentence. */
export function scenarioText({ trace, model, objective, seed }: Scenario): string {
  const mean = trace.rps.reduce((sum, value) => sum + value, 0) / trace.rps.length;
  const hours = Number((durationS(trace) / 3600).toFixed(1));
  return (
    `${hours} h, ${mean.toFixed(0)} requests a second on average, ${peakBetween(trace, 0, Number.MAX_SAFE_INTEGER).toFixed(0)} at most; ` +
    `renders of ${ms(model.renderMeanS)} (cv ${model.renderCv})${waitText(model)}, ${model.workersPerPod} workers a pod, one queue; ` +
    `a pod starts in ${model.startS} s, its first renders take ${model.warmFactor} times as long; ` +
    `objective p${Number((100 * objective.quantile).toFixed(2))} of ${objective.limitS * 1000} ms; seed ${seed}`
  );
}

/** Nothing where renders only compute, one at a time. */
function waitText({ wait, concurrency = 1 }: Pick<FleetModel, 'wait' | 'concurrency'>): string {
  const waits = wait ? ` that wait for ${ms(wait.meanS)} in the middle (cv ${wait.cv})` : '';
  return concurrency === 1 && !wait ? '' : `${waits}, ${concurrencyText(concurrency)}`;
}

function concurrencyText(concurrency: Concurrency): string {
  return typeof concurrency === 'number'
    ? `concurrency ${concurrency}`
    : `concurrency Auto (${concurrency.min} to ${concurrency.max})`;
}

function ms(seconds: number): string {
  return `${Number((1000 * seconds).toFixed(3))} ms`;
}

export function markdown(comparison: Comparison, scenario: Scenario): string {
  const table = [
    HEADINGS,
    HEADINGS.map((_unused, column) => (column === 0 ? '---' : '--:')),
    ...comparison.results.map(row),
  ];
  return `<!-- Made by "make simulate"; do not edit. -->
# A simulated day

${scenarioText(scenario)}.

${table.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}

${verdicts(comparison, scenario)
  .map((line) => `- ${line}`)
  .join('\n')}

![pods and p99 over the day](simulate.svg)

"Over objective" counts refused requests, too. A flap is a removal and an addition within ten minutes without a change of
traffic. [docs/scaling.md](../scaling.md) says what to make of it.
`;
}

/** Everything but the minute-by-minute lines, which the SVG shows. */
export function json(comparison: Comparison, scenario: Scenario): string {
  const { trace: _trace, ...rest } = scenario;
  const results = comparison.results.map(({ slots: _slots, changes: _changes, ...result }) => result);
  return `${JSON.stringify({ scenario: rest, results, summary: summaryLine(comparison) }, null, 2)}\n`;
}

export function svg({ results }: Comparison, scenario: Scenario): string {
  const endS = durationS(scenario.trace);
  const lines = (value: (slot: Slot) => number): TimeLine[] =>
    results.map(({ name, slots }) => ({ name, points: slots.map((slot) => [slot.atS, value(slot)]) }));
  const traffic = results[0]?.slots.map(({ atS, rps }): [number, number] => [atS, rps]) ?? [];
  const limitMs = scenario.objective.limitS * 1000;
  const every = endS / 12;
  const ticks = Array.from({ length: 13 }, (_unused, index): [number, string] => [
    index * every,
    `${Number(((index * every) / 3600).toFixed(1))} h`,
  ]);
  const time = { endS, ticks };
  return plot([
    { ...time, title: 'A simulated day: pods', lines: lines(({ replicas }) => replicas), isStepped: true },
    {
      ...time,
      title: `p99 of each ${scenario.trace.stepS} s (ms), cut at ${3 * limitMs}`,
      lines: lines(({ p99Ms }) => p99Ms),
      max: 3 * limitMs,
      marks: [{ value: limitMs, text: `objective ${limitMs} ms` }],
    },
    { ...time, title: 'requests per second', lines: [{ name: 'traffic', points: traffic }] },
  ]);
}
