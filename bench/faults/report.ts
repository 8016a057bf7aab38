/** The report of `make bench-faults`. Computes only. */

import { type BarChart, plot } from '../../operator/plots/index.ts';
import { closedLoopResponseMs } from '../lib/fifo.ts';
import { summarize } from '../lib/stats.ts';
import { ms, ratio, table } from '../lib/table.ts';
import { STALL_TIMEOUT_MS, SYSTEMS } from '../systems/index.ts';
import { type ChainCost, METHODS } from './chain.ts';
import type { MixedResult } from './mixed.ts';
import type { Ideal, Result } from './run.ts';
import { RENDER_MS, REQUESTS, SCENARIOS, WORKERS } from './scenarios.ts';

export interface Report {
  machine: { cpus: number; kernel: string; node: string; loadBefore: number };
  results: (Result & { ideal: Ideal })[];
  mixed: MixedResult[];
  chain: ChainCost[];
}

/** Corelane's sums over all scenarios, with whatever `replay`. */
function losses({ results }: Report): { unstarted: number; overlaps: number } {
  const own = results.filter(({ system }) => system.startsWith('corelane'));
  const outcomes = own.flatMap(({ outcome, slow }) => [outcome, ...(slow ? [slow] : [])]);
  return {
    unstarted: outcomes.reduce((sum, { failedUnstarted }) => sum + failedUnstarted, 0),
    overlaps: own.reduce((sum, { outcome }) => sum + outcome.overlaps, 0),
  };
}

export function lastLine(report: Report): string {
  const { unstarted, overlaps } = losses(report);
  return `faults: unstarted_lost=${unstarted} overlaps=${overlaps}`;
}

/** What Corelane aims at, and what this run has shown. */
function goalTable(report: Report): string[] {
  const find = (name: string, key: string) =>
    report.results.find(({ system, scenario }) => system === name && scenario === key);
  const own = (key: string) => find('corelane', key);
  const rows: [string, string, string][] = [];
  const add = (what: string, value: number | undefined, goal: string, digits = 2) => {
    if (value !== undefined && Number.isFinite(value)) rows.push([what, value.toFixed(digits), goal]);
  };
  const { unstarted, overlaps } = losses(report);
  if (report.results.some(({ system }) => system === 'corelane')) {
    add('requests lost that no worker had begun, all scenarios', unstarted, '0', 0);
    add('overlaps, all scenarios', overlaps, '0', 0);
  }
  for (const clients of [13, 20]) {
    const result = own(`normal-${clients}`);
    if (!result) continue;
    const { outcome, ideal } = result;
    add(`p99 at C=${clients} / perfect queue (asked)`, outcome.latency.p99 / ideal.asked.p99, '<= 1.05');
    add(`p99 at C=${clients} / perfect queue (taken)`, outcome.latency.p99 / ideal.taken.p99, '<= 1.05');
    add(`p99 at C=${clients} / perfect queue (same clients)`, outcome.latency.p99 / closedLoopP99(clients), '');
    const direct = find('direct', `normal-${clients}`);
    if (direct)
      add(`p99 at C=${clients} / no way at all (direct)`, outcome.latency.p99 / direct.outcome.latency.p99, '');
  }
  const back = own('runaway')?.runawayMs?.map((value) => (value ?? Number.POSITIVE_INFINITY) / 1_000);
  if (back)
    add('s until a runaway worker serves again, longest', Math.max(...back), `<= ${STALL_TIMEOUT_MS / 1_000 + 1}`);
  const way = (name: string, by: string) => report.chain.find(({ system, method }) => system === name && method === by);
  const [get, post, peer] = [way('corelane', 'GET'), way('corelane', 'POST'), way('queue-proxy', 'POST')];
  add('ms that the proxies add to an empty render', get?.addedMs, '< 0.3', 3);
  add('us of CPU that they take for it', get?.cpuUs, '< 200', 0);
  if (get && post && peer) {
    add('ms that they add to a POST / to a GET', post.addedMs / get.addedMs, '<= 1.1');
    add('CPU of a POST / of a GET', post.cpuUs / get.cpuUs, '<= 1.1');
    add('ms that they add to a POST / that queue-proxy adds', post.addedMs / peer.addedMs, '< 1');
    add('CPU of a POST / of one through queue-proxy', post.cpuUs / peer.cpuUs, '< 1');
  }
  return rows.length === 0 ? [] : ['## Corelane and its goals', table(['what', 'measured', 'goal'], rows)];
}

