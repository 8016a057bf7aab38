/**
 * Groups of bars. The axis is logarithmic and begins at 1: values that differ by factors of a thousand are read side by
 * side.
 */
import { at, type ColorOf, heading, line, logarithmicTicks, type Part, text, WIDTH } from './svg.ts';

export interface BarChart {
  title: string;
  subtitle: string;
  groups: { label: string; bars: Bar[] }[];
}

export interface Bar {
  series: string;
  value: number;
  /** Written behind the bar. */
  text: string;
}

const LABEL_WIDTH = 250;
const TEXT_WIDTH = 90;
const TOP = 44;
const BAR = 11;
const GAP = 10;

/** The chart. */
export function bars(chart: BarChart, color: ColorOf): Part {
  const max = Math.max(10, ...chart.groups.flatMap((group) => group.bars.map(({ value }) => value)));
  const decades = Math.ceil(Math.log10(max));
  const width = (value: number) => (Math.log10(Math.max(1, value)) / decades) * (WIDTH - LABEL_WIDTH - TEXT_WIDTH);
  let y = TOP;
  const groups = chart.groups.map((group) => {
    const drawn = group.bars.map(({ series, value, text: told }, index) => {
      const top = y + index * BAR;
      const size = `width="${at(Math.max(1, width(value)))}" height="${BAR - 2}"`;
      const bar = `<rect x="${LABEL_WIDTH}" y="${top}" ${size} fill="${color(series)}"/>`;
      return bar + text(LABEL_WIDTH + width(value) + 5, top + BAR - 2, told, 'class="faint"');
    });
    const name = text(LABEL_WIDTH - 8, y + (group.bars.length * BAR) / 2 + 3, group.label, 'text-anchor="end"');
    y += group.bars.length * BAR + GAP;
    return name + drawn.join('');
  });
  const ticks = logarithmicTicks(1, 10 ** decades, [1]).map((tick) => {
    const x = LABEL_WIDTH + width(tick);
    return (
      line(x, TOP - 4, x, y - 4) + text(x, y + 10, tick.toLocaleString('en'), 'class="faint" text-anchor="middle"')
    );
  });
  return { height: y + 12, svg: heading(chart) + ticks.join('') + groups.join('\n') };
}
