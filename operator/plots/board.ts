/** A dashboard: tiles on a grid of 24 columns, each with lines over time, a figure, a table or words. */
import { at, colorsOf, escapeXml, line, linearTicks, type Part, picture, text, WIDTH } from './svg.ts';

interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

export type Tile = Place & { title: string } & (
    | { kind: 'heading' }
    | { kind: 'words'; words: string[] }
    | { kind: 'figure'; values: { name: string; value: string }[] }
    | { kind: 'table'; columns: string[]; rows: string[][] }
    | { kind: 'lines'; lines: TileLine[]; written: (value: number) => string; stacked: boolean; none: string }
  );

export interface TileLine {
  name: string;
  points: [atS: number, value: number][];
}

export interface BoardChart {
  title: string;
  tiles: Tile[];
  fromS: number;
  toS: number;
  /** What began when: a number in each plot, and its words below the title. */
  marks: { atS: number; what: string }[];
}

const COLUMN = WIDTH / 24;
const ROW = 26;
const GAP = 4;
const LEFT = 52;
/** Width of a character of the small text, about. */
const CHARACTER = 5.9;
/** Room for how many names are not there. */
const MORE = 26;
/** Characters of a cell that its column is made for. */
const CELL_MAX = 30;

/** The picture. */
export function board(chart: BoardChart): string {
  const { title, tiles, marks } = chart;
  const told = wrapped(marks.map(({ what }, index) => `${index + 1} ${what}`).join(' · '), (WIDTH - 20) / CHARACTER);
  const lines = told.map((words, index) => text(10, 31 + index * 15, words, 'class="faint"'));
  const head: Part = { height: 14 + lines.length * 15, svg: text(10, 14, title, 'class="title"') + lines.join('') };
  const bottom = Math.max(...tiles.map(({ y, h }) => y + h)) * ROW;
  return picture([head, { height: bottom, svg: tiles.map((tile) => drawn(tile, chart)).join('\n') }], title);
}

const short = (words: string, width: number) => {
  const most = Math.max(1, Math.floor(width / CHARACTER));
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
};

function drawn(tile: Tile, chart: BoardChart): string {
  const [width, height] = [tile.w * COLUMN - GAP, tile.h * ROW - GAP];
  const inside = tile.kind === 'heading' ? heading(tile.title, width) : framed(tile, chart, width, height);
  return `<g transform="translate(${at(tile.x * COLUMN)} ${at(tile.y * ROW)})">${inside}</g>`;
}

const heading = (title: string, width: number) => text(4, 17, short(title, width * 0.85), 'class="title"');

function framed(tile: Exclude<Tile, { kind: 'heading' }>, chart: BoardChart, width: number, height: number): string {
  const frame = `<rect class="grid" x="1" y="1" width="${at(width)}" height="${at(height)}" rx="3" fill="none"/>`;
  const title = text(8, 16, short(tile.title, (width - 16) * 0.85), 'style="font-weight:600"');
  return frame + title + contentOf(tile, chart, width, height);
}

function contentOf(tile: Exclude<Tile, { kind: 'heading' }>, chart: BoardChart, width: number, height: number): string {
  if (tile.kind === 'words') return small(tile.words, width, height);
  if (tile.kind === 'figure') return figure(tile.values, width);
  if (tile.kind === 'table') return table(tile.columns, tile.rows, width, height);
  if (tile.lines.length === 0) return text(width / 2, height / 2, tile.none, 'class="faint" text-anchor="middle"');
  return plot(tile, chart, width, height);
}

/** Lines of words as they fit. */
function small(words: string[], width: number, height: number): string {
  const lines = words.flatMap((one) => wrapped(one, Math.floor((width - 16) / CHARACTER)));
  const fits = Math.floor((height - 24) / 15);
  return lines
    .slice(0, fits)
    .map((one, index) => text(8, 34 + index * 15, one, 'class="faint"'))
    .join('');
}

function wrapped(words: string, most: number): string[] {
  const lines = [''];
  for (const word of words.split(' ')) {
    const last = lines.at(-1) as string;
    if (last !== '' && last.length + word.length + 1 > most) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines;
}

function figure(values: { name: string; value: string }[], width: number): string {
  const each = width / Math.max(1, values.length);
  return values
    .map(({ name, value }, index) => {
      const middle = each * (index + 0.5);
      const below = values.length > 1 ? text(middle, 86, name, 'class="faint" text-anchor="middle"') : '';
      return text(middle, 64, value, 'style="font-size:24px" text-anchor="middle"') + below;
    })
    .join('');
}

function table(columns: string[], rows: string[][], width: number, height: number): string {
  const longest = columns.map((name, column) =>
    Math.min(CELL_MAX, Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length))),
  );
  const all = longest.reduce((sum, length) => sum + length + 2, 0);
  const fits = Math.max(1, Math.floor((height - 44) / 15));
  let x = 8;
  const shares = longest.map((length) => ((length + 2) / all) * (width - 12));
  return shares
    .map((share, column) => {
      const cells = [columns[column] ?? '', ...rows.slice(0, fits).map((row) => row[column] ?? '')];
      const drawnCells = cells.map((cell, row) =>
        text(x, 36 + row * 15, short(cell, share), row === 0 ? 'class="faint"' : 'style="font-size:11px"'),
      );
      x += share;
      return drawnCells.join('');
    })
    .join('');
}

