/**
 * `make bench-edge`: what a front does in the pod (files, streams, caches, overload, idle connections), and peers in
 * the same run. docs/benchmarks/README.md tells what is compared. EDGE=cached,herd chooses; then nothing is written to
 * docs/benchmarks.
 */
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { exampleWorker } from '../e2e/harness/engine/examples.ts';
import { SCENARIOS } from './edge/index.ts';
import { type EdgeReport, failedIn, lastLine, markdown, missingText, picture } from './edge/report.ts';
import type { Result, Scenario, Section } from './edge/scenario.ts';
import { chosen } from './lib/choice.ts';
import { Progress } from './lib/progress.ts';
import { runBench } from './lib/run-bench.ts';

const DOCS = fileURLToPath(new URL('../docs/benchmarks', import.meta.url));

const keys = chosen(
  'EDGE',
  SCENARIOS.map(({ key }) => key),
);
const scenarios = SCENARIOS.filter(({ key }) => keys.includes(key));
const isWhole = !process.env.EDGE;

function told({ figures, failed, broken: message, ...result }: Result): string {
  if (message !== undefined) return `broken: ${message}`;
  const parts = Object.entries(figures).map(([key, value]) => `${key} ${Number(value.toFixed(2))}`);
  return [...parts, `${failed} failed`, ...missingText(result)].join(', ');
}

/** A scenario that breaks does not take the others' figures with it. */
function broken(error: Error): Result {
  return { rows: [], figures: {}, failed: 1, broken: error.message };
}

function sectionOf({ key, title, text, columns, drawn }: Scenario, result: Result): Section {
  return { key, title, text, columns, drawn, ...result };
}

async function measure(): Promise<EdgeReport> {
  const loadBefore = loadavg()[0] ?? 0;
  const machine = { cpus: cpus().length, kernel: release().split('-')[0] ?? '', node: process.version, loadBefore };
  const progress = new Progress(scenarios.reduce((sum, { seconds }) => sum + seconds, 0));
  const sections: Section[] = [];
  if (scenarios.some(({ wantsNext }) => wantsNext)) {
    process.stderr.write('The Next app (the first time a minute or two, to build it) ... ');
    await exampleWorker('next');
    process.stderr.write('done\n');
  }
  const beganMs = Date.now();
  for (const scenario of scenarios) {
    const { title, seconds } = scenario;
    const startedMs = Date.now();
    const took = () => ` [${Math.round((Date.now() - startedMs) / 1_000)} s]`;
    const work = () => scenario.run().catch(broken);
    const result = await progress.step(title, seconds, work, (done) => told(done) + took());
    sections.push(sectionOf(scenario, result));
  }
  return { machine, seconds: (Date.now() - beganMs) / 1_000, sections };
}

await runBench(async () => {
  const report = await measure();
  if (isWhole) {
    writeFileSync(`${DOCS}/edge.json`, `${JSON.stringify(report, null, 1)}\n`);
    writeFileSync(`${DOCS}/edge.md`, markdown(report));
    writeFileSync(`${DOCS}/edge.svg`, picture(report));
  }
  console.log(markdown(report));
  console.log(lastLine(report));
  if (failedIn(report) > 0) process.exitCode = 1;
});
