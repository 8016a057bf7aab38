/** `corelane plan`: how many workers, pods and cores a load takes. */
import { parseArgs } from 'node:util';
import { type Plan, plan } from '../simulate/plan.ts';
import type { Command } from './command.ts';
import { numberOf, objectiveOf, secondsOf, wholeOf } from './options.ts';
import { UsageError } from './usage.ts';

const help = `
Usage: corelane plan --rps N --render TIME [--cv N] --slo pNN=TIME [--workers N] [--seed N]

How many workers, pods and cores hold an objective: by the queueing model, then checked by simulating every request.

      --rps N          requests a second, at the busiest time
      --render TIME    mean time of one render
      --cv N           standard deviation of renders over their mean (1)
      --slo pNN=TIME   objective, such as p99=400ms
      --workers N      workers per pod (4)
      --seed N         of the simulation (1)

Exit code 2 when no number of pods can hold the objective.
`;

/** Exit code when the objective cannot be met. */
const EXIT_IMPOSSIBLE = 2;

export const command: Command = {
  summary: 'how many workers, pods and cores a load takes',
  help,
  run(args) {
    const { values } = parseArgs({
      args,
      options: {
        rps: { type: 'string' },
        render: { type: 'string' },
        cv: { type: 'string', default: '1' },
        slo: { type: 'string' },
        workers: { type: 'string', default: '4' },
        seed: { type: 'string', default: '1' },
      },
    });
    const { rps, render, slo } = values;
    if (rps === undefined || render === undefined || slo === undefined) {
      throw new UsageError('--rps, --render and --slo are needed; see corelane plan --help');
    }
    const objective = objectiveOf(slo);
    const result = plan({
      load: {
        rps: numberOf('rps', rps, { min: 0.01, max: 100_000 }),
        renderMeanS: secondsOf('render', render),
        renderCv: numberOf('cv', values.cv, { min: 0, max: 10 }),
      },
      objective,
      workersPerPod: wholeOf('workers', values.workers, { min: 1, max: 64 }),
      seed: wholeOf('seed', values.seed, { min: 0, max: 2 ** 31 }),
    });
    const name = `p${Number((100 * objective.quantile).toFixed(2))}`;
    console.log(result.isPossible ? possible(result, name) : impossible(result.renderQuantileS, slo, name));
    return result.isPossible ? 0 : EXIT_IMPOSSIBLE;
  },
};

function possible(
  { workers, pods, cores, utilization, modelS, simulatedMs, added }: Extract<Plan, { isPossible: true }>,
  name: string,
) {
  const lines = [
    `workers       ${workers}`,
    `pods          ${pods}`,
    `cores         ${cores}`,
    `per-core CPU  ${(100 * utilization).toFixed(0)} %`,
    `${name.padEnd(13)} ${(1000 * modelS).toFixed(0)} ms by the queueing model, ${simulatedMs.toFixed(0)} ms simulated`,
  ];
  if (added > 0) lines.push(`The simulation needed ${added} pods more than the model says.`);
  lines.push('For one queue for all pods, and without room for a pod that is lost or starts: add at least one.');
  return lines.join('\n');
}

function impossible(renderQuantileS: number, slo: string, name: string): string {
  return (
    `No number of pods holds ${slo}: the ${name} of the render alone is ${(1000 * renderQuantileS).toFixed(0)} ms. ` +
    'Make the render faster or more even, or the objective longer.'
  );
}
