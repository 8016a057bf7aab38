/** docs/benchmarks/first-hour.{json,md,svg}. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { plot } from '../../operator/plots/index.ts';
import { table } from '../lib/table.ts';
import type { LogLine, Step } from './steps.ts';

export type PartName = 'run' | 'demo_cold' | 'demo_warm' | 'test_cold';

export interface Part {
  name: PartName | 'demo_running';
  seconds: number;
  /** The last line of the command, or how it failed. */
  result: string;
  steps: Step[];
}

const PATH = fileURLToPath(new URL('../../docs/benchmarks/first-hour', import.meta.url));
const TITLES: Record<Part['name'], string> = {
  run: '`make run` up to the first page, nothing cached',
  demo_cold: '`make demo`, nothing cached',
  demo_warm: '`make demo` after `make down`',
  demo_running: '`make demo` again, the cluster runs',
  test_cold: '`make test`, nothing cached',
};
/** Shorter steps would only fill the page. */
const STEP_S_MIN = 1;

const whole = (seconds: number | undefined) =>
  seconds === undefined || Number.isNaN(seconds) ? '-' : String(Math.round(seconds));

const isFailed = ({ result }: Part) => result.startsWith('failed') || result === 'page: none';

/** How a command failed: its exit code, and the last line that is not make's own. */
export function failure(code: number, lines: LogLine[]): string {
  const last = lines.findLast(({ text }) => text.trim() !== '' && !text.startsWith('make'))?.text.trim();
  return `failed with exit code ${code}${last ? `: ${last}` : ''}`;
}

/** docs/demo.txt: what `make demo` has printed where nothing was cached. */
export function demoPage(lines: LogLine[], { cores, load }: { cores: number; load: number }): string {
  return `$ git clone <this repository> corelane && cd corelane && make demo
# Written by "make bench-first-hour": nothing was cached, and no image registry answered.
# ${cores} cores, load average ${load.toFixed(1)}.

${lines.map(({ text }) => `${text}\n`).join('')}`;
}

/** Parts that were not measured this time stay as they were. */
function merged(parts: Part[]): Part[] {
  const before: Part[] = existsSync(`${PATH}.json`) ? JSON.parse(readFileSync(`${PATH}.json`, 'utf8')).parts : [];
  const names = Object.keys(TITLES) as Part['name'][];
  return names.flatMap((name) => [...parts, ...before].find((part) => part.name === name) ?? []);
}

function section(part: Part): string {
  const { name, seconds, result, steps } = part;
  const rows = steps
    .filter(({ fromS, toS }) => toS - fromS >= STEP_S_MIN)
    .map(({ title, fromS, toS }) => [title, whole(fromS), whole(toS - fromS)]);
  return `## ${TITLES[name]}: ${isFailed(part) ? 'failed after ' : ''}${whole(seconds)} s

\`${result}\`

${table(['step', 'begins, s', 'takes, s'], rows)}
`;
}

/** Writes the files, and returns the last line. */
export function write(
  parts: Part[],
  names: PartName[],
  machine: { cores: number; model: string; load: number },
): string {
  const summary = `first-hour: ${names
    .map((name) => `${name}_seconds=${whole(parts.find((part) => part.name === name)?.seconds)}`)
    .join(' ')}`;
  const all = merged(parts);
  const page = `# The first hour

Measured by \`make bench-first-hour\`: a clean clone, an engine of its own, and empty caches of Corelane, Go and npm on ${machine.cores} cores
(${machine.model}). No image registry can be reached: Kubernetes is compiled. Debian's packages were installed before,
which is some 15 s. Steps overlap: what does not wait for each other is made at the same time. The load average of the last 15 minutes was
${machine.load.toFixed(1)}; above about 4 the machine had other work.

${table(
  ['', 'seconds'],
  all.map((part) => [TITLES[part.name], `${isFailed(part) ? 'failed after ' : ''}${whole(part.seconds)}`]),
)}

![steps](first-hour.svg)

${all.map(section).join('\n')}`;
  writeFileSync(`${PATH}.md`, page);
  writeFileSync(`${PATH}.json`, `${JSON.stringify({ machine, parts: all }, null, 2)}\n`);
  const charts = all.map(({ name, steps }) => ({
    title: TITLES[name].replaceAll('`', ''),
    subtitle: 'seconds',
    spans: steps
      .filter(({ fromS, toS }) => toS - fromS >= STEP_S_MIN)
      .map(({ title, fromS, toS }) => ({ label: title, from: fromS, to: toS })),
  }));
  writeFileSync(`${PATH}.svg`, plot(charts));
  return summary;
}
