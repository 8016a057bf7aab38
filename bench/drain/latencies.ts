/** Latency over time: median and 99th percentile of each second, the disturbances as bands, failures as dots. */
import type { StoryOutcome } from '../../e2e/harness/cluster/outcome.ts';
import { plot, type TimeLine } from '../../operator/plots/index.ts';

/** A chart for each story. */
export function latencies(stories: StoryOutcome[]): string {
  return plot(stories.map(chartOf));
}

function chartOf({ story, perSecond, phases }: StoryOutcome) {
  const beginMs = perSecond[0]?.[0] ?? 0;
  const second = (atMs: number) => (atMs - beginMs) / 1000;
  const endS = second((perSecond.at(-1)?.[0] ?? 0) + 1000);
  const line = (name: string, column: 3 | 4): TimeLine => ({
    name,
    points: perSecond.flatMap((one): TimeLine['points'] =>
      one[column] === null ? [] : [[second(one[0]), one[column]]],
    ),
  });
  return {
    title: `${story}: milliseconds`,
    subtitle: 'median and p99 of each second; red: requests that failed',
    endS,
    ticks: Array.from({ length: Math.floor(endS / 60) + 1 }, (_unused, n): [number, string] => [60 * n, `${n} min`]),
    lines: [line('median', 3), line('p99', 4)],
    logarithmicFrom: 10,
    max: 20_000,
    bands: phases
      .filter(({ name }) => name !== 'all')
      .map(({ name, beginMs: from, endMs, latencyMs }) => ({
        beginS: second(from),
        endS: second(endMs),
        text: `${name}: p99 ${Math.round(latencyMs.p99 ?? 0)} ms`,
      })),
    dots: perSecond
      .filter(([, , count]) => count > 0)
      .map(([atMs, , count]) => ({ atS: second(atMs), text: `${count} failed` })),
  };
}
