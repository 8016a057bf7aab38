/** Plots as SVG, for the simulator, the benches and the stories. Computes only. */
import { type BarChart, bars } from './bars.ts';
import { type CurveChart, curves } from './curves.ts';
import { overTime, type TimeChart } from './over-time.ts';
import { type SpanChart, spans } from './spans.ts';
import { type ColorOf, colorsOf, legend, type Part, picture } from './svg.ts';

export type { Bar, BarChart } from './bars.ts';
export type { TimeLine } from './over-time.ts';

type Chart = BarChart | CurveChart | SpanChart | TimeChart;

/** One picture: the charts below each other, and one legend for all series. A name has one colour in all of them. */
export function plot(charts: Chart[]): string {
  const names = [...new Set(charts.flatMap(namesIn))];
  const color = colorsOf(names);
  return picture([legend(names, color), ...charts.map((chart) => draw(chart, color))]);
}

function namesIn(chart: Chart): string[] {
  if ('groups' in chart) return chart.groups.flatMap((group) => group.bars.map(({ series }) => series));
  if ('spans' in chart) return [chart.title];
  return ('curves' in chart ? chart.curves : chart.lines).map(({ name }) => name);
}

function draw(chart: Chart, color: ColorOf): Part {
  if ('groups' in chart) return bars(chart, color);
  if ('spans' in chart) return spans(chart, color);
  return 'curves' in chart ? curves(chart, color) : overTime(chart, color);
}
