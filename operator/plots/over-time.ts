/** Values over time, with what happened meanwhile. */
import {
  at,
  type ColorOf,
  escapeXml,
  heading,
  line,
  linearTicks,
  logarithmicTicks,
  type Part,
  text,
  WIDTH,
} from './svg.ts';

export interface TimeChart {
  title: string;
  subtitle?: string;
  lines: TimeLine[];
  /** End of the time axis, which begins at 0. */
  endS: number;
  /** Marks of the time axis with their words. */
  ticks: [atS: number, text: string][];
  /** A value stays until the next one. */
  isStepped?: boolean;
  /** Values above are drawn at the edge. */
  max?: number;
  /** The axis is logarithmic, from here to `max`. */
  logarithmicFrom?: number;
  /** Dashed lines with a word beside each. */
  marks?: { value: number; text: string }[];
  /** A word at a time, at the top, with a line down. */
  events?: [atS: number, text: string][];
  /** Spans of time with their words. */
  bands?: { beginS: number; endS: number; text: string }[];
  /** Short lines at the bottom, for what happens often; their words show under the pointer. */
  strokes?: { atS: number; text: string }[];
  /** Dots at the bottom, likewise. */
  dots?: { atS: number; text: string }[];
}

export interface TimeLine {
  name: string;
  points: [atS: number, value: number][];
}

const HEIGHT = 180;
const LEFT = 60;
const RIGHT = 20;
/** With words of events, or slanted ones of bands, above the plot. */
const TOP = 54;
const TOP_OF_BANDS = 124;

/** The chart. */
export function overTime(chart: TimeChart, color: ColorOf): Part {
  const { lines, endS, ticks, isStepped = false, marks = [], events = [], bands = [], strokes = [], dots = [] } = chart;
  const top = bands.length > 0 ? TOP_OF_BANDS : TOP;
  const bottom = top + HEIGHT;
  const right = WIDTH - RIGHT;
  const x = (atS: number) => LEFT + (atS / endS) * (right - LEFT);
  const { y, rows } = scaleOf(chart, top, bottom);
  const parts = [
    heading(chart),
    ...bands.map(({ beginS, endS: until, text: told }) => {
      const size = `width="${at(x(until) - x(beginS))}" height="${HEIGHT}"`;
      const band = `<rect x="${at(x(beginS))}" y="${top}" ${size} fill="#888" fill-opacity="0.15"/>`;
      const turn = `transform="translate(${at(x(beginS) + 8)} ${top - 4}) rotate(-25)" class="faint"`;
      return band + text(0, 0, told, turn);
    }),
    ...rows.map(
      (value) =>
        line(LEFT, y(value), right, y(value)) +
        text(LEFT - 6, y(value) + 4, value.toLocaleString('en'), 'class="faint" text-anchor="end"'),
    ),
    ...ticks.map(([atS, told]) => text(x(atS), bottom + 18, told, 'class="faint" text-anchor="middle"')),
    ...marks.map(
      ({ value, text: told }) =>
        line(LEFT, y(value), right, y(value), 'mark') + text(right, y(value) - 4, told, 'text-anchor="end"'),
    ),
    ...events.map(
      ([atS, told]) =>
        line(x(atS), top - 4, x(atS), bottom, 'mark') + text(x(atS), top - 8, told, 'text-anchor="middle"'),
    ),
    ...lines.map(({ name, points }) => {
      const path = pathOf(isStepped ? changes(points) : points, x, y, isStepped);
      return `<path d="${path}" fill="none" stroke="${color(name)}" stroke-width="1.6"/>`;
    }),
    ...strokes.map(({ atS, text: told }) => {
      const stroke = `<path d="M${at(x(atS))} ${bottom}v-8" stroke="#888" stroke-width="1.2">`;
      return `${stroke}<title>${escapeXml(told)}</title></path>`;
    }),
    ...dots.map(({ atS, text: told }) => {
      const dot = `<circle cx="${at(x(atS))}" cy="${bottom}" r="3" fill="#c00000">`;
      return `${dot}<title>${escapeXml(told)}</title></circle>`;
    }),
  ];
  return { height: bottom + 20, svg: parts.join('\n') };
}

function scaleOf({ lines, max, logarithmicFrom: low }: TimeChart, top: number, bottom: number) {
  const highest = Math.max(1, ...lines.flatMap(({ points }) => points.map(([, value]) => value)));
  const most = max ?? 1.05 * highest;
  const share = (value: number) =>
    low === undefined ? value / most : Math.log(Math.max(value, low) / low) / Math.log(most / low);
  return {
    y: (value: number) => bottom - share(Math.min(value, most)) * (bottom - top),
    rows: low === undefined ? linearTicks(most) : logarithmicTicks(low, most, [1]),
  };
}

/** Points that change nothing are left out: a day has 1,440 of them. */
function changes(points: [number, number][]): [number, number][] {
  const last = points.length - 1;
  return points.filter(([, value], index) => index === 0 || index === last || value !== points[index - 1]?.[1]);
}

function pathOf(
  points: [number, number][],
  x: (atS: number) => number,
  y: (value: number) => number,
  isStepped: boolean,
): string {
  const [left, top] = [(atS: number) => at(x(atS)), (value: number) => at(y(value))];
  return points
    .map(([atS, value], index) => {
      if (index === 0) return `M${left(atS)} ${top(value)}`;
      return isStepped ? `H${left(atS)}V${top(value)}` : `L${left(atS)} ${top(value)}`;
    })
    .join('');
}
