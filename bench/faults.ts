/**
 * `make bench-faults`: the data plane and its peers, with and without faults. docs/benchmarks/README.md tells what is
 * compared. BENCH and SCENARIOS choose some of the systems and scenarios (names separated by commas; `mixed` and
 * `chain` are scenarios, too); then nothing but the cost of the way (`chain`) is written to docs/benchmarks.
 */
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { until } from '../e2e/harness/engine/pod.ts';
import { CHAIN_SECONDS, measureChain } from './faults/chain.ts';
import { MIXED_SECONDS, measureMixed } from './faults/mixed.ts';
import { lastLine, markdown, picture, type Report, wayMarkdown, wayPicture } from './faults/report.ts';
import { run, runScenario } from './faults/run.ts';
import { SCENARIOS, type Scenario, WORKERS } from './faults/scenarios.ts';
import { chosen } from './lib/choice.ts';
import { Progress } from './lib/progress.ts';
import { runBench } from './lib/run-bench.ts';
import { SYSTEMS, type SystemKind } from './systems/index.ts';
import type { System } from './systems/system.ts';

const DOCS = fileURLToPath(new URL('../docs/benchmarks', import.meta.url));
const START_SECONDS = 10;
/** Around a scenario: the client starts, the last requests end, workers recover. */
const AROUND_SECONDS = 2;
const EXTRA = ['mixed', 'chain'];

const systems = chosen('BENCH', Object.keys(SYSTEMS));
const scenarios = chosen('SCENARIOS', [...SCENARIOS.map(({ key }) => key), ...EXTRA]);
const isWhole = !process.env.BENCH && !process.env.SCENARIOS;

function scenariosOf({ only }: SystemKind): Scenario[] {
  return SCENARIOS.filter(({ key }) => scenarios.includes(key) && (!only || only.includes(key)));
}

function plannedSeconds(): number {
  const perSystem = systems.map((name) => {
    const own = scenariosOf(SYSTEMS[name] as SystemKind);
    return own.reduce((sum, { seconds }) => sum + seconds + AROUND_SECONDS, own.length > 0 ? START_SECONDS : 0);
  });
  const extra = (scenarios.includes('mixed') ? MIXED_SECONDS : 0) + (scenarios.includes('chain') ? CHAIN_SECONDS : 0);
  return perSystem.reduce((sum, seconds) => sum + seconds, extra);
}

/** A peer that is set up wrongly must not look like one that fails. */
async function mustServe(system: System): Promise<void> {
  await until(`${system.name} serves`, async () => {
    const group = { name: 'hello', concurrency: 1, count: 1, seconds: 10, requests: [{ path: '/?id={id}' }] };
    const { records } = await run(system, [group]);
    return records[0]?.status === 200;
  });
}

async function measureSystem(name: string, progress: Progress): Promise<Report['results']> {
  const kind = SYSTEMS[name] as SystemKind;
  const own = scenariosOf(kind);
  if (own.length === 0) return [];
  const results: Report['results'] = [];
  const system = await progress.step(`${name}: start`, START_SECONDS, async () => {
    const started = await kind.start(WORKERS);
    await mustServe(started);
    return started;
  });
  for (const scenario of own) {
    const seconds = scenario.seconds + AROUND_SECONDS;
    const work = () => runScenario(system, scenario);
    const result = await progress.step(`${name}: ${scenario.title}`, seconds, work, ({ outcome }) => {
      const { requests, failed, failedUnstarted, overlaps, latency } = outcome;
      return `${requests} requests, ${failed} failed (${failedUnstarted} unstarted), ${overlaps} overlaps, p99 ${Math.round(latency.p99)} ms`;
    });
    results.push(result);
  }
  await system.stop();
  return results;
}

async function measure(): Promise<Report> {
  const loadBefore = loadavg()[0] ?? 0;
  const machine = { cpus: cpus().length, kernel: release().split('-')[0] ?? '', node: process.version, loadBefore };
  const progress = new Progress(plannedSeconds());
  // First, while nothing else of ours has warmed up the machine: it is the finest figure.
  const chain = scenarios.includes('chain') ? await progress.step('cost of the way', CHAIN_SECONDS, measureChain) : [];
  const results: Report['results'] = [];
  for (const name of systems) results.push(...(await measureSystem(name, progress)));
  const mixed = scenarios.includes('mixed')
    ? await progress.step('renders that wait for data', MIXED_SECONDS, measureMixed)
    : [];
  process.stderr.write(`done in ${Math.round(progress.elapsedSeconds() / 60)} min\n\n`);
  return { machine, results, mixed, chain };
}

function write(report: Report): void {
  writeFileSync(`${DOCS}/faults.json`, `${JSON.stringify(report, null, 1)}\n`);
  writeFileSync(`${DOCS}/faults.md`, markdown(report));
  writeFileSync(`${DOCS}/faults.svg`, picture(report));
}

/** The way has files of its own: it is measured with all its peers, whichever systems are chosen. */
function writeWay(report: Report): void {
  const { machine, chain } = report;
  writeFileSync(`${DOCS}/way.json`, `${JSON.stringify({ machine, chain }, null, 1)}\n`);
  writeFileSync(`${DOCS}/way.md`, wayMarkdown(report));
  writeFileSync(`${DOCS}/way.svg`, wayPicture(report));
}

await runBench(async () => {
  const report = await measure();
  if (isWhole) write(report);
  if (report.chain.length > 0) writeWay(report);
  console.log(markdown(report));
  console.log(lastLine(report));
});
