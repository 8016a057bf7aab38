/** The report of `make bench-edge`. Computes only. */
import { plot } from '../../operator/plots/index.ts';
import { table } from '../lib/table.ts';
import type { Column, Figures, Section, Value } from './scenario.ts';

export interface EdgeReport {
  machine: { cpus: number; kernel: string; node: string; loadBefore: number };
  seconds: number;
  sections: Section[];
}

/** What is aimed at. */
const GOALS: [figure: keyof Figures, what: string, goal: string, digits: number][] = [
  ['slots_per_page', 'requests of a page with its files that reach a worker', '1', 0],
  ['first_byte_ms_added', 'first byte of a stream, ms more than straight to the worker', '<= 20', 1],
  ['html_p99_ratio', "pages' p99 with ten times as many files / with one time", '<= 1.05', 2],
  ['cached_x', "requests/s of a cached page / Express's with a cache in its process", '>= 10', 1],
  ['herd_renders', 'renders for a herd', '1', 0],
  ['fleet_herd_renders', 'renders for a herd at several pods', '1', 0],
  ['cache_tests_required', 'required tests of http-cache-tests that pass', '', 0],
  ['browsers_with_json', 'browsers that saw JSON at three times the load', '0', 0],
  ['people_p99_ratio', "people's p99 beside crawlers, at three times the load / alone", '1', 2],
  ['idle_open', 'of 15,000 idle connections are still there', '15000', 0],
  ['idle_kb', 'kB of each', '<= 0.6', 2],
];

function figuresOf({ sections }: EdgeReport): Figures {
  return Object.assign({}, ...sections.map(({ figures }) => figures));
}

export function failedIn({ sections }: EdgeReport): number {
  // A count that is none is a failure, too.
  return sections.reduce((sum, { failed }) => sum + (Number.isFinite(failed) ? failed : 1), 0);
}

function figure(value: number | undefined, digits: number): string {
  return value === undefined || Number.isNaN(value) ? '-' : value.toFixed(digits);
}

/** `-` is what was not measured: not chosen, or not in this version. */
export function lastLine(report: EdgeReport): string {
  const figures = figuresOf(report);
  const told = [
    ['slots_per_page', 0],
    ['first_byte_ms_added', 1],
    ['cached_x', 1],
    ['herd_renders', 0],
    ['fleet_herd_renders', 0],
    ['cache_tests_required', 0],
  ] as const;
  const parts = told.map(([key, digits]) => `${key}=${figure(figures[key], digits)}`);
  return `edge: ${parts.join(' ')} failed=${failedIn(report)}`;
}

function goalTable(report: EdgeReport): string {
  const figures = figuresOf(report);
  const rows = GOALS.map(([key, what, goal, digits]) => [what, figure(figures[key], digits), goal]);
  return table(['Corelane', 'measured', 'goal'], rows);
}

function cell(value: Value | undefined, { digits = 0 }: Column): string {
  if (value === null || value === undefined) return '-';
  return typeof value === 'number' ? figure(value, digits) : value;
}

/** What a scenario says about fields that are not there, if it does. */
export function missingText({ missing = [] }: { missing?: string[] }): string[] {
  const names = missing.map((field) => `\`${field}\``).join(', ');
  return missing.length === 0 ? [] : [`${names} is not in this version: measured without.`];
}

function sectionText(section: Section): string {
  const { title, text, columns, rows, broken } = section;
  const cells = rows.map(({ system, values }) => [
    system,
    ...columns.map((column) => cell(values[column.key], column)),
  ]);
  const figures = rows.length === 0 ? [] : [table(['', ...columns.map(({ head }) => head)], cells)];
  const why = broken === undefined ? [] : [`Broken: ${broken.split('\n')[0]}`];
  return [`## ${title}`, text, ...why, ...missingText(section), ...figures].join('\n\n');
}

export function markdown(report: EdgeReport): string {
  const { machine, seconds, sections } = report;
  const { cpus, kernel, node, loadBefore } = machine;
  const where = `${cpus} CPUs, Linux ${kernel}, Node ${node}, load average ${loadBefore.toFixed(1)} before; ${Math.round(seconds)} s in all`;
  const intro = `What a front does in the pod, side by side with peers. ${where}.`;
  const parts = ['# Edge', intro, goalTable(report), '![bars](edge.svg)', ...sections.map(sectionText)];
  return `${parts.join('\n\n')}\n`;
}

/** A chart per scenario, of the column that says most. */
export function picture({ sections }: EdgeReport): string {
  const charts = sections.flatMap(({ title, columns, drawn, rows }) => {
    const column = columns.find(({ key }) => key === drawn) as Column;
    const groups = rows.flatMap(({ system, values }) => {
      const value = values[drawn];
      if (typeof value !== 'number' || !Number.isFinite(value)) return [];
      return [{ label: system, bars: [{ series: column.head, value, text: cell(value, column) }] }];
    });
    return groups.length === 0 ? [] : [{ title, subtitle: column.head, groups }];
  });
  return plot(charts);
}