/** A line at 0 would hide the one below it. */
const isSomething = ({ points }: TileLine) => points.some(([, value]) => value > 0);

/** Values of the lines below added, at the times of each. */
function stackedUp(lines: TileLine[]): TileLine[] {
  const sums = new Map<number, number>();
  return lines.map(({ name, points }) => ({
    name,
    points: points.map(([atS, value]): [number, number] => {
      const sum = (sums.get(atS) ?? 0) + value;
      sums.set(atS, sum);
      return [atS, sum];
    }),
  }));
}

/** Between two points of the same height a third one of it says nothing. */
function sparse(points: [number, number][]): [number, number][] {
  const level = (index: number) => points[index]?.[1];
  return points.filter((_point, index) => level(index) !== level(index - 1) || level(index) !== level(index + 1));
}

/** Parts of a line that go on without a hole: where there is no value there is no line. */
function unbroken(points: [number, number][]): [number, number][][] {
  const parts: [number, number][][] = [];
  for (const point of points) {
    const last = parts.at(-1)?.at(-1);
    if (last && point[0] - last[0] <= 2) parts.at(-1)?.push(point);
    else parts.push([point]);
  }
  return parts;
}

function plot(tile: Extract<Tile, { kind: 'lines' }>, chart: BoardChart, width: number, height: number): string {
  const { written, stacked } = tile;
  const shown = stacked ? stackedUp(tile.lines.filter(isSomething)) : tile.lines;
  const color = colorsOf(shown.map(({ name }) => name));
  const names = legend(shown, color, width, height);
  const [top, bottom, right] = [30, height - names.height - 6, width - 8];
  const highest = Math.max(0, ...shown.flatMap(({ points }) => points.map(([, value]) => value)));
  const most = highest > 0 ? 1.1 * highest : 1;
  const x = (atS: number) => LEFT + ((atS - chart.fromS) / (chart.toS - chart.fromS)) * (right - LEFT);
  const y = (value: number) => bottom - (value / most) * (bottom - top);
  const grid = linearTicks(most).map(
    (value) =>
      line(LEFT, y(value), right, y(value)) +
      text(LEFT - 5, y(value) + 4, written(value), 'class="faint" text-anchor="end"'),
  );
  const marks = chart.marks.map(
    ({ atS }, index) =>
      line(x(atS), top - 2, x(atS), bottom, 'mark') + text(x(atS) + 2, top + 6, String(index + 1), 'class="faint"'),
  );
  const path = (points: [number, number][]) =>
    `M${sparse(points)
      .map(([atS, value]) => `${at(x(atS))} ${at(y(value))}`)
      .join('L')}`;
  // The highest first: those below stay visible.
  const drawnLines = [...shown].reverse().flatMap(({ name, points }) =>
    unbroken(points).map((part) => {
      const ends = `V${at(bottom)}H${at(x(part[0]?.[0] ?? 0))}Z`;
      const area = stacked ? `<path d="${path(part)}${ends}" fill="${color(name)}" fill-opacity="0.25"/>` : '';
      return `${area}<path d="${path(part)}" fill="none" stroke="${color(name)}" stroke-width="1.4"/>`;
    }),
  );
  return [...grid, ...marks, ...drawnLines, names.svg].join('');
}

/** As many names as fit into two lines. */
function legend(lines: TileLine[], color: (name: string) => string, width: number, height: number): Part {
  const rows: { name: string; x: number }[][] = [[]];
  let x = 8;
  for (const { name } of lines) {
    const told = short(name, width - 30);
    const needs = 18 + told.length * CHARACTER;
    if (x + needs > width - MORE && rows.at(-1)?.length) {
      rows.push([]);
      x = 8;
    }
    rows.at(-1)?.push({ name, x });
    x += needs + 6;
  }
  const kept = rows.slice(0, 2);
  const top = height - kept.length * 15;
  const svg = kept.flatMap((row, index) =>
    row.map(({ name, x: left }) => {
      const y = top + index * 15;
      const box = `<rect x="${at(left)}" y="${at(y)}" width="9" height="9" fill="${color(name)}"/>`;
      return `${box}<g><title>${escapeXml(name)}</title>${text(left + 13, y + 9, short(name, width - 30), 'class="faint"')}</g>`;
    }),
  );
  const more = lines.length - kept.flat().length;
  const told = more > 0 ? text(width - 6, height - 6, `+ ${more}`, 'class="faint" text-anchor="end"') : '';
  return { height: kept.length * 15 + 8, svg: svg.join('') + told };
}
