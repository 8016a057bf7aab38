/**
 * `make bench-observe`: ten faults of a real fleet in an order that nobody knows, each named by what `corelane explain`
 * says, and by what the page of `corelane dashboard` says; what it costs to be seen. docs/benchmarks/README.md tells
 * how. SEED chooses the order, FAULTS some of them by parts of their names, OBSERVE a part (`faults`, `cost`). The
 * alerts and panels are those of `make test-alerts` and `make test-dashboards`, from the last runs of them. Last line:
 *   observe: panels=N empty=0 alerts_ok=10 false=0 named=10/10 us_per_request=X series_per_pod=Y
 * Pictures of the page, by number and not by name, are in .state/observe while it runs, for who wants to guess.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startChromium } from '../e2e/browser/chromium.ts';
import { chosen } from './lib/choice.ts';
import { Progress } from './lib/progress.ts';
import { createRandom, pick } from './lib/random.ts';
import { runBench } from './lib/run-bench.ts';
import { addedUs, type Costs, measureCosts } from './observe/cost.ts';
import { FAULTS } from './observe/faults.ts';
import { ofTests } from './observe/of-tests.ts';
import { isRight, markdown, picture, pictureFile, type Report } from './observe/report.ts';
import { type Trial, tried } from './observe/trial.ts';

const DOCS = fileURLToPath(new URL('../docs/benchmarks', import.meta.url));
const STATE = fileURLToPath(new URL('../.state', import.meta.url));
const TRIAL_SECONDS = 40;
const COST_SECONDS = 110;

const parts = chosen('OBSERVE', ['faults', 'cost']);
const seed = Number(process.env.SEED ?? 1 + Math.floor(Math.random() * 999_999));
const wanted = process.env.FAULTS?.split(',');
const names = shuffled(
  Object.keys(FAULTS).filter((name) => wanted === undefined || wanted.some((part) => name.includes(part))),
);
/** The picture of each fault, by the fault's name. */
const pictures = new Map<string, Buffer>();

function shuffled(list: string[]): string[] {
  const random = createRandom(seed);
  const rest = [...list];
  return list.map(() => rest.splice(pick(random, rest.length), 1)[0] as string);
}

async function tryAll(progress: Progress): Promise<Trial[]> {
  const folder = join(STATE, 'observe');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const trials: Trial[] = [];
  const chromium = await startChromium();
  try {
    for (const [index, name] of names.entries()) {
      const title = `fault ${index + 1} of ${names.length}`;
      const { trial, picture } = await progress.step(title, TRIAL_SECONDS, () => tried(name, chromium.browser));
      writeFileSync(join(folder, `${index + 1}.png`), picture);
      writeFileSync(join(folder, `${index + 1}.txt`), `${trial.explain.lines.join('\n')}\n`);
      pictures.set(name, picture);
      trials.push(trial);
    }
  } finally {
    await chromium.close();
  }
  return trials;
}

function write(report: Report): void {
  writeFileSync(join(DOCS, 'observe.md'), markdown(report));
  writeFileSync(join(DOCS, 'observe.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(DOCS, 'observe.svg'), picture(report.trials));
  for (const [name, page] of pictures) writeFileSync(join(DOCS, pictureFile(name)), page);
}

await runBench(async () => {
  const load = loadavg()[0]?.toFixed(1);
  const machine = `${cpus().length} CPUs, Linux ${release()}, Node.js ${process.version}, load before ${load}`;
  const runsFaults = parts.includes('faults');
  const progress = new Progress((runsFaults ? names.length * TRIAL_SECONDS : 0) + COST_SECONDS);
  const trials = runsFaults ? await tryAll(progress) : [];
  let costs: Costs | undefined;
  if (parts.includes('cost')) costs = await progress.step('cost', COST_SECONDS, measureCosts);
  const { panels, alerts } = ofTests(STATE);
  const us = costs ? addedUs(costs).toFixed(1) : '-';
  const named = `named=${trials.filter(isRight).length}/${trials.length}`;
  const line = `observe: ${panels} ${alerts} ${named} us_per_request=${us} series_per_pod=${costs?.scrapes[0]?.series ?? '-'}`;
  const report = { seed, trials, costs, line, machine };
  console.log(markdown(report));
  if (parts.length === 2 && wanted === undefined) write(report);
  console.log(line);
  if (!trials.every(isRight)) process.exitCode = 1;
});
