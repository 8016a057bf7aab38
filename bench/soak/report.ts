/** What a soak has seen, for people. Computes only. */
import { percentile } from '../../e2e/load/stats.mjs';
import { plot } from '../../operator/plots/index.ts';
import { ms, table } from '../lib/table.ts';
import { KINDS, type Kind } from './sequence.ts';
import type { Visits } from './traffic.ts';
import { type Done, GROWTH_MIB_MAX, type Growth, lastLine, type Result, type Sample, wrongs } from './verdicts.ts';

/** Requests are counted by so much time in the plot. */
const BIN_MS = 10_000;

export interface Report {
  result: Result;
  visits: Visits[];
  rss: Sample[];
  heap: Sample[];
  proxies: Record<string, Sample[]>;
  beginMs: number;
  endMs: number;
  machine: string;
}

export function markdown(report: Report): string {
  const { result, machine } = report;
  const wrong = wrongs(result);
  const parts = [
    '# A soak on kind',
    `Made by \`MINUTES=${result.minutes} SEED=${result.seed} make soak\` on ${machine}. [README.md](README.md#soak) tells what is done.`,
    `\`${lastLine(result)}\``,
    wrong.length === 0 ? 'Nothing was wrong.' : ['Wrong:', '', ...wrong.map((one) => `- ${one}`)].join('\n'),
    '![Memory of the operator and of proxies, and response times, with what was done meanwhile](soak.svg)',
    '## What was done',
    'Seconds until the status told what was to come of it: `Ready`, `Stalled` where pods were broken or a name taken, or that nothing was left.',
    actionTable(result.actions),
    '## Honest requests',
    trafficTable(report),
    ...(result.lost.length > 0 ? ['### Lost', lostTable(result)] : []),
    '## Memory',
    'Medians of the first and of the last third of the time in which one process was looked at, two minutes for its start left out; only where there were about as many RenderServices.',
    memoryTable(result),
  ];
  return `${parts.join('\n\n')}\n`;
}

function actionTable(actions: Done[]): string {
  const rows = KINDS.filter((kind) => actions.some((one) => one.kind === kind)).map((kind) => rowOf(kind, actions));
  return table(['action', 'times', 's, median', 's, longest'], rows);
}

function rowOf(kind: Kind, actions: Done[]): (string | number)[] {
  const own = actions.filter((one) => one.kind === kind);
  const seconds = own.flatMap(({ convergedS }) => convergedS ?? []).toSorted((one, other) => one - other);
  return [kind, own.length, ms(percentile(seconds, 50)), ms(percentile(seconds, 100))];
}

function trafficTable({ visits, result: { lost } }: Report): string {
  const names = [...new Set(visits.map(({ client }) => client))];
  const rows = names.map((name) => {
    const own = visits.filter(({ client }) => client === name);
    const entries = own.flatMap(({ timeline }) => timeline);
    const overlaps = own.reduce((sum, one) => sum + one.overlaps, 0);
    const latencies = entries
      .filter(([, , how]) => how === undefined)
      .map(([, latencyMs]) => latencyMs)
      .toSorted((one, other) => one - other);
    const times = [50, 99, 100].map((percent) => ms(percentile(latencies, percent)));
    return [name, entries.length, lost.filter(({ client }) => client === name).length, overlaps, ...times];
  });
  return table(['client', 'requests', 'lost', 'overlaps', 'p50, ms', 'p99', 'max'], rows);
}

function lostTable({ lost }: Result): string {
  const rows = lost.map(({ client, atMs, how, requestId, nearest }) => [
    `${client} ${requestId}`,
    new Date(atMs).toISOString(),
    how,
    nearest ? `#${nearest.number} ${nearest.kind}` : '-',
    nearest ? nearest.seconds.toFixed(1) : '-',
  ]);
  return table(['request', 'failed at', 'how', 'nearest action', 's away'], rows);
}

function memoryTable({ operatorRss, operatorHeap, proxies }: Result): string {
  const row = (what: string, growth: Growth | undefined, max: number) =>
    growth
      ? [what, growth.minutes.toFixed(0), ...[growth.firstMib, growth.lastMib, growth.growthMib].map(mib), max]
      : [what, '-', '-', '-', '-', max];
  return table(
    ['memory of', 'minutes', 'first third, MiB', 'last third', 'growth', 'allowed'],
    [
      row('operator, RSS', operatorRss, GROWTH_MIB_MAX.operatorRss),
      row('operator, heap in use', operatorHeap, GROWTH_MIB_MAX.operatorHeap),
      ...Object.entries(proxies).map(([name, growth]) => row(name, growth, GROWTH_MIB_MAX.proxy)),
    ],
  );
}

