/** `corelane plan`: how many workers, pods and cores a load takes. */
import { parseArgs } from 'node:util';
import type { Concurrency } from '../simulate/concurrency.ts';
import { keeps, type Plan, type PlanOptions, plan } from '../simulate/plan.ts';
import { DEFAULT_CPU } from '../src/api/scaling.ts';
import type { Command } from './command.ts';
import { numberOf, objectiveOf, wholeOf } from './options.ts';
import { fleetOf, type PlannedFleet, type PlannedObjective } from './planned-fleet.ts';
import { concurrencyOf, RENDER_OPTIONS, type RenderTimes, rendersOf } from './rendering.ts';
import { UsageError } from './usage.ts';

const help = `
Usage: corelane plan --rps N --render TIME [--cv N] [--wait TIME] (--slo pNN=TIME | -f FILE) [OPTIONS]

How many workers, pods and cores hold an objective: by the queueing model, then checked by simulating every request.
With -f also whether the fleet of a RenderService keeps each of its objectives.

      --rps N          requests a second, at the busiest time
      --render TIME    mean CPU time of one render
      --cv N           standard deviation of it over its mean (1)
      --wait TIME      mean time that a render waits for others in the middle (0s)
      --wait-cv N      likewise (1)
      --concurrency N  renders that a worker has at a time: a number or Auto (1, or as in the file; with --wait and
                       without a file both 1 and Auto are shown)
      --max N          most that Auto finds (16, or as in the file)
      --slo pNN=TIME   objective, such as p99=400ms (spec.objectives.latency of the file)
  -f, --file FILE      RenderService; with scaling its fleet is the largest that there may be
      --workers N      workers per pod (4, or as in the file)
      --seed N         of the simulation (1)

Exit code 2 when no number of pods can hold the objective, or the fleet of the file does not.
`;

/** Exit code when the objective cannot be met. */
const EXIT_IMPOSSIBLE = 2;

type Possible = Extract<Plan, { isPossible: true }>;

export const command: Command = {
  summary: 'how many workers, pods and cores a load takes',
  help,
  run(args) {
    const { values } = parseArgs({
      args,
      options: {
        rps: { type: 'string' },
        render: { type: 'string' },
        ...RENDER_OPTIONS,
        slo: { type: 'string' },
        file: { type: 'string', short: 'f' },
        workers: { type: 'string' },
        seed: { type: 'string', default: '1' },
      },
    });
    const { rps, render, slo, file } = values;
    if (rps === undefined || render === undefined || (slo === undefined && file === undefined)) {
      throw new UsageError('--rps, --render and --slo (or -f) are needed; see corelane plan --help');
    }
    const fleet = file === undefined ? undefined : fleetOf(file);
    const objectives = slo === undefined ? objectivesOf(fleet as PlannedFleet) : [{ text: slo, ...objectiveOf(slo) }];
    const renders = rendersOf({ ...values, render });
    const shown = shownFor(values, renders, fleet);
    const options: Omit<PlanOptions, 'objective'> = {
      load: { rps: numberOf('rps', rps, { min: 0.01, max: 100_000 }), ...renders },
      workersPerPod: wholeOf('workers', values.workers ?? String(fleet?.workersPerPod ?? 4), { min: 1, max: 64 }),
      seed: wholeOf('seed', values.seed, { min: 0, max: 2 ** 31 }),
    };
    const all = objectives.map((objective) => ({
      objective,
      plans: shown.map((concurrency) => plan({ ...options, objective, load: { ...options.load, concurrency } })),
    }));
    for (const { objective, plans } of all) {
      const result = plans.find(({ isPossible }) => !isPossible);
      if (!result || result.isPossible) continue;
      console.log(impossible(result.renderQuantileS, objective.text, nameOf(objective)));
      return EXIT_IMPOSSIBLE;
    }
    // Of several objectives the one that takes the most pods is the plan.
    const podsOf = ({ plans }: (typeof all)[number]) => (plans[0] as Possible).pods;
    const decisive = all.reduce((most, one) => (podsOf(one) > podsOf(most) ? one : most));
    console.log(possible(decisive.plans as Possible[], shown, nameOf(decisive.objective)));
    const load = { ...options.load, concurrency: shown[0] as Concurrency };
    const verdicts = fleet
      ? all.map(({ objective, plans }) =>
          verdictOf(fleet, { ...options, objective, load }, objective.text, plans[0] as Possible),
        )
      : [];
    for (const { text } of verdicts) console.log(text);
    return verdicts.every(({ isKept }) => isKept) ? 0 : EXIT_IMPOSSIBLE;
  },
};

/** Without a word about it, renders that wait are shown one at a time and with Auto. */
function shownFor(
  values: { concurrency?: string | undefined; max?: string | undefined },
  { wait }: RenderTimes,
  fleet: PlannedFleet | undefined,
): Concurrency[] {
  const isOpen = wait !== undefined && values.concurrency === undefined && fleet === undefined;
  return isOpen ? [1, concurrencyOf({ ...values, concurrency: 'Auto' })] : [concurrencyOf(values, fleet?.concurrency)];
}

