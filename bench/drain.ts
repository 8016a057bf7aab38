/**
 * Makes docs/benchmarks/drain.{json,md,svg} out of what the drain and the fault story have left in .state/bench. Last
 * line: `drain: requests=N lost=N overlaps=N`. Exit code 1 if something was lost that no dead nginx explains.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH_FOLDER, type PhaseOutcome, type StoryOutcome } from '../e2e/harness/cluster/outcome.ts';
import { ROOT } from '../e2e/harness/cluster/shell.ts';
import { latencies } from './drain/latencies.ts';

const FOLDER = join(ROOT, 'docs/benchmarks');
const stories = ['drain', 'faults'].map(
  (story) => JSON.parse(readFileSync(join(BENCH_FOLDER, `${story}.json`), 'utf8')) as StoryOutcome,
);

const sum = (numbers: number[]) => numbers.reduce((total, value) => total + value, 0);
const isAll = ({ name }: PhaseOutcome) => name === 'all';
/** An nginx that dies takes its connections along. docs/adr/0008 */
const isOfNginx = ({ name }: PhaseOutcome) => name.startsWith('nginx');

function row({ name, count, requests, failed, lost, latencyMs }: PhaseOutcome, overlaps: string): string {
  const failures = Object.entries(failed).map(([how, times]) => `${times} x ${how}`);
  const { p50, p95, p99, max } = latencyMs;
  const cells = [name, count, requests, failures.join(', ') || 0, lost, overlaps, p50, p95, p99, max];
  return `| ${cells.join(' | ')} |`;
}

function section({ story, phases, overlaps, seconds }: StoryOutcome): string {
  const head =
    '| disturbance | times | requests | failed | begun by no worker | overlaps | p50 | p95 | p99 | max, ms |';
  const rows = phases.map((phase) => row(phase, isAll(phase) ? String(overlaps) : ''));
  const others = Object.entries(seconds).map(([name, value]) => `- ${name}: ${value.toFixed(1)} s`);
  return [`## ${story}`, '', head, `|${'---|'.repeat(10)}`, ...rows, '', ...others].join('\n');
}

const requests = sum(stories.map((story) => story.requests));
const overlaps = sum(stories.map((story) => story.overlaps));
const disturbances = stories.flatMap(({ phases }) => phases.filter((phase) => !isAll(phase)));
const lost = sum(stories.map(({ phases }) => phases.find(isAll)?.lost ?? 0));
const ofNginx = sum(disturbances.filter(isOfNginx).map((phase) => phase.lost));
const summary = `drain: requests=${requests} lost=${lost - ofNginx} overlaps=${overlaps}`;

const page = `# Drain and faults on kind

Measured by \`make bench-drain\` on a kind cluster of three nodes that share two cores. Three clients: open loop at random
times through the Service, one kept connection, and one that takes pod addresses from EndpointSlices. Workers block for
140 ms a request without burning CPU; two workers a pod; load 0.7 of the workers, while scaling of the fewest, and with
faults 0.64 (there 35 ms). The two cores also run Kubernetes, the clients and the start of each pod: that is what the latencies show.
In the fault story renders are pure (\`replay: Always\`), and most requests are POST.

\`${summary}\`; and ${ofNginx} requests of clients that were connected to an nginx when it was killed
([ADR 8](../adr/0008-proxies-that-die.md)).

![latencies](drain.svg)

${stories.map(section).join('\n\n')}
`;
writeFileSync(join(FOLDER, 'drain.md'), page);
const short = stories.map(({ perSecond: _unused, ...rest }) => rest);
writeFileSync(join(FOLDER, 'drain.json'), `${JSON.stringify({ summary, ofNginx, stories: short }, null, 2)}\n`);
writeFileSync(join(FOLDER, 'drain.svg'), latencies(stories));
console.log(page);
console.log(summary);
process.exitCode = lost > ofNginx || overlaps > 0 ? 1 : 0;
