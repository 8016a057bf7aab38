/**
 * `make bench-concurrency`: `concurrency: Auto` beside every fixed number that is worth trying and Node's cluster, with
 * renders that wait, that compute, and both. docs/benchmarks/README.md tells what is compared. BENCH chooses some parts
 * (`waits`, `computes`, `mixed`, `steady`, `slow`). Last line:
 *   concurrency: throughput_x=X p99_x=Y of_best=Z pure_cpu_limit=1 changes_per_minute=W
 */
import { writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { PORTS } from '../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../operator/src/api/spec.ts';
import { chosen } from './lib/choice.ts';
import { type Group, type PlannedRequest, runLoad } from './lib/load.ts';
import { Progress } from './lib/progress.ts';
import { createRandom } from './lib/random.ts';
import { runBench } from './lib/run-bench.ts';
import { percentile } from './lib/stats.ts';
import { ms, ratio, table } from './lib/table.ts';
import { Corelane } from './systems/corelane.ts';
import { startCluster } from './systems/node.ts';
import type { System } from './systems/system.ts';

const FOLDER = fileURLToPath(new URL('../docs/benchmarks', import.meta.url));
const WORKERS = 4;
/** Blocks the event loop without burning CPU, so that four workers fit on two cores; then waits; then blocks. */
const MIXES: Record<string, string[]> = {
  waits: ['b15,w100,b15'],
  computes: ['b30'],
  mixed: ['b30', 'b30', 'b15,w200,b15', 'b30', 'b15,w200,b15'],
};
const CPU_MS = 30;
const FIXED: Record<string, number[]> = { waits: [1, 4, 6, 8, 12], computes: [1], mixed: [1, 4] };
/** The first seconds are for finding the number, and for the JIT; nobody's count. */
const LEAD_SECONDS = 6;
const SECONDS = 7;
const STEADY_SECONDS = 45;
/** A thirteenth of the CPU: hardly ever two in a worker. */
const UNLOADED_PER_SECOND = 10;
const CLIENTS = 14 * WORKERS;
const TIMEOUT_MS = 20_000;
const START_SECONDS = 9;
/** A dependency of some pages is as ever, ten times slower, dead, and back. */
const SLOW_SECONDS = { alone: 30, slow: 60, dead: 60, after: 25 };
/** 8 pages a second hang for 6 s: 48 places on average, of four times this. */
const SLOW_MAX = 24;

interface Figures {
  perSecond: number;
  p50: number;
  p99: number;
  failed: number;
}
interface Row extends Figures {
  mix: string;
  system: string;
  limits?: number[];
}

const parts = chosen('BENCH', ['waits', 'computes', 'mixed', 'steady', 'slow']);

function corelane(concurrency: number | 'Auto'): Promise<Corelane> {
  const spec: Partial<RenderServiceSpecInput> = {
    workersPerPod: WORKERS,
    concurrency,
    ...(concurrency !== 1 && { balance: 'leastconn' }),
    queue: { maxLength: 1_000, timeout: '30s' },
  };
  return Corelane.start(spec, concurrency === 1 ? '1 (default)' : String(concurrency));
}

/** Closed loop: clients that ask again as soon as they are answered. */
function closed(name: string, mix: string, seconds: number, clients = CLIENTS): Group {
  return { name, concurrency: clients, seconds, count: 1_000_000, keepAlive: true, requests: requestsOf(mix) };
}

/** Open loop: so many requests a second, at random times. */
function open(name: string, mix: string, seconds: number, perSecond: number): Group {
  const random = createRandom(11);
  const kinds = requestsOf(mix);
  const requests: PlannedRequest[] = [];
  let atMs = 0;
  while (atMs < 1_000 * seconds) {
    requests.push({ ...(kinds[requests.length % kinds.length] as PlannedRequest), atMs });
    atMs += (1_000 / perSecond) * -Math.log(1 - random());
  }
  return { name, keepAlive: true, requests };
}

function requestsOf(mix: string): PlannedRequest[] {
  return (MIXES[mix] ?? []).map((steps) => ({ path: `/?id={id}&steps=${steps}` }));
}

/** Runs groups one after the other; figures of the last one. */
async function figures(system: System, groups: Group[], seconds: number): Promise<Figures> {
  const plan = { targets: system.targets, bodyBytes: 0, timeoutMs: TIMEOUT_MS, phases: groups.map((group) => [group]) };
  const records = await runLoad(system.network, plan);
  const last = groups.at(-1)?.name;
  const own = records.filter(({ group }) => group === last);
  const answered = own.filter(({ status, error }) => status === 200 && error === undefined);
  const times = answered.map(({ ms }) => ms).sort((one, other) => one - other);
  return {
    perSecond: answered.length / seconds,
    p50: percentile(times, 50),
    p99: percentile(times, 99),
    failed: own.length - answered.length,
  };
}

async function limitsOf({ pod }: Corelane): Promise<number[]> {
  const { body } = await pod.get('/corelane/metrics?detail=1', { port: PORTS.stats });
  const lines = [...body.matchAll(/^corelane_worker_concurrency_limit\{[^}]*\} ([0-9]+)$/gm)];
  return lines.map(([, limit]) => Number(limit));
}