function objectivesOf({ name, objectives }: PlannedFleet): PlannedObjective[] {
  if (objectives.length > 0) return objectives;
  throw new UsageError(`${name} has no spec.objectives.latency; write it, or give --slo p99=400ms`);
}

function nameOf({ quantile }: { quantile: number }): string {
  return `p${Number((100 * quantile).toFixed(2))}`;
}

/** What the fleet of a RenderService makes of one of its objectives. */
function verdictOf(
  { name, podsMax, isScaled }: PlannedFleet,
  options: PlanOptions,
  objective: string,
  { pods }: Possible,
): { isKept: boolean; text: string } {
  const { isKept, simulatedMs } = keeps(podsMax, options);
  const fleet = `${name}, ${podsMax} ${podsMax === 1 ? 'pod' : 'pods'}${isScaled ? ' at most' : ''}`;
  const verdict = isKept ? `keeps ${objective}` : `does not keep ${objective}, which takes ${pods}`;
  const found = simulatedMs > ENDLESS_MS ? 'its queues grow without end' : `${simulatedMs.toFixed(0)} ms simulated`;
  return { isKept, text: `${fleet}: ${verdict} (${found})` };
}
/** Beyond this the figure says more of the length of the simulation than of the fleet. */
const ENDLESS_MS = 60_000;

/** A line for each figure, a column for each plan. */
function possible(plans: Possible[], shown: Concurrency[], name: string): string {
  const waits = plans.some(({ mostUtilization }) => mostUtilization < 1) || shown.some((one) => one !== 1);
  const line = (title: string, cell: (one: Possible, index: number) => string | number) =>
    `${title.padEnd(14)}${plans
      .map((one, index) => String(cell(one, index)).padEnd(COLUMN))
      .join('')
      .trimEnd()}`;
  const percent = (ratio: number) => `${(100 * ratio).toFixed(0)} %`;
  return [
    ...(waits ? [line('concurrency', (one, index) => concurrencyText(one, shown[index] as Concurrency))] : []),
    line('workers', ({ workers }) => workers),
    line('pods', ({ pods }) => pods),
    line('cores', ({ cores }) => cores),
    line('per-core CPU', ({ utilization }) => percent(utilization)),
    ...(waits
      ? [
          line('  at most', ({ mostUtilization }) => percent(mostUtilization)),
          line('places taken', ({ occupancy }) => percent(occupancy)),
        ]
      : []),
    ...(plans.length === 1
      ? [
          line(
            name,
            ({ modelS, simulatedMs }) => `${ms(modelS)} by the queueing model, ${simulatedMs.toFixed(0)} ms simulated`,
          ),
        ]
      : [
          line(`${name}, model`, ({ modelS }) => ms(modelS)),
          line('  simulated', ({ simulatedMs }) => ms(simulatedMs / 1000)),
        ]),
    ...plans.flatMap((one, index) => remarks(one, plans.length > 1 ? shown[index] : undefined)),
    'For one queue for all pods, and without room for a pod that is lost or starts: add at least one.',
  ].join('\n');
}
const COLUMN = 16;

function ms(seconds: number): string {
  return `${(1000 * seconds).toFixed(0)} ms`;
}

function concurrencyText({ limit }: Possible, concurrency: Concurrency): string {
  return typeof concurrency === 'number' ? String(concurrency) : `Auto, finds ${limit}`;
}

function remarks({ added, mostUtilization }: Possible, concurrency: Concurrency | undefined): string[] {
  const which =
    concurrency === undefined ? '' : typeof concurrency === 'number' ? `With ${concurrency}: ` : 'With Auto: ';
  const say = (text: string) => (which === '' ? `${text[0]?.toUpperCase()}${text.slice(1)}` : `${which}${text}`);
  const { abovePercent } = DEFAULT_CPU.scaleUp;
  const ofAll = abovePercent / 100 / mostUtilization;
  return [
    ...(added > 0
      ? [say(`the simulation needed ${added} ${added === 1 ? 'pod' : 'pods'} more than the model says.`)]
      : []),
    ...(mostUtilization < LOW_CPU ? [say(lowCpu(mostUtilization, abovePercent, ofAll))] : []),
  ];
}
/** Workers that cannot use more of their core do something else than `scaling.cpu` means. */
const LOW_CPU = 0.9;

function lowCpu(most: number, abovePercent: number, ofAll: number): string {
  const cannot = `a worker that is never without work uses ${(100 * most).toFixed(0)} % of its core, so "above ${abovePercent} %"`;
  const meaning = ofAll >= 1 ? 'never comes' : `is ${(100 * ofAll).toFixed(0)} % of what it can do`;
  return `${cannot} ${meaning}.${ofAll > LATE ? ' Scale by occupancy.' : ''}`;
}
/** From this share of what workers can do on, pods that are added then come late. */
const LATE = 0.5;

function impossible(renderQuantileS: number, slo: string, name: string): string {
  return (
    `No number of pods holds ${slo}: the ${name} of the render alone is ${(1000 * renderQuantileS).toFixed(0)} ms. ` +
    'Make the render faster or more even, or the objective longer.'
  );
}
