/**
 * The first hour of somebody who has nothing but a bare machine: how long `make run`, `make demo` and `make test` take
 * where nothing is cached, and `make demo` again. Writes docs/benchmarks/first-hour.{json,md,svg}, and docs/demo.txt if
 * `make demo` did what it should. Last line:
 * `first-hour: run_seconds=X demo_cold_seconds=Y demo_warm_seconds=Z test_cold_seconds=W`; `-` for what was not
 * measured. PARTS=demo_cold,demo_warm for a part. Exit code 1 if something did not do what it should.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { makePlace, type Place } from './first-hour/place.ts';
import { demoPage, failure, type Part, type PartName, write } from './first-hour/report.ts';
import { type LogLine, stepsOf } from './first-hour/steps.ts';

const NAMES: PartName[] = ['run', 'demo_cold', 'demo_warm', 'test_cold'];
/** How long the page of `make run` may take. */
const PAGE_SECONDS_MAX = 600;

const wanted = process.env.PARTS?.split(',') ?? NAMES;
const unknown = wanted.filter((name) => !NAMES.includes(name as PartName));
if (unknown.length > 0) throw new Error(`PARTS=${unknown}: there are ${NAMES.join(', ')}`);
const wants = (name: PartName) => wanted.includes(name);

const parts: Part[] = [];
let isBad = false;

const show = ({ atS, text }: LogLine) => process.stderr.write(`  ${String(Math.round(atS)).padStart(4)} s  ${text}\n`);

/** Runs a target in a place, notes how it ended, and returns its lines if the last one fits. */
async function measure(
  place: Place,
  name: PartName | 'demo_running',
  target: string,
  lastLine: RegExp,
): Promise<LogLine[] | undefined> {
  process.stderr.write(`${name}: make ${target}\n`);
  const { code, seconds, lines } = await place.run(['make', '-s', target], show);
  const last = lines.findLast(({ text }) => lastLine.test(text))?.text;
  const isGood = code === 0 && last !== undefined;
  const result = isGood ? last : failure(code, lines);
  parts.push({ name, seconds, result, steps: stepsOf(lines) });
  if (isGood) return lines;
  isBad = true;
  process.stderr.write(`${name}: make ${target} ${result}\n`);
  return undefined;
}

/** Runs `work` in a place of its own, which is taken away whatever happens. */
async function inPlace(work: (place: Place) => Promise<void>): Promise<void> {
  const place = makePlace();
  try {
    await work(place);
  } finally {
    process.stderr.write('removing all that was made\n');
    await place.remove();
  }
}

async function demo(place: Place): Promise<void> {
  const lastLine = /^demo: ok=1000 failed=0 overlaps=0$/;
  const lines = await measure(place, 'demo_cold', 'demo', lastLine);
  const machine = { cores: cpus().length, load: loadavg()[2] ?? 0 };
  if (lines) writeFileSync(new URL('../docs/demo.txt', import.meta.url), demoPage(lines, machine));
  if (!wants('demo_warm')) return;
  await place.run(['make', '-s', 'down']);
  await measure(place, 'demo_warm', 'demo', lastLine);
  await measure(place, 'demo_running', 'demo', lastLine);
}

async function test(place: Place): Promise<void> {
  await measure(place, 'test_cold', 'test', /^\d+ passed, 0 failed$/);
}

/** Up to the first page at `make run`'s address, which is asked for every 100 ms. */
async function run(place: Place): Promise<void> {
  const script = `make -s run </dev/null & pid=$!
    until curl -sf -m 5 -o /dev/null http://localhost:8080/ && echo "page: rendered"; do
      kill -0 $pid && ((SECONDS < ${PAGE_SECONDS_MAX})) || { echo "page: none"; break; }
      sleep 0.1
    done
    kill -TERM $pid; wait $pid`;
  const { lines } = await place.run(['bash', '-c', script], show);
  const page = lines.find(({ text }) => text.startsWith('page: '));
  if (page?.text !== 'page: rendered') isBad = true;
  parts.push({ name: 'run', seconds: page?.atS ?? Number.NaN, result: page?.text ?? 'failed', steps: stepsOf(lines) });
}

// Ctrl-C ends what runs in the place; what was made there is taken away before this process ends.
process.on('SIGINT', () => {
  isBad = true;
});
const hasRun = /^run:/m.test(readFileSync(new URL('../Makefile', import.meta.url), 'utf8'));
if (wants('run') && !hasRun) process.stderr.write('run: skipped, this version has no `make run`\n');
if (wants('run') && hasRun) await inPlace(run);
if (wants('demo_cold') || wants('demo_warm')) await inPlace(demo);
if (wants('test_cold')) await inPlace(test);
console.log(write(parts, NAMES, { cores: cpus().length, model: cpus()[0]?.model ?? '', load: loadavg()[2] ?? 0 }));
process.exitCode = isBad ? 1 : 0;
