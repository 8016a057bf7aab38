/** What ran when: a bar for each step, from its beginning to its end, with its length behind it. */
import { at, type ColorOf, heading, line, linearTicks, type Part, text, WIDTH } from './svg.ts';

export interface SpanChart {
  title: string;
  subtitle: string;
  /** In the order in which they are drawn; `from` and `to` in seconds. */
  spans: { label: string; from: number; to: number }[];
}

const LABEL_WIDTH = 420;
const LABEL_CHARACTERS = 62;
const TEXT_WIDTH = 60;
const TOP = 44;
const ROW = 15;

const short = (label: string) => (label.length > LABEL_CHARACTERS ? `${label.slice(0, LABEL_CHARACTERS - 1)}…` : label);

/** The chart; its axis begins at 0. */
export function spans(chart: SpanChart, color: ColorOf): Part {
  const most = Math.max(1, ...chart.spans.map(({ to }) => to));
  const x = (seconds: number) => LABEL_WIDTH + (seconds / most) * (WIDTH - LABEL_WIDTH - TEXT_WIDTH);
  const bottom = TOP + chart.spans.length * ROW;
  const grid = linearTicks(most).map(
    (tick) =>
      line(x(tick), TOP - 4, x(tick), bottom) +
      text(x(tick), bottom + 14, String(tick), 'class="faint" text-anchor="middle"'),
  );
  const rows = chart.spans.map(({ label, from, to }, index) => {
    const y = TOP + index * ROW;
    const size = `width="${at(Math.max(1, x(to) - x(from)))}" height="${ROW - 4}"`;
    return (
      text(LABEL_WIDTH - 8, y + 9, short(label), 'class="faint" text-anchor="end"') +
      `<rect x="${at(x(from))}" y="${y}" ${size} fill="${color(chart.title)}"/>` +
      text(x(to) + 4, y + 9, `${Math.round(to - from)} s`, 'class="faint"')
    );
  });
  return { height: bottom + 16, svg: heading(chart) + grid.join('') + rows.join('\n') };
}