async function changesOf({ pod }: Corelane): Promise<number> {
  const { body } = await pod.get('/corelane/metrics?detail=1', { port: PORTS.stats });
  const lines = [...body.matchAll(/^corelane_worker_concurrency_changes_total\{[^}]*\} ([0-9]+)$/gm)];
  return lines.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Throughput of every system with more clients than places, first come first served. */
async function saturated(mix: string, progress: Progress): Promise<Row[]> {
  const kinds: [string, () => Promise<System>][] = [
    ...(FIXED[mix] ?? []).map((n): [string, () => Promise<System>] => [`Corelane, ${n}`, () => corelane(n)]),
    ['Corelane, Auto', () => corelane('Auto')],
    ['Node cluster', () => startCluster(WORKERS)],
  ];
  const rows: Row[] = [];
  for (const [name, begin] of kinds) {
    const work = async (): Promise<Row> => {
      const system = await begin();
      const groups = [closed('lead', mix, LEAD_SECONDS), closed('counted', mix, SECONDS)];
      const found = await figures(system, groups, SECONDS);
      const limits = system instanceof Corelane ? await limitsOf(system) : undefined;
      await system.stop();
      return { mix, system: name, ...found, ...(limits && { limits }) };
    };
    const told = ({ perSecond, p99, failed, limits }: Row) =>
      `${perSecond.toFixed(1)}/s, p99 ${ms(p99)} ms, ${failed} failed, limits ${limits ?? '-'}`;
    rows.push(await progress.step(`${mix}: ${name}`, START_SECONDS + LEAD_SECONDS + SECONDS, work, told));
  }
  return rows;
}

interface Steady {
  unloadedP99: number;
  equalP99: number;
  loadedP99: number;
  clusterP99: number;
  changesPerMinute: number;
}

/**
 * Renders that wait, open loop: unloaded; at 0.9 of what single flight can do; at 0.7 of the CPU for a while, in which
 * changes are counted.
 */
async function steady(progress: Progress): Promise<Steady> {
  const capacity = (1_000 * WORKERS) / CPU_MS;
  const single = (1_000 * WORKERS) / (CPU_MS + 100);
  const lead = closed('lead', 'waits', LEAD_SECONDS);
  const work = async () => {
    const auto = await corelane('Auto');
    const unloaded = await figures(
      auto,
      [lead, open('unloaded', 'waits', 2 * SECONDS, UNLOADED_PER_SECOND)],
      2 * SECONDS,
    );
    const equal = await figures(auto, [open('equal', 'waits', 2 * SECONDS, 0.9 * single)], 2 * SECONDS);
    const before = await changesOf(auto);
    const loaded = await figures(auto, [open('loaded', 'waits', STEADY_SECONDS, 0.7 * capacity)], STEADY_SECONDS);
    const changes = (await changesOf(auto)) - before;
    await auto.stop();
    const cluster = await startCluster(WORKERS);
    const beside = await figures(cluster, [lead, open('loaded', 'waits', SECONDS, 0.7 * capacity)], SECONDS);
    await cluster.stop();
    return {
      ...{ unloadedP99: unloaded.p99, equalP99: equal.p99, loadedP99: loaded.p99, clusterP99: beside.p99 },
      changesPerMinute: (60 * changes) / STEADY_SECONDS / WORKERS,
    };
  };
  const told = (found: Steady) => JSON.stringify(found);
  return progress.step('waits, open loop', 2 * LEAD_SECONDS + STEADY_SECONDS + 4 * SECONDS, work, told);
}

