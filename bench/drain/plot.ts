/** Latency over time as SVG: median and 99th percentile of each second, the disturbances as bands, failures as marks. */
import type { PhaseOutcome, StoryOutcome } from '../../e2e/harness/cluster/outcome.ts';

const WIDTH = 1100;
const HEIGHT = 320;
const MARGIN = { left: 60, right: 20, top: 90, bottom: 40 };
const LOG_MIN_MS = 10;
const LOG_MAX_MS = 20_000;
const COLORS = { p50: '#2a6fb0', p99: '#c2571a', band: '#8884', failed: '#c00000' };

/** One panel below the other. */
export function plot(stories: StoryOutcome[]): string {
  const panels = stories.map((story, index) => `<g transform="translate(0 ${index * HEIGHT})">${panel(story)}</g>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT * stories.length}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="white"/>
${panels.join('\n')}
</svg>
`;
}

function panel({ story, perSecond, phases }: StoryOutcome): string {
  const beginMs = perSecond[0]?.[0] ?? 0;
  const endMs = (perSecond.at(-1)?.[0] ?? 0) + 1000;
  const bottom = HEIGHT - MARGIN.bottom;
  const x = (atMs: number) =>
    MARGIN.left + ((WIDTH - MARGIN.left - MARGIN.right) * (atMs - beginMs)) / Math.max(1, endMs - beginMs);
  const y = (latencyMs: number) => {
    const bounded = Math.min(LOG_MAX_MS, Math.max(LOG_MIN_MS, latencyMs));
    return bottom - ((bottom - MARGIN.top) * Math.log(bounded / LOG_MIN_MS)) / Math.log(LOG_MAX_MS / LOG_MIN_MS);
  };
  const line = (column: 3 | 4, color: string) => {
    const points = perSecond.flatMap((second) =>
      second[column] === null ? [] : [`${x(second[0]).toFixed(1)},${y(second[column] as number).toFixed(1)}`],
    );
    return `<polyline fill="none" stroke="${color}" points="${points.join(' ')}"/>`;
  };
  const band = ({ name, beginMs: from, endMs: until, latencyMs }: PhaseOutcome) => {
    const left = x(from).toFixed(1);
    const label = `${name}: p99 ${Math.round(latencyMs.p99 ?? 0)} ms`;
    return `<rect x="${left}" y="${MARGIN.top}" width="${(x(until) - x(from)).toFixed(1)}" height="${bottom - MARGIN.top}" fill="${COLORS.band}" fill-opacity="0.15" stroke="#999" stroke-width="0.5"/>
<text transform="translate(${Number(left) + 8} ${MARGIN.top - 4}) rotate(-25)">${label}</text>`;
  };
  const ticks = [10, 100, 1000, 10_000].map(
    (ms) =>
      `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(ms)}" y2="${y(ms)}" stroke="#ddd"/><text x="${MARGIN.left - 6}" y="${y(ms) + 4}" text-anchor="end">${ms} ms</text>`,
  );
  const failed = perSecond
    .filter(([, , count]) => count > 0)
    .map(
      ([atMs, , count]) =>
        `<circle cx="${x(atMs).toFixed(1)}" cy="${bottom}" r="3" fill="${COLORS.failed}"><title>${count} failed</title></circle>`,
    );
  const minutes = Array.from({ length: Math.floor((endMs - beginMs) / 60_000) + 1 }, (_unused, minute) => minute);
  const axis = minutes.map(
    (minute) =>
      `<text x="${x(beginMs + minute * 60_000)}" y="${bottom + 16}" text-anchor="middle">${minute} min</text>`,
  );
  return [
    `<text x="${MARGIN.left}" y="16" font-size="13" font-weight="bold">${story}: median (blue) and p99 (orange) of each second; red: requests that failed</text>`,
    ...phases.filter(({ name }) => name !== 'all').map(band),
    ...ticks,
    line(3, COLORS.p50),
    line(4, COLORS.p99),
    ...failed,
    ...axis,
  ].join('\n');
}
