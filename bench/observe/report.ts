/** Writes the results of the bench as a page. Computes only. */
import { plot } from '../../operator/plots/index.ts';
import { table } from '../lib/table.ts';
import type { Costs } from './cost.ts';
import { type Naming, QUERIES, type Trial } from './trial.ts';

export interface Report {
  seed: number;
  trials: Trial[];
  costs?: Costs | undefined;
  line: string;
  machine: string;
}

/** Both have named it, by their first words. */
export const isRight = ({ injected, explain, dashboard, calm }: Trial) =>
  calm && explain.named === injected && dashboard.named === injected;

/** Name of the picture of a fault in docs/benchmarks. */
export const pictureFile = (fault: string) => `observe-${fault.replaceAll(' ', '-')}.png`;

export function markdown({ seed, trials, costs, line, machine }: Report): string {
  const parts = [
    '# A fault, and what names it',
    `Made by \`make bench-observe\` on ${machine}. [README.md](README.md#observe) tells what is done.`,
    `\`${line}\``,
    `${trials.filter(isRight).length} of ${trials.length} faults were named rightly by both, \`corelane explain\` and the page of \`corelane dashboard\`, by the first words of \`explain\` that were not "nothing limits it", and the first of the page that stood for five seconds. Order by chance, seed ${seed}; before each fault both say that nothing limits the fleet. Seconds are since the fault began: \`explain\` looks twice, five seconds apart, and the page has new words each two.`,
    table(
      ['fault', 'explain', 'after, s', 'dashboard', 'after, s', 'right'],
      trials.map((trial) => [
        trial.injected,
        ...cells(trial.explain),
        ...cells(trial.dashboard),
        isRight(trial) ? 'yes' : 'no',
      ]),
    ),
    '![p99 of requests, queue and renders, and the failed share, around each fault](observe.svg)',
    '## What was said',
    ...trials.flatMap(trialParts),
    ...(costs ? costParts(costs) : []),
  ];
  return `${parts.join('\n\n')}\n`;
}

const cells = ({ named, seconds }: Naming) => [named ?? 'not within a minute', seconds.toFixed(1)];

/** `explain` in words, and the page of the dashboard as it was then. */
function trialParts({ injected, explain }: Trial): string[] {
  return [
    `### ${injected}`,
    explain.lines.map((text) => `    ${text}`).join('\n'),
    `![The page of corelane dashboard: ${injected}](${pictureFile(injected)})`,
  ];
}

function costParts({ requests, scrapes, workers }: Costs): string[] {
  return [
    '## What it costs',
    `The proxies' CPU time for one request: a GET of an empty page over one kept connection, in a pod of ${workers} workers. Each round measures all configurations in turn and compares each with the first one of that round. Differences and ratios are medians of the rounds.`,
    table(
      ['written and counted', 'us of CPU', 'more than nothing, us', 'of nothing'],
      requests.map(({ variant, us, moreUs, ratio }) => [variant, us.toFixed(0), moreUs.toFixed(1), ratio.toFixed(3)]),
    ),
    'A scrape: CPU of all containers of the pod, 200 in a row, without what they take meanwhile for nobody.',
    table(
      ['page', 'series', 'bytes', 'ms of CPU'],
      scrapes.map(({ page, series, bytes, ms }) => [page, series, bytes, ms.toFixed(2)]),
    ),
  ];
}

/** Around each fault the four queries, with the moments when it began and was named. */
export function picture(trials: Trial[]): string {
  return plot(
    trials.map(({ injected, explain: { named, seconds }, series, faultAtS }) => {
      const endS = Math.ceil(faultAtS + seconds) + 1;
      return {
        title: injected,
        subtitle: Object.keys(QUERIES).join('; '),
        lines: Object.entries(series).map(([name, points]) => ({ name, points })),
        endS,
        ticks: Array.from({ length: Math.floor(endS / 5) + 1 }, (_unused, n): [number, string] => [
          5 * n,
          `${5 * n} s`,
        ]),
        events: [
          [faultAtS, 'begins'],
          [faultAtS + seconds, named === null ? 'not named' : 'named'],
        ] as [number, string][],
      };
    }),
  );
}
