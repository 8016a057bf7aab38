/**
 * `make soak`: RenderServices are made, changed, broken and deleted, pods, proxies, operators and the API server are
 * killed, in an order by chance, while honest clients ask two RenderServices that are never broken.
 * docs/benchmarks/README.md tells how. MINUTES says for how long (60), SEED chooses the order; the beginning and the
 * end take five minutes more.
 * Last line:
 *   soak: minutes=60 actions=N requests=N lost=0 left_behind=0 operator_rss_growth_mib=X quiet_writes=0
 * The exit code is 1 where anything was lost, left behind, stuck, or grows.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../e2e/harness/cluster/shell.ts';
import { json, markdown, picture, type Report } from './soak/report.ts';
import { Soak } from './soak/run.ts';
import { lastLine, MINUTES_MIN, wrongs } from './soak/verdicts.ts';

const DOCS = join(ROOT, 'docs/benchmarks');
const STATE = join(ROOT, '.state/soak');

function whole(name: string, otherwise: number, max: number): number {
  const value = Number(process.env[name] || otherwise);
  if (!Number.isInteger(value) || value < 1 || value > max) {
    throw new Error(`${name} must be a whole number from 1 to ${max}, not "${process.env[name]}"`);
  }
  return value;
}

function write(report: Report, folder: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'soak.md'), markdown(report));
  writeFileSync(join(folder, 'soak.json'), json(report));
  writeFileSync(join(folder, 'soak.svg'), picture(report));
}

const minutes = whole('MINUTES', 60, 1_440);
const seed = whole('SEED', 1 + Math.floor(Math.random() * 999_999), 2 ** 32 - 1);
const load = loadavg()[0]?.toFixed(1);
const machine = `${cpus().length} CPUs, Linux ${release()}, Node.js ${process.version}, load before ${load}`;
process.stderr.write(`soak: MINUTES=${minutes} SEED=${seed}\n`);

const soak = new Soak(seed, minutes);
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    process.stderr.write(`\n${signal}: removing what the run has made ...\n`);
    soak.remove().finally(() => process.exit(130));
  });
}
try {
  const report = { ...(await soak.run()), machine };
  write(report, STATE);
  if (minutes >= MINUTES_MIN) write(report, DOCS);
  console.log(markdown(report));
  console.log(lastLine(report.result));
  if (wrongs(report.result).length > 0) process.exitCode = 1;
} finally {
  await soak.remove();
}
