/** Plots as SVG, readable on light and dark pages. Computes only. */

export interface Bar {
  series: string;
  value: number;
  /** Written behind the bar. */
  text: string;
}

export interface BarChart {
  title: string;
  subtitle: string;
  /** The axis is logarithmic and begins at 1: values that differ by factors of a thousand are read side by side. */
  groups: { label: string; bars: Bar[] }[];
}

export interface LineChart {
  title: string;
  subtitle: string;
  xLabel: string;
  /** Values of y are on a logarithmic axis. */
  series: { name: string; points: { x: number; y: number }[] }[];
}

const WIDTH = 860;
const LABEL_WIDTH = 250;
const BAR = 11;
const GAP = 10;
const LINE_HEIGHT = 320;
/** Told apart by people who see few colours as well (Okabe and Ito). */
const COLORS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#d55e00', '#56b4e9', '#999999', '#b8a500'];

const STYLE = `<style>
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 }
  .faint { fill: #6e7781; font-size: 11px }
  .grid { stroke: #d0d7de }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .faint { fill: #8d96a0 }
    .grid { stroke: #30363d }
  }
</style>`;

function escapeXml(text: string): string {
  return text.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
}

function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${attributes}>${escapeXml(content)}</text>`;
}

interface Part {
  height: number;
  /** Drawn from y = 0 on. */
  svg: string;
}

/** One picture: the charts below each other, and one legend for all series. */
export function plot(charts: (BarChart | LineChart)[]): string {
  const names = [...new Set(charts.flatMap(seriesOf))];
  const color = (name: string) => COLORS[names.indexOf(name) % COLORS.length] as string;
  const parts = [legend(names, color), ...charts.map((chart) => draw(chart, color))];
  let y = 10;
  const body = parts.map(({ height, svg }) => {
    const placed = `<g transform="translate(0 ${y})">${svg}</g>`;
    y += height + 24;
    return placed;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}">
${STYLE}
${body.join('\n')}
</svg>
`;
}

function seriesOf(chart: BarChart | LineChart): string[] {
  if ('series' in chart) return chart.series.map(({ name }) => name);
  return chart.groups.flatMap(({ bars }) => bars.map(({ series }) => series));
}

function draw(chart: BarChart | LineChart, color: (name: string) => string): Part {
  return 'series' in chart ? lineChart(chart, color) : barChart(chart, color);
}

function legend(names: string[], color: (name: string) => string): Part {
  const columns = 3;
  const items = names.map((name, index) => {
    const x = 10 + (index % columns) * (WIDTH / columns);
    const y = Math.floor(index / columns) * 18;
    return `<rect x="${x}" y="${y}" width="11" height="11" fill="${color(name)}"/>${text(x + 17, y + 10, name)}`;
  });
  return { height: Math.ceil(names.length / columns) * 18, svg: items.join('') };
}

function heading({ title, subtitle }: { title: string; subtitle: string }): string {
  return text(10, 14, title, 'class="title"') + text(10, 31, subtitle, 'class="faint"');
}

function barChart(chart: BarChart, color: (name: string) => string): Part {
  const max = Math.max(10, ...chart.groups.flatMap(({ bars }) => bars.map(({ value }) => value)));
  const decades = Math.ceil(Math.log10(max));
  const scale = (value: number) => (Math.log10(Math.max(1, value)) / decades) * (WIDTH - LABEL_WIDTH - 90);
  let y = 44;
  const groups = chart.groups.map(({ label, bars }) => {
    const drawn = bars.map(({ series, value, text: told }, index) => {
      const top = y + index * BAR;
      const bar = `<rect x="${LABEL_WIDTH}" y="${top}" width="${Math.max(1, scale(value)).toFixed(1)}" height="${BAR - 2}" fill="${color(series)}"/>`;
      return bar + text(LABEL_WIDTH + scale(value) + 5, top + BAR - 2, told, 'class="faint"');
    });
    const name = text(LABEL_WIDTH - 8, y + (bars.length * BAR) / 2 + 3, label, 'text-anchor="end"');
    y += bars.length * BAR + GAP;
    return name + drawn.join('');
  });
  const ticks = Array.from({ length: decades + 1 }, (_unused, power) => {
    const x = LABEL_WIDTH + scale(10 ** power);
    const mark = text(x, y + 10, (10 ** power).toLocaleString('en'), 'class="faint" text-anchor="middle"');
    return `<line class="grid" x1="${x.toFixed(1)}" x2="${x.toFixed(1)}" y1="40" y2="${y - 4}"/>${mark}`;
  });
  return { height: y + 12, svg: heading(chart) + ticks.join('') + groups.join('\n') };
}

function lineChart(chart: LineChart, color: (name: string) => string): Part {
  const points = chart.series.flatMap((series) => series.points);
  const xs = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b);
  const low = Math.log10(Math.min(...points.map(({ y }) => y))) - 0.05;
  const high = Math.log10(Math.max(...points.map(({ y }) => y))) + 0.05;
  const [first = 0, last = 1] = [xs[0], xs.at(-1)];
  const place = ({ x, y }: { x: number; y: number }) => ({
    left: 70 + ((x - first) / (last - first || 1)) * (WIDTH - 100),
    top: 44 + ((high - Math.log10(y)) / (high - low)) * LINE_HEIGHT,
  });
  const lines = chart.series.map(({ name, points: own }) => {
    const placed = own.map(place);
    const path = placed.map(({ left, top }) => `${left.toFixed(1)},${top.toFixed(1)}`).join(' ');
    const dots = placed.map(
      ({ left, top }) => `<circle cx="${left.toFixed(1)}" cy="${top.toFixed(1)}" r="3" fill="${color(name)}"/>`,
    );
    return `<polyline points="${path}" fill="none" stroke="${color(name)}" stroke-width="2"/>${dots.join('')}`;
  });
  const bottom = 44 + LINE_HEIGHT;
  const xTicks = xs.map((x) =>
    text(place({ x, y: 10 ** low }).left, bottom + 16, String(x), 'class="faint" text-anchor="middle"'),
  );
  const yTicks = ticksBetween(low, high).map((y) => {
    const { top } = place({ x: first, y });
    const grid = `<line class="grid" x1="70" x2="${WIDTH - 30}" y1="${top.toFixed(1)}" y2="${top.toFixed(1)}"/>`;
    return grid + text(62, top + 4, y.toLocaleString('en'), 'class="faint" text-anchor="end"');
  });
  const axis = text(WIDTH / 2, bottom + 34, chart.xLabel, 'text-anchor="middle"');
  return { height: bottom + 36, svg: heading(chart) + yTicks.join('') + lines.join('\n') + xTicks.join('') + axis };
}

/** 1, 2, 5, 10, 20 ... between two powers of ten. */
function ticksBetween(low: number, high: number): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(low); power <= high; power += 1)
    ticks.push(...[1, 2, 5].map((digit) => digit * 10 ** power));
  return ticks.filter((tick) => Math.log10(tick) >= low && Math.log10(tick) <= high);
}