type Phase = keyof typeof SLOW_SECONDS;

interface Slow {
  /** p99 of the pages that do not need the slow dependency. */
  p99: Record<Phase, number>;
  limits: Record<Phase, number[]>;
  /** Of workers, in all that time. */
  restarts: number;
  failed: number;
}

const SLOW_STEPS: Record<Phase, string> = {
  alone: 'b15,w100,b15',
  slow: 'b15,w1000,b15',
  dead: 'b15,w60000,b15',
  after: 'b15,w100,b15',
};

/** One page in six waits for something that becomes ten times slower, then dies; the others do not need it. */
async function slow(progress: Progress): Promise<Slow> {
  const perSecond = 0.3 * ((1_000 * WORKERS) / CPU_MS);
  const phaseOf = (phase: Phase): Group[] => {
    const seconds = SLOW_SECONDS[phase];
    const path = `/?id={id}&steps=${SLOW_STEPS[phase]}`;
    const needing = open(`needing-${phase}`, 'waits', seconds, perSecond / 5);
    return [
      open(phase, 'computes', seconds, perSecond),
      { ...needing, requests: needing.requests.map((request) => ({ ...request, path })) },
    ];
  };
  const work = async () => {
    const auto = await Corelane.start({
      ...{ workersPerPod: WORKERS, concurrency: 'Auto', concurrencyRange: { max: SLOW_MAX } },
      ...{ queue: { maxLength: 1_000, timeout: '30s' }, timeouts: { render: '5s' } },
    });
    const found: Slow = { p99: {}, limits: {}, restarts: 0, failed: 0 } as Slow;
    for (const phase of Object.keys(SLOW_SECONDS) as Phase[]) {
      const plan = { targets: auto.targets, bodyBytes: 0, timeoutMs: 20_000, phases: [phaseOf(phase)] };
      const all = await runLoad(auto.network, plan);
      const records = all.filter(({ group }) => group === phase);
      const needing = all.filter(({ group, status }) => group !== phase && status === 200).length;
      if (phase !== 'dead' && needing === 0)
        throw new Error(`no page that needs the dependency was answered: ${phase}`);
      const answered = records.filter(({ status, error }) => status === 200 && error === undefined);
      found.failed += records.length - answered.length;
      found.p99[phase] = percentile(
        answered.map(({ ms }) => ms).sort((one, other) => one - other),
        99,
      );
      found.limits[phase] = await limitsOf(auto);
    }
    const { body } = await auto.pod.get('/corelane/metrics?detail=1', { port: PORTS.stats });
    for (const [, count] of body.matchAll(/^corelane_worker_restarts_total\{[^}]*\} ([0-9]+)$/gm))
      found.restarts += Number(count);
    await auto.stop();
    return found;
  };
  return progress.step('slow and dead dependency', slowSeconds(), work, (found) => JSON.stringify(found));
}

/** With what the needing pages of a phase take until they end. */
function slowSeconds(): number {
  return START_SECONDS + Object.values(SLOW_SECONDS).reduce((sum, seconds) => sum + seconds + 2, 0);
}

