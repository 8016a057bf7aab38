/**
 * `make bench-rollout`: what a change costs visitors, beside what they pay without Corelane. docs/benchmarks/README.md
 * tells what is compared. PARTS=traffic,judgement,chunks chooses, REQUESTS=20000 and ROLLOUTS=2 shorten; then it is
 * written to .state/bench-rollout alone.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { chosen } from './lib/choice.ts';
import { Progress } from './lib/progress.ts';
import { runBench } from './lib/run-bench.ts';
import { chunksSeconds, runChunks } from './rollout/chunks.ts';
import { startCorelane } from './rollout/corelane.ts';
import { newCase } from './rollout/judge.ts';
import { type JudgementResult, judgeMany } from './rollout/judgement.ts';
import { startPlain } from './rollout/plain.ts';
import { isKept, lastLine, markdown, picture, type RolloutReport } from './rollout/report.ts';
import { runTraffic, type TrafficResult, trafficSeconds } from './rollout/traffic.ts';

/** The last run, whatever it was. */
const LAST = fileURLToPath(new URL('../.state/bench-rollout', import.meta.url));
const DOCS = fileURLToPath(new URL('../docs/benchmarks', import.meta.url));
const PARTS = ['traffic', 'judgement', 'chunks'];
/** A stretch has a tenth: enough that its share is known to a fraction of a point. */
const REQUESTS = 200_000;
/** Two cores have client, proxies and workers. */
const PER_SECOND = 400;

const JUDGEMENT_SECONDS = 2;
const RUNS = 1_000;
const SEED = 1;
/** Of each app. */
const ROLLOUTS = 20;

const parts = chosen('PARTS', PARTS);
const options = { requests: wholeOf('REQUESTS', REQUESTS, 1_000), perSecond: PER_SECOND };
const rollouts = wholeOf('ROLLOUTS', ROLLOUTS, 1);
const isWhole = ['PARTS', 'REQUESTS', 'ROLLOUTS'].every((name) => !process.env[name]);

function wholeOf(variable: string, usual: number, min: number): number {
  const value = Number(process.env[variable] || usual);
  if (Number.isInteger(value) && value >= min) return value;
  throw new Error(`${variable}: ${process.env[variable]} is not a whole number from ${min} on`);
}

async function traffic(progress: Progress): Promise<TrafficResult[]> {
  const results: TrafficResult[] = [];
  for (const [title, make] of [
    ['Corelane', startCorelane],
    ['a Deployment per version', startPlain],
  ] as const)
    results.push(
      await progress.step(
        `${title}: a rollout under load`,
        trafficSeconds(options),
        () => runTraffic(make, options),
        ({ lost, atDead, shareErrorPoints, abortSeconds }) =>
          `${lost} lost (${atDead} with a dead pod), share off by ${shareErrorPoints.toFixed(2)} points at most, abort ${abortSeconds.toFixed(2)} s`,
      ),
    );
  return results;
}

function judge(progress: Progress): Promise<JudgementResult> {
  return progress.step(
    `${RUNS} canaries by chance`,
    JUDGEMENT_SECONDS,
    async () => judgeMany(newCase, RUNS, SEED),
    ({ falseAborts }) => `${falseAborts} stopped of those that are no worse`,
  );
}

async function measure(): Promise<RolloutReport> {
  const loadBefore = loadavg()[0] ?? 0;
  const machine = { cpus: cpus().length, kernel: release().split('-')[0] ?? '', node: process.version, loadBefore };
  const seconds = {
    traffic: 2 * trafficSeconds(options),
    judgement: JUDGEMENT_SECONDS,
    chunks: chunksSeconds(rollouts),
  };
  const planned = Object.entries(seconds).filter(([part]) => parts.includes(part));
  const progress = new Progress(planned.reduce((sum, [, ofPart]) => sum + ofPart, 0));
  const beganMs = Date.now();
  const report: RolloutReport = { machine, seconds: 0 };
  if (parts.includes('traffic')) report.traffic = await traffic(progress);
  if (parts.includes('judgement')) report.judgement = await judge(progress);
  if (parts.includes('chunks')) report.chunks = await runChunks(progress, rollouts);
  report.seconds = (Date.now() - beganMs) / 1_000;
  return report;
}

await runBench(async () => {
  const report = await measure();
  mkdirSync(LAST, { recursive: true });
  for (const folder of isWhole ? [LAST, DOCS] : [LAST]) {
    writeFileSync(`${folder}/rollout.json`, `${JSON.stringify(report, null, 1)}\n`);
    writeFileSync(`${folder}/rollout.md`, markdown(report));
    writeFileSync(`${folder}/rollout.svg`, picture(report));
  }
  console.log(markdown(report));
  console.log(lastLine(report));
  if (!isKept(report)) process.exitCode = 1;
});
