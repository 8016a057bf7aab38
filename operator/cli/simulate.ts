/** `corelane simulate`: a scaling policy and its peers through a day of traffic. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compare, type Scenario } from '../simulate/compare.ts';
import { json, markdown, scenarioText, summaryLine, svg, textTable, verdicts } from '../simulate/report.ts';
import { generatedDay, parseTrace } from '../simulate/trace.ts';
import { durationMs } from '../src/api/scalars.ts';
import { type ScalingSpec, scaling } from '../src/api/scaling.ts';
import { specShape } from '../src/api/spec.ts';
import { policyOf } from '../src/autoscale/policy.ts';
import type { Command } from './command.ts';
import { readValues } from './manifest-files.ts';
import { numberOf, objectiveOf, secondsOf, wholeOf } from './options.ts';
import { concurrencyOf, RENDER_OPTIONS, rendersOf } from './rendering.ts';
import { UsageError } from './usage.ts';

const help = `
Usage: corelane simulate [OPTIONS]

Drives a simulated fleet through a day with the operator's own recommender, and beside it an HPA, Knative's autoscaler,
two fixed fleets and an oracle. The same seed gives the same numbers.

  -f, --file FILE      RenderService, or only its "scaling", as YAML; otherwise the default policy
      --trace FILE     CSV with lines of "seconds,rps"; otherwise a generated day with a flash crowd
      --peak-rps N     traffic at the evening peak of the generated day (160)
      --render TIME    mean CPU time of one render (80ms)
      --cv N           standard deviation of it over its mean (1)
      --wait TIME      mean time that a render waits for others in the middle (0s)
      --wait-cv N      likewise (1)
      --concurrency N  renders that a worker has at a time: a number or Auto (1, or as in the file)
      --max N          most that Auto finds (16, or as in the file)
      --slo pNN=TIME   objective (p99=500ms, or spec.objectives.latency.p99 of the file)
      --start TIME     from the decision to a pod that takes requests (20s)
      --workers N      workers per pod (4, or as in the file)
      --seed N         (1)
      --out DIRECTORY  writes simulate.svg, simulate.json and simulate.md there
`;

export const command: Command = {
  summary: 'drive a scaling policy and its peers through a day of traffic',
  help,
  run(args) {
    const { values } = parseArgs({
      args,
      options: {
        file: { type: 'string', short: 'f' },
        trace: { type: 'string' },
        'peak-rps': { type: 'string', default: '160' },
        render: { type: 'string', default: '80ms' },
        ...RENDER_OPTIONS,
        slo: { type: 'string' },
        start: { type: 'string', default: '20s' },
        workers: { type: 'string' },
        seed: { type: 'string', default: '1' },
        out: { type: 'string' },
      },
    });
    const seed = wholeOf('seed', values.seed, { min: 0, max: 2 ** 31 });
    const resource = readPolicy(values.file);
    const workers = values.workers ?? String(resource.workersPerPod ?? 4);
    const concurrency = concurrencyOf(values, resource);
    const p99 = resource.objectives?.latency?.p99;
    const scenario: Scenario = {
      trace: values.trace
        ? parseTrace(readFileSync(values.trace, 'utf8'))
        : generatedDay(numberOf('peak-rps', values['peak-rps'], { min: 0.1, max: 5_000 }), seed),
      model: {
        workersPerPod: wholeOf('workers', workers, { min: 1, max: 64 }),
        ...rendersOf(values),
        ...(concurrency !== 1 && { concurrency }),
        startS: secondsOf('start', values.start),
        warmFactor: 3,
        warmS: 20,
        warmCpu: 0.5,
        queueLengthPerPod: resource.queue?.maxLength ?? 100,
        queueTimeoutS: durationMs(resource.queue?.timeout ?? '10s') / 1000,
      },
      objective: objectiveOf(values.slo ?? `p99=${p99 ?? '500ms'}`),
      seed,
      policy: policyOf(resource.scaling),
    };
    console.log(`${scenarioText(scenario)}\n`);
    const comparison = compare(scenario);
    console.log(`${textTable(comparison)}\n\n${verdicts(comparison, scenario).join('\n')}\n`);
    if (values.out !== undefined) {
      mkdirSync(values.out, { recursive: true });
      const files = { 'simulate.svg': svg, 'simulate.json': json, 'simulate.md': markdown };
      for (const [name, make] of Object.entries(files))
        writeFileSync(join(values.out, name), make(comparison, scenario));
    }
    console.log(summaryLine(comparison));
    return 0;
  },
};

interface Resource {
  workersPerPod?: number;
  concurrency?: unknown;
  concurrencyRange?: unknown;
  queue?: { maxLength?: number; timeout?: string };
  objectives?: { latency?: { p99?: string } };
  scaling: ScalingSpec;
}

/** The parts of a RenderService that matter here. */
function readPolicy(file: string | undefined): Resource {
  if (file === undefined) return { scaling: checked({ maxReplicas: 100 }) };
  // biome-ignore lint/suspicious/noExplicitAny: whatever stands in a file
  const documents: any[] = readValues(file);
  const resource = documents.find((one) => one?.kind === 'RenderService')?.spec ?? documents[0]?.spec ?? documents[0];
  if (!resource?.scaling)
    throw new UsageError(`${file} has no "scaling"; write a RenderService, or "scaling: { maxReplicas: 20 }"`);
  // A part of a resource has no defaults.
  const whole = specShape.safeParse(resource);
  return {
    ...resource,
    ...(whole.data && { concurrency: whole.data.concurrency }),
    scaling: checked(resource.scaling),
  };
}

function checked(value: unknown): ScalingSpec {
  const parsed = scaling.safeParse(value);
  if (parsed.success && parsed.data) return parsed.data;
  const issues = parsed.error?.issues.map(({ path, message }) => `scaling.${path.join('.')}: ${message}`);
  throw new UsageError(issues?.join('; ') ?? 'no scaling');
}