function summary(rows: Row[], found: Steady | undefined): string {
  const of = (mix: string, system: string) => rows.find((row) => row.mix === mix && row.system === system);
  const auto = of('waits', 'Corelane, Auto');
  const single = of('waits', 'Corelane, 1');
  const best = Math.max(
    ...rows.filter(({ mix, system }) => mix === 'waits' && /, [0-9]/.test(system)).map((row) => row.perSecond),
  );
  const pure = of('computes', 'Corelane, Auto')?.limits ?? [];
  const figure = (value: number | undefined) => (value === undefined ? '-' : ratio(value));
  return [
    `concurrency: throughput_x=${figure(auto && single && auto.perSecond / single.perSecond)}`,
    `p99_x=${figure(found && found.equalP99 / found.unloadedP99)}`,
    `of_best=${figure(auto && auto.perSecond / best)}`,
    `pure_cpu_limit=${pure.length > 0 ? Math.max(...pure) : '-'}`,
    `changes_per_minute=${figure(found?.changesPerMinute)}`,
  ].join(' ');
}

function page(rows: Row[], found: Steady | undefined, hurt: Slow | undefined, last: string): string {
  const head = ['renders', 'system', 'answered/s', 'p50', 'p99, ms', 'failed', 'limits at the end'];
  const cells = rows.map(({ mix, system, perSecond, p50, p99, failed, limits }) => [
    ...[mix, system, perSecond.toFixed(1), ms(p50), ms(p99), failed, limits?.join(' ') ?? ''],
  ]);
  const open = found && [
    `Renders that wait, open loop, Auto: p99 ${ms(found.unloadedP99)} ms unloaded, ${ms(found.equalP99)} ms at 0.9 of what one at a time can do,`,
    `${ms(found.loadedP99)} ms at 0.7 of the CPU (Node cluster ${ms(found.clusterP99)} ms); ${ratio(found.changesPerMinute)} changes a minute and worker.`,
  ];
  const times = (phase: Phase) =>
    hurt ? `${ms(hurt.p99[phase])} ms (${ratio(hurt.p99[phase] / hurt.p99.alone)} x)` : '';
  const slowText = hurt && [
    `A dependency of one page in six (concurrencyRange.max ${SLOW_MAX}, timeouts.render 5s): the other pages' p99 is ${ms(hurt.p99.alone)} ms; ${times('slow')} in a minute in which it is 10 times slower,`,
    `${times('dead')} in a minute in which it is dead, ${times('after')} in the 25 s after that. Limits: ${hurt.limits.alone.join(' ')}, ${hurt.limits.slow.join(' ')}, ${hurt.limits.dead.join(' ')}, ${hurt.limits.after.join(' ')}; ${hurt.restarts} restarts, ${hurt.failed} of the other pages failed.`,
  ];
  return `# Concurrency that finds itself

Made by \`make bench-concurrency\` on ${cpus().length} cores, load before ${(loadavg()[0] ?? 0).toFixed(1)}; ${WORKERS} workers that block without burning CPU.
waits: 15 ms, 100 ms waiting, 15 ms. computes: 30 ms. mixed: three of these, two with 200 ms of waiting. ${CLIENTS} clients, closed loop, ${SECONDS} s after ${LEAD_SECONDS} s that are not counted.

\`${last}\`

${table(head, cells)}

${(open ?? []).join('\n')}

${(slowText ?? []).join('\n')}
`;
}

await runBench(async () => {
  const mixes = Object.keys(MIXES).filter((mix) => parts.includes(mix));
  const each = START_SECONDS + LEAD_SECONDS + SECONDS;
  const systems = mixes.reduce((sum, mix) => sum + (FIXED[mix]?.length ?? 0) + 2, 0);
  const progress = new Progress(
    each * systems +
      (parts.includes('steady') ? STEADY_SECONDS + 60 : 0) +
      (parts.includes('slow') ? slowSeconds() : 0),
  );
  const rows: Row[] = [];
  for (const mix of mixes) rows.push(...(await saturated(mix, progress)));
  const found = parts.includes('steady') ? await steady(progress) : undefined;
  const hurt = parts.includes('slow') ? await slow(progress) : undefined;
  const last = summary(rows, found);
  if (!process.env.BENCH) {
    writeFileSync(`${FOLDER}/concurrency.md`, page(rows, found, hurt, last));
    writeFileSync(`${FOLDER}/concurrency.json`, `${JSON.stringify({ last, rows, found, hurt }, null, 2)}\n`);
  } else console.log(page(rows, found, hurt, last));
  console.log(last);
});
