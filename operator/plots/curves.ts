/** Values over values, y on a logarithmic axis, or from 0 on. */
import { at, type ColorOf, heading, line, linearTicks, logarithmicTicks, type Part, text, WIDTH } from './svg.ts';

export interface CurveChart {
  title: string;
  subtitle: string;
  xLabel: string;
  /** The axis is linear, from 0 to here. */
  linearTo?: number;
  /** Dashed lines with a word beside each. */
  marks?: { value: number; text: string }[];
  curves: { name: string; points: { x: number; y: number }[] }[];
}

const HEIGHT = 320;
const TOP = 44;
const LEFT = 70;
const RIGHT = 30;
/** Room above the highest and below the lowest value. */
const SLACK = 1.12;

/** The chart. */
export function curves(chart: CurveChart, color: ColorOf): Part {
  const points = chart.curves.flatMap((curve) => curve.points);
  const xs = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b);
  const low = Math.min(...points.map(({ y }) => y)) / SLACK;
  const high = Math.max(...points.map(({ y }) => y)) * SLACK;
  const [first = 0, last = 1] = [xs[0], xs.at(-1)];
  const left = (x: number) => LEFT + ((x - first) / (last - first || 1)) * (WIDTH - LEFT - RIGHT);
  const { linearTo, marks = [] } = chart;
  const down = (y: number) =>
    linearTo === undefined ? Math.log(high / y) / Math.log(high / low) : (linearTo - y) / linearTo;
  const top = (y: number) => TOP + down(y) * HEIGHT;
  const lines = chart.curves.map(({ name, points: own }) => {
    const placed = own.map(({ x, y }) => [at(left(x)), at(top(y))] as const);
    const dots = placed.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${color(name)}"/>`);
    const path = placed.map((point) => point.join(',')).join(' ');
    return `<polyline points="${path}" fill="none" stroke="${color(name)}" stroke-width="2"/>${dots.join('')}`;
  });
  const bottom = TOP + HEIGHT;
  const yValues = linearTo === undefined ? logarithmicTicks(low, high) : linearTicks(linearTo);
  const yTicks = yValues.map((y) => {
    const label = text(LEFT - 8, top(y) + 4, y.toLocaleString('en'), 'class="faint" text-anchor="end"');
    return line(LEFT, top(y), WIDTH - RIGHT, top(y)) + label;
  });
  const xTicks = xs.map((x) => text(left(x), bottom + 16, String(x), 'class="faint" text-anchor="middle"'));
  const marked = marks.map(
    ({ value, text: told }) =>
      line(LEFT, top(value), WIDTH - RIGHT, top(value), 'mark') +
      text(WIDTH - RIGHT, top(value) - 4, told, 'text-anchor="end"'),
  );
  const axis = text(WIDTH / 2, bottom + 34, chart.xLabel, 'text-anchor="middle"');
  const svg = [heading(chart), ...yTicks, ...marked, lines.join('\n'), ...xTicks, axis].join('');
  return { height: bottom + 36, svg };
}
