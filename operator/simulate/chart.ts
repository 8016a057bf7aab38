/** Line charts over time as SVG, one panel above the other. */

export interface Line {
  name: string;
  color: string;
  /** Time in seconds and value; a line of steps keeps its value until the next point. */
  points: [atS: number, value: number][];
}

export interface Panel {
  title: string;
  lines: Line[];
  isStepped?: boolean;
  /** Values above are drawn at the edge. */
  max?: number;
  /** A dashed line with a word beside it. */
  marks?: { value: number; text: string }[];
  /** A word at a time, at the top, with a line down. */
  events?: [atS: number, text: string][];
}

/** Colours that people who see few of them can tell apart (Okabe and Ito). */
export const COLORS = ['#0072b2', '#56b4e9', '#d55e00', '#cc79a7', '#999999', '#555555', '#009e73', '#e69f00'];

const WIDTH = 1000;
const PANEL_HEIGHT = 240;
const LEFT = 60;
const RIGHT = 20;
const TOP = 34;
const BOTTOM = 26;

/**
 * @param endS end of the time axis, which begins at 0
 * @param ticks marks of the time axis with their words
 */
export function chart(title: string, panels: Panel[], endS: number, ticks: [atS: number, text: string][]): string {
  const legend = panels[0]?.lines ?? [];
  const legendHeight = 24 * Math.ceil(legend.length / 4);
  const height = 40 + legendHeight + panels.length * PANEL_HEIGHT;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="${LEFT}" y="24" font-size="16">${escaped(title)}</text>`,
    ...legend.map(({ name, color }, index) => {
      const x = LEFT + (index % 4) * 235;
      const y = 46 + 24 * Math.floor(index / 4);
      return `<path d="M${x} ${y}h24" stroke="${color}" stroke-width="3"/><text x="${x + 30}" y="${y + 4}">${escaped(name)}</text>`;
    }),
    ...panels.map((one, index) => panel(one, 40 + legendHeight + index * PANEL_HEIGHT, endS, ticks)),
    '</svg>',
  ];
  return `${parts.join('\n')}\n`;
}

function panel(
  { title, lines, isStepped = false, max, marks = [], events = [] }: Panel,
  top: number,
  endS: number,
  ticks: [number, string][],
): string {
  const most = max ?? 1.05 * Math.max(1, ...lines.flatMap(({ points }) => points.map(([, value]) => value)));
  const bottom = top + PANEL_HEIGHT - BOTTOM;
  const x = (atS: number) => LEFT + (atS / endS) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => bottom - (Math.min(value, most) / most) * (bottom - top - TOP);
  const step = niceStep(most / 4);
  const rows = Array.from({ length: Math.floor(most / step) + 1 }, (_unused, index) => index * step);
  return [
    `<text x="${LEFT}" y="${top + 20}" font-weight="bold">${escaped(title)}</text>`,
    ...rows.map(
      (value) =>
        `<path d="M${LEFT} ${f(y(value))}H${WIDTH - RIGHT}" stroke="#ddd"/><text x="${LEFT - 6}" y="${f(y(value) + 4)}" text-anchor="end">${value}</text>`,
    ),
    ...ticks.map(
      ([atS, text]) => `<text x="${f(x(atS))}" y="${bottom + 18}" text-anchor="middle">${escaped(text)}</text>`,
    ),
    ...marks.map(
      ({ value, text }) =>
        `<path d="M${LEFT} ${f(y(value))}H${WIDTH - RIGHT}" stroke="#000" stroke-dasharray="6 4"/><text x="${WIDTH - RIGHT}" y="${f(y(value) - 4)}" text-anchor="end">${escaped(text)}</text>`,
    ),
    ...events.map(
      ([atS, text]) =>
        `<path d="M${f(x(atS))} ${top + TOP - 4}V${bottom}" stroke="#bbb" stroke-dasharray="2 3"/><text x="${f(x(atS))}" y="${top + TOP - 8}" text-anchor="middle">${escaped(text)}</text>`,
    ),
    ...lines.map(
      ({ color, points }) =>
        `<path d="${path(points, x, y, isStepped)}" fill="none" stroke="${color}" stroke-width="1.6"/>`,
    ),
  ].join('\n');
}

/** Points that change nothing are left out: a day has 1,440 of them. */
function path(
  points: [number, number][],
  x: (atS: number) => number,
  y: (value: number) => number,
  isStepped: boolean,
): string {
  const kept = isStepped
    ? points.filter(
        ([, value], index) => index === 0 || index === points.length - 1 || value !== points[index - 1]?.[1],
      )
    : points;
  return kept
    .map(([atS, value], index) => {
      if (index === 0) return `M${f(x(atS))} ${f(y(value))}`;
      return isStepped ? `H${f(x(atS))}V${f(y(value))}` : `L${f(x(atS))} ${f(y(value))}`;
    })
    .join('');
}

function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
}

function f(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