const COUNTS = ['requests', 'answered', 'failed', 'unstarted', 'overlaps'];
const TIMES = ['p50', 'p95', 'p99', 'max'];

function scenarioTables({ results }: Report): string[] {
  return SCENARIOS.flatMap(({ key, title }) => {
    const rows = results
      .filter(({ scenario }) => scenario === key)
      .map(({ system, outcome: { requests, answered, failed, failedUnstarted, overlaps, latency } }) => [
        system,
        ...[requests, answered, failed, failedUnstarted, overlaps],
        ...[latency.p50, latency.p95, latency.p99, latency.max].map(ms),
      ]);
    if (rows.length === 0) return [];
    return [`### ${title}`, table(['system', ...COUNTS, ...TIMES], rows)];
  });
}

function idealTable({ results }: Report): string[] {
  const rows = results
    .filter(({ scenario }) => scenario.startsWith('normal-'))
    .map(({ system, scenario, outcome: { latency }, ideal }) => [
      `${system}, C=${scenario.slice(7)}`,
      ms(latency.p99),
      ...boundCells(latency.p99, ideal),
      ...closedLoopCells(latency.p99, Number(scenario.slice(7))),
    ]);
  if (rows.length === 0) return [];
  return ['## Beside a perfect queue', table(['system', 'p99', ...BOUND_HEAD, 'same clients', 'ratio'], rows)];
}

function closedLoopP99(clients: number): number {
  return summarize(closedLoopResponseMs(clients, WORKERS, RENDER_MS, REQUESTS)).p99;
}

function closedLoopCells(p99: number, clients: number): string[] {
  const bound = closedLoopP99(clients);
  return [ms(bound), ratio(p99 / bound)];
}

const BOUND_HEAD = ['bound (asked)', 'ratio', 'bound (taken)', 'ratio'];

function boundCells(p99: number, { asked, taken }: Ideal): string[] {
  return [ms(asked.p99), ratio(p99 / asked.p99), ms(taken.p99), ratio(p99 / taken.p99)];
}

function mixedTable({ mixed }: Report): string[] {
  if (mixed.length === 0) return [];
  const rows = mixed.map(({ system, clients, answered, overlaps, p50, p99, ideal }) => [
    `${system}, C=${clients}`,
    ...[answered, overlaps, ms(p50), ms(p99)],
    // The bound is that of one request per worker: who takes more gets more arrivals than it could bear.
    ...(overlaps > 0 ? Array(BOUND_HEAD.length).fill('-') : boundCells(p99, ideal)),
  ]);
  const head = ['system', 'answered', 'overlaps', 'p50', 'p99', ...BOUND_HEAD];
  return ['## Renders that wait for data: 20 ms blocking, 30 ms waiting, 20 ms blocking', table(head, rows)];
}

function chainTable({ chain }: Report): string[] {
  if (chain.length === 0) return [];
  const rows = chain.map(({ system, method, requests, directMs, chainMs, addedMs, cpuUs }) => [
    `${system}, ${method}`,
    requests,
    ...[directMs, chainMs, addedMs].map((value) => value.toFixed(3)),
    Math.round(cpuUs),
  ]);
  const head = ['proxies', 'requests', 'direct ms', 'through ms', 'added ms', 'CPU us / request'];
  return ['## What the way costs: an empty render', table(head, rows)];
}

function runawayTable({ results }: Report): string[] {
  const rows = results.flatMap(({ system, runawayMs }) =>
    runawayMs ? [[system, ...runawayMs.map((value) => (value === null ? 'never' : (value / 1_000).toFixed(1)))]] : [],
  );
  if (rows.length === 0) return [];
  return [
    `## Seconds until a worker in an infinite loop serves again (limit of the watchdog: ${STALL_TIMEOUT_MS / 1_000} s)`,
    table(['system', '1st', '2nd', '3rd', '4th', '5th'], rows),
  ];
}

