/**
 * `make bench-runtime`: every fault on every major of Node.js, and what the worker runtime costs. Writes the part
 * between the marks in docs/faults.md. NODES=24 tries one major.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { NODE_VERSIONS, nodeBinary } from '../e2e/harness/engine/node-versions.ts';
import { costOfRuntime } from './runtime/cost.ts';
import { type FaultRow, faultRows } from './runtime/faults.ts';

const DOCUMENT = fileURLToPath(new URL('../docs/faults.md', import.meta.url));
const [BEGIN, END] = ['<!-- runtime: begin -->', '<!-- runtime: end -->'];
const wanted = (process.env.NODES ?? '').split(',').filter(Boolean);
const versions = NODE_VERSIONS.filter((version) => wanted.length === 0 || wanted.includes(version.split('.')[0] ?? ''));

let [lost, overlaps] = [0, 0];
const byFault = new Map<string, [version: string, row: FaultRow][]>();
const costs: string[] = [];
let worst = { rssMib: 0, cpuPercent: 0 };
for (const version of versions) {
  const node = await nodeBinary(version);
  const major = version.split('.')[0] ?? '';
  const result = await faultRows(node);
  overlaps += result.overlaps;
  for (const row of result.rows) {
    lost += row.lost;
    byFault.set(row.fault, [...(byFault.get(row.fault) ?? []), [major, row]]);
    console.log(`${version} | ${row.fault} | ${row.answer} | ${row.logged} | lost ${row.lost} | ${row.backMs} ms`);
  }
  const { withRuntime, without } = await costOfRuntime(node);
  const rssMib = withRuntime.memoryMib - without.memoryMib;
  const cpuPercent = withRuntime.cpuPercent - without.cpuPercent;
  worst = { rssMib: Math.max(worst.rssMib, rssMib), cpuPercent: Math.max(worst.cpuPercent, cpuPercent) };
  const cell = (value: number) => value.toFixed(1);
  costs.push(
    `| ${version} | ${cell(without.memoryMib)} | ${cell(withRuntime.memoryMib)} | ${cell(rssMib)} | ${cell(without.cpuPercent)} | ${cell(withRuntime.cpuPercent)} | ${cell(cpuPercent)} |`,
  );
  console.log(costs.at(-1));
}

const rows = [...byFault].map(([fault, found]) => {
  const last = found.at(-1)?.[1] as FaultRow;
  const answers = [...new Set(found.map(([, row]) => row.answer))].join(' or ');
  const backs = found.map(([, row]) => row.backMs / 1000);
  const back = `${Math.min(...backs).toFixed(1)} to ${Math.max(...backs).toFixed(1)}`;
  return `| ${fault} | ${answers} | ${last.logged} | ${found.reduce((sum, [, row]) => sum + row.lost, 0)} | ${back} |`;
});
const text = `${BEGIN}
Node.js ${versions.join(', ')}; two workers behind the sidecar image, six clients with POST requests of 30 ms that are never
replayed, \`watchdog.stallTimeout\` 1 s. "Lost" are requests other than the one in the worker, over all versions; "logged"
is that of the newest version. Requests that shared a worker with another one: ${overlaps}.

| fault | its request got | logged | lost | seconds until the worker serves again |
|---|---|---|---|---|
${rows.join('\n')}

What the runtime costs: a worker that renders for about 15 ms ten times a second, all processes of its container, with and
without the runtime at the same time (memory: anonymous, in MiB, median of 15 looks in the second half of a minute; CPU: percent of one). V8's young generation, which doubles by
chance, is held small in both.

| Node.js | memory without | with | more | CPU without | with | more |
|---|---|---|---|---|---|---|
${costs.join('\n')}
${END}`;

if (wanted.length === 0) {
  const document = existsSync(DOCUMENT)
    ? readFileSync(DOCUMENT, 'utf8')
    : `# Faults\n\n## In one worker\n\n${BEGIN}\n${END}\n`;
  const [head, tail] = [document.split(BEGIN)[0], document.split(END)[1]];
  writeFileSync(DOCUMENT, tail === undefined ? `${document}\n## In one worker\n\n${text}\n` : `${head}${text}${tail}`);
}
console.log(
  `runtime: lost=${lost} overlaps=${overlaps} rss_mib=${worst.rssMib.toFixed(1)} cpu_percent=${worst.cpuPercent.toFixed(1)}`,
);
process.exitCode = lost === 0 && overlaps === 0 ? 0 : 1;