const mib = (value: number) => value.toFixed(1);

/** The same for programs, a line for each item of a list. */
export function json({ result, rss, heap, proxies, beginMs, machine }: Report): string {
  const second = (atMs: number) => Math.round((atMs - beginMs) / 100) / 10;
  const points = (samples: Sample[]) =>
    samples.map((one) => [second(one.atMs), Math.round(one.mib * 10) / 10, one.process]);
  const memory = Object.entries({ rss, heap, ...proxies }).map(([name, samples]) => [
    `mib_of_${name}`,
    points(samples),
  ]);
  const all = { line: lastLine(result), machine, ...result, ...Object.fromEntries(memory) };
  const fields = Object.entries(all).map(([name, value]) => {
    const isList = Array.isArray(value) && value.length > 0;
    const text = isList
      ? `[\n  ${value.map((one) => JSON.stringify(one)).join(',\n  ')}\n]`
      : JSON.stringify(value ?? null);
    return `${JSON.stringify(name)}: ${text}`;
  });
  return `{\n${fields.join(',\n')}\n}\n`;
}

/** Memory and response times over time; a stroke for each action, a dot for each request that was lost. */
export function picture({ result, visits, rss, heap, proxies, beginMs, endMs }: Report): string {
  const second = (atMs: number) => (atMs - beginMs) / 1000;
  const line = (name: string, samples: Sample[]) => ({
    name,
    points: samples.map(({ atMs, mib }): [number, number] => [second(atMs), mib]),
  });
  const endS = second(endMs);
  const everyMin = Math.max(1, Math.ceil(endS / 60 / 12));
  const common = {
    endS,
    ticks: Array.from({ length: Math.floor(endS / 60 / everyMin) + 1 }, (_unused, n): [number, string] => [
      60 * n * everyMin,
      `${n * everyMin} min`,
    ]),
    strokes: result.actions.map(({ number, kind, target, beginMs: atMs }) => ({
      atS: second(atMs),
      text: `#${number} ${kind}${target ? ` ${target}` : ''}`,
    })),
    dots: result.lost.map(({ atMs, how }) => ({ atS: second(atMs), text: how })),
  };
  const bins = Map.groupBy(
    visits.flatMap(({ timeline }) => timeline),
    ([dueAtMs]) => Math.floor((dueAtMs - beginMs) / BIN_MS),
  );
  const times = [...bins].toSorted(([one], [other]) => one - other);
  const percentileLine = (name: string, percent: number) => ({
    name,
    points: times.flatMap(([bin, entries]): [number, number][] => {
      const latencies = entries.filter(([, , how]) => how === undefined).map(([, latencyMs]) => latencyMs);
      const value = percentile(
        latencies.toSorted((one, other) => one - other),
        percent,
      );
      return value === null ? [] : [[(bin * BIN_MS) / 1000, value]];
    }),
  });
  return plot([
    {
      ...common,
      title: 'Memory of the operator that leads, MiB',
      subtitle: 'a stroke: an action; another process begins anew',
      lines: [line('RSS', rss), line('heap in use', heap)],
    },
    {
      ...common,
      title: 'Memory of the proxies of an honest RenderService, MiB',
      subtitle: 'private memory of all processes of the container, two pods',
      lines: Object.entries(proxies).map(([name, samples]) => line(name, samples)),
    },
    {
      ...common,
      title: 'Honest requests, ms',
      subtitle: `of each ${BIN_MS / 1000} s; red: requests that were lost`,
      lines: [percentileLine('p50', 50), percentileLine('p99', 99)],
      logarithmicFrom: 10,
      max: 20_000,
    },
    {
      ...common,
      title: 'Honest requests, a second',
      lines: [
        {
          name: 'answered',
          points: times.map(([bin, entries]): [number, number] => [
            (bin * BIN_MS) / 1000,
            entries.filter(([, , how]) => how === undefined).length / (BIN_MS / 1000),
          ]),
        },
      ],
    },
  ]);
}