function failureList({ results }: Report): string[] {
  const lines = results
    .filter(({ failures }) => Object.keys(failures).length > 0)
    .map(({ system, scenario, failures }) => {
      const reasons = Object.entries(failures).map(([reason, count]) => `${count} x ${reason}`);
      return `- ${system}, ${scenario}: ${reasons.join(', ')}`;
    });
  return lines.length === 0 ? [] : ['## How requests failed', lines.join('\n')];
}

/** For the terminal and for docs/benchmarks/faults.md. */
export function markdown(report: Report): string {
  const { cpus, kernel, node, loadBefore } = report.machine;
  const systems = Object.entries(SYSTEMS).map(([name, { title }]) => `- \`${name}\`: ${title}`);
  const parts = [
    '# Faults, side by side',
    `Measured by \`make bench-faults\` on ${cpus} CPUs, Linux ${kernel}, Node.js ${node}; load average before: ${loadBefore.toFixed(1)}.\n[README.md](README.md) says what the columns mean and what is compared.`,
    systems.join('\n'),
    ...goalTable(report),
    '## Scenarios',
    'Times in milliseconds. `unstarted`: failed, and no worker had begun it.',
    ...scenarioTables(report),
    ...idealTable(report),
    ...mixedTable(report),
    ...chainTable(report),
    ...runawayTable(report),
    ...failureList(report),
    `\`${lastLine(report)}\``,
  ];
  return `${parts.join('\n\n')}\n`;
}

/** Bars for each method; the axis begins at 1, so values are in microseconds. */
function wayChart(title: string, chain: ChainCost[], value: (cost: ChainCost) => number): BarChart {
  const bars = (by: string) =>
    chain
      .filter(({ method }) => method === by)
      .map((cost) => ({ series: cost.system, value: value(cost), text: `${Math.round(value(cost))}` }));
  return {
    title,
    subtitle: 'microseconds for one request, logarithmic',
    groups: Object.keys(METHODS).map((label) => ({ label, bars: bars(label) })),
  };
}

const WAY_CHARTS = (chain: ChainCost[]): BarChart[] => [
  wayChart('Time that the proxies add to an empty render', chain, ({ addedMs }) => addedMs * 1_000),
  wayChart('CPU of the proxies for an empty render', chain, ({ cpuUs }) => cpuUs),
];

/** docs/benchmarks/way.md: what the way costs, by itself. */
export function wayMarkdown(report: Report): string {
  const { cpus, kernel, node, loadBefore } = report.machine;
  const [, ratios] = goalTable({ ...report, results: [] });
  const parts = [
    '# What the way to a worker costs',
    `Measured by \`make bench-faults\` (\`BENCH=corelane SCENARIOS=chain\` for this alone) on ${cpus} CPUs, Linux ${kernel}, Node.js ${node}; load average before: ${loadBefore.toFixed(1)}.\nAll in turn, in one run. [README.md](README.md) says what the columns mean.`,
    ...chainTable(report),
    '## Ratios',
    ratios ?? '',
  ];
  return `${parts.join('\n\n')}\n`;
}

/** docs/benchmarks/way.svg */
export function wayPicture({ chain }: Report): string {
  return plot(WAY_CHARTS(chain));
}

/** docs/benchmarks/faults.svg */
export function picture({ results, chain }: Report): string {
  const chart = (title: string, subtitle: string, value: (result: Result) => number): BarChart => ({
    title,
    subtitle,
    groups: SCENARIOS.map(({ key, title: label }) => ({
      label,
      bars: results
        .filter(({ scenario }) => scenario === key)
        .map((result) => ({ series: result.system, value: value(result) || 0, text: ms(value(result)) })),
    })).filter(({ bars }) => bars.length > 0),
  });
  return plot([
    chart('Requests that failed', 'of those sent in the same time; logarithmic', ({ outcome }) => outcome.failed),
    chart(
      '99th percentile of the answered requests',
      'milliseconds, logarithmic',
      ({ outcome }) => outcome.latency.p99,
    ),
    ...WAY_CHARTS(chain),
  ]);
}
