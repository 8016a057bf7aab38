/**
 * `make bench-operator`: the operator with thousands of pods, beside the same pods as plain objects. SHAPES has a list
 * of services x pods / namespaces (1000x10/20,100x100/20); SERVICES, PODS and NAMESPACES name one. docs/benchmarks gets
 * what those below have come to, others stay as they were. HEAP_MIB=512 gives the operator another heap than
 * the image does; PROFILE=1 writes profiles of it, which make it slower, to .state/bench-operator.
 * docs/benchmarks/README.md tells what is compared. Last line:
 * `operator: services=1000 pods=10000 ready_ratio=X rss_mib=Y steady_writes=0 restart_writes=0`.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { OperatorProcess } from '../operator/test/support/operator-process.ts';
import { Progress } from './lib/progress.ts';
import { runBench } from './lib/run-bench.ts';
import { Cluster, findKwok } from './operator/cluster.ts';
import { expectedSeconds, measure, type Result } from './operator/measure.ts';
import { recordPages } from './operator/pages.ts';
import { Profiler } from './operator/profiler.ts';
import { lastLine, markdown, type OperatorReport, picture } from './operator/report.ts';
import { shapesOf, shapeText } from './operator/shape.ts';

const ALL_SHAPES = '100x10/5,1000x10/20,1000x10/1,100x100/20,10x1000/1';
const DOCS = fileURLToPath(new URL('../docs/benchmarks', import.meta.url));
const PROFILES = fileURLToPath(new URL('../.state/bench-operator', import.meta.url));
const RECORD_S = 15;
/** As the image has it. */
const HEAP_MIB = 192;

if (process.platform !== 'linux') throw new Error('the addresses of 127.1.0.0/16 are this machine only on Linux');
const shapes = shapesOf(process.env, ALL_SHAPES);
const profiler = process.env.PROFILE ? new Profiler(PROFILES) : undefined;
const heapMib = Number(process.env.HEAP_MIB || HEAP_MIB);
const isLikeImage = !profiler && heapMib === HEAP_MIB;

async function run(): Promise<void> {
  const loadBefore = loadavg()[0] ?? 0;
  const kwok = await findKwok();
  const progress = new Progress(shapes.reduce((sum, shape) => sum + expectedSeconds(shape), RECORD_S));
  const pages = await progress.step('two real pods, for what a pod answers', RECORD_S, recordPages);
  const results: Result[] = [];
  for (const shape of shapes) {
    process.stderr.write(
      `${shapeText(shape)}: ${shape.services} services of ${shape.pods} pods, namespaces: ${shape.namespaces}\n`,
    );
    try {
      results.push(await measure(shape, { kwok, pages, progress, run: { heapMib, profiler } }));
    } catch (error) {
      // The other shapes tell something all the same.
      process.exitCode = 1;
      process.stderr.write(`failed: ${(error as Error).message}\n`);
    }
  }
  const report: OperatorReport = {
    machine: {
      cpus: cpus().length,
      model: cpus()[0]?.model ?? '',
      kernel: release().split('-')[0] ?? '',
      node: process.version,
      loadBefore,
      heapMib,
    },
    pageBytes: Object.entries(pages).find(([path]) => path.startsWith('/metrics'))?.[1].length ?? 0,
    results,
  };
  if (isLikeImage) write({ ...report, results: merged(results) });
  if (results.length > 0) console.log(markdown(report));
  console.log(lastLine(report));
}

/** With those of earlier runs, in their order. */
function merged(results: Result[]): Result[] {
  const file = `${DOCS}/operator.json`;
  const before: Result[] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).results : [];
  return ALL_SHAPES.split(',').flatMap(
    (text) => [...results, ...before].find(({ shape }) => shapeText(shape) === text) ?? [],
  );
}

function write(report: OperatorReport): void {
  if (report.results.length === 0) return;
  writeFileSync(`${DOCS}/operator.json`, `${JSON.stringify(report, null, 1)}\n`);
  writeFileSync(`${DOCS}/operator.md`, markdown(report));
  writeFileSync(`${DOCS}/operator.svg`, picture(report));
}

await runBench(run, async () => {
  await OperatorProcess.killAll();
  await Cluster.removeCurrent();
});
