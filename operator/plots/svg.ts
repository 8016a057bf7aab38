/** What all plots are made of: text, colours, scales. Readable on light and dark pages. Computes only. */

export const WIDTH = 1000;

/** Colour of a series, by its name. */
export type ColorOf = (name: string) => string;

/** A part of a picture, drawn from y = 0 on. */
export interface Part {
  height: number;
  svg: string;
}

/** Told apart by people who see few colours as well (Okabe and Ito). */
const COLORS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#d55e00', '#56b4e9', '#999999', '#b8a500'];
const LEGEND_COLUMNS = 4;

const STYLE = `<style>
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 }
  .faint { fill: #6e7781; font-size: 11px }
  .grid { stroke: #d0d7de }
  .mark { stroke: #6e7781; stroke-dasharray: 6 4 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .faint { fill: #8d96a0 }
    .grid { stroke: #30363d }
  }
</style>`;

/** A coordinate as it is written down. */
export function at(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Text for an element or an attribute. */
export function escapeXml(content: string): string {
  return content.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** One line of text; `attributes` as SVG has them. */
export function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${at(x)}" y="${at(y)}" ${attributes}>${escapeXml(content)}</text>`;
}

/** A line of the grid, or another one (`className`). */
export function line(x1: number, y1: number, x2: number, y2: number, className = 'grid'): string {
  return `<line class="${className}" x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}"/>`;
}

/** Title and subtitle of a chart: 36 high. */
export function heading({ title, subtitle = '' }: { title: string; subtitle?: string }): string {
  return text(10, 14, title, 'class="title"') + text(10, 31, subtitle, 'class="faint"');
}

/** A colour for each of the names, in their order. */
export function colorsOf(names: string[]): ColorOf {
  return (name) => COLORS[names.indexOf(name) % COLORS.length] as string;
}

/** Names with their colours. */
export function legend(names: string[], color: ColorOf): Part {
  const items = names.map((name, index) => {
    const x = 10 + (index % LEGEND_COLUMNS) * (WIDTH / LEGEND_COLUMNS);
    const y = Math.floor(index / LEGEND_COLUMNS) * 18;
    return `<rect x="${at(x)}" y="${y}" width="11" height="11" fill="${color(name)}"/>${text(x + 17, y + 10, name)}`;
  });
  return { height: Math.ceil(names.length / LEGEND_COLUMNS) * 18, svg: items.join('') };
}

/**
 * The picture: its parts below each other.
 * @param title what it shows, for who cannot see it
 */
export function picture(parts: Part[], title?: string): string {
  let y = 10;
  const body = parts.map(({ height, svg }) => {
    const placed = `<g transform="translate(0 ${y})">${svg}</g>`;
    y += height + 24;
    return placed;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}">
${title === undefined ? '' : `<title>${escapeXml(title)}</title>\n`}${STYLE}
${body.join('\n')}
</svg>
`;
}

/** 0, 2, 4 ... up to `most`: four or five of them. */
export function linearTicks(most: number): number[] {
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_unused, index) => index * step);
}

/** 1, 2, 5, 10, 20 ... from `low` to `high`, or of these only the powers of ten. */
export function logarithmicTicks(low: number, high: number, digits = [1, 2, 5]): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1)
    ticks.push(...digits.map((digit) => digit * 10 ** power));
  return ticks.filter((tick) => tick >= low && tick <= high);
}
