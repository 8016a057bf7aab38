/**
 * What workers do, second by second: a lane for each, and below them how many requests wait. The time runs: a picture
 * that moves, by SMIL, which browsers play in an <img>. Whoever does not play it shows the end.
 */
import { at, escapeXml, heading, line, type Part, picture, text, WIDTH } from './svg.ts';

export interface LanesChart {
  title: string;
  subtitle: string;
  lanes: string[];
  bars: LaneBar[];
  /** Words on a bar, from that time on. */
  marks: { lane: number; atS: number; words: string }[];
  /** How many wait from then on. */
  waiting: { atS: number; count: number }[];
}

export interface LaneBar {
  lane: number;
  beginS: number;
  endS: number;
  kind: 'render' | 'stuck';
}

const LEFT = 90;
const PLOT = WIDTH - LEFT - 10;
const TOP = 44;
const LANE = 20;
const BAR = 15;
/** Height of the area of those who wait, and what its full height is. */
const AREA = 46;
const WAITING_MAX = 20;
const BOTTOM = 20;
/** How long the run takes, whatever time it shows, and how long it stands still before it begins again. */
const RUN_S = 10;
const STILL_S = 4;
/** Neighbours of one lane are told apart. */
const RENDER_COLORS = ['#0072b2', '#56b4e9'];
const STUCK_COLOR = '#d55e00';
const WAITING_COLOR = '#e69f00';

/**
 * The charts below each other, on one time axis.
 * @param seconds how much time is shown
 * @param moves whether the time runs, or all of it is there from the beginning
 */
export function lanes(charts: LanesChart[], seconds: number, moves: boolean): string {
  const parts = charts.map((chart) => draw(chart, seconds, moves));
  const title = charts.map((chart) => `${chart.title}: ${chart.subtitle}`).join('. ');
  return picture([key(), ...parts], title);
}

function key(): Part {
  const entries = [
    [RENDER_COLORS[0], 'a render'],
    [STUCK_COLOR, 'a render that never ends'],
    [WAITING_COLOR, 'requests that wait'],
  ].map(([color, words], index) => {
    const x = 10 + index * 200;
    return `<rect x="${x}" y="0" width="11" height="11" fill="${color}"/>${text(x + 17, 10, words as string)}`;
  });
  return { height: 12, svg: entries.join('') };
}

function draw(chart: LanesChart, seconds: number, moves: boolean): Part {
  const x = (atS: number) => LEFT + (Math.min(atS, seconds) / seconds) * PLOT;
  const floor = TOP + chart.lanes.length * LANE + AREA;
  const names = chart.lanes.map((name, lane) => text(LEFT - 8, TOP + lane * LANE + 12, name, 'text-anchor="end"'));
  const ticks = Array.from({ length: Math.floor(seconds / 2) + 1 }, (_unused, index) => {
    const atS = 2 * index;
    const anchor = atS === seconds ? 'end' : 'middle';
    const label = text(x(atS), floor + 14, `${atS} s`, `class="faint" text-anchor="${anchor}"`);
    return line(x(atS), TOP - 4, x(atS), floor) + label;
  });
  const height = floor + BOTTOM;
  const moving = [...bars(chart, x), area(chart, x, seconds, floor), ...marks(chart, x)].join('\n');
  const id = chart.title.replaceAll(/\W+/g, '-');
  const shown = moves
    ? `${clip(id, height)}<g clip-path="url(#${escapeXml(id)})">${moving}</g>${sweep(floor)}`
    : moving;
  return {
    height: height - 10,
    svg: [heading(chart), ...ticks, ...names, text(LEFT - 8, floor - 4, 'waiting', 'text-anchor="end"'), shown].join(
      '\n',
    ),
  };
}

function bars(chart: LanesChart, x: (atS: number) => number): string[] {
  const drawn = chart.lanes.map(() => 0);
  return chart.bars.map(({ lane, beginS, endS, kind }) => {
    drawn[lane] = (drawn[lane] ?? 0) + 1;
    const color = kind === 'stuck' ? STUCK_COLOR : RENDER_COLORS[(drawn[lane] ?? 0) % RENDER_COLORS.length];
    const width = Math.max(0.5, x(endS) - x(beginS));
    return `<rect x="${at(x(beginS))}" y="${TOP + lane * LANE}" width="${at(width)}" height="${BAR}" fill="${color}"/>`;
  });
}

/** Steps: as many wait as the last point before says. */
function area(chart: LanesChart, x: (atS: number) => number, seconds: number, floor: number): string {
  const y = (count: number) => floor - (Math.min(count, WAITING_MAX) / WAITING_MAX) * (AREA - 6);
  let last = 0;
  const points = chart.waiting.flatMap(({ atS, count }) => {
    const step = [`${at(x(atS))},${at(y(last))}`, `${at(x(atS))},${at(y(count))}`];
    last = count;
    return step;
  });
  const end = [`${at(x(seconds))},${at(y(last))}`, `${at(x(seconds))},${at(floor)}`];
  return `<polygon points="${[`${at(LEFT)},${at(floor)}`, ...points, ...end].join(' ')}" fill="${WAITING_COLOR}"/>`;
}

function marks(chart: LanesChart, x: (atS: number) => number): string[] {
  return chart.marks.map(({ lane, atS, words }) =>
    text(x(atS) + 4, TOP + lane * LANE + 12, words, 'style="fill:#fff"'),
  );
}

function clip(id: string, height: number): string {
  const run = animate('width', 0, PLOT);
  return `<clipPath id="${escapeXml(id)}"><rect x="${LEFT}" y="0" width="${PLOT}" height="${height}">${run}</rect></clipPath>`;
}

/** The line of now. */
function sweep(floor: number): string {
  const [from, to] = [LEFT, LEFT + PLOT];
  const run = animate('x1', from, to) + animate('x2', from, to);
  return `<line class="mark" x1="${to}" y1="${TOP - 4}" x2="${to}" y2="${floor}">${run}</line>`;
}

function animate(attribute: string, from: number, to: number): string {
  const still = Math.round((100 * RUN_S) / (RUN_S + STILL_S)) / 100;
  const run = `values="${from};${to};${to}" keyTimes="0;${still};1" dur="${RUN_S + STILL_S}s"`;
  return `<animate attributeName="${attribute}" ${run} repeatCount="indefinite"/>`;
}
