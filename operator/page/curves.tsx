/** The last minutes as curves, with a mark for each step of the time line. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import type { Point } from '../live/page-frame.ts';
import type { Entry } from '../live/timeline.ts';
import { onTheme, type Theme, theme } from './theme.ts';

interface Curve {
  label: string;
  color: keyof Theme;
  of: (point: Point) => number | null;
}

const TIMES: Curve[] = [
  { label: 'p99', color: 'total', of: ({ p99Ms }) => p99Ms },
  { label: 'p99 of the queue', color: 'queue', of: ({ queueP99Ms }) => queueP99Ms },
  { label: 'p99 of renders', color: 'render', of: ({ renderP99Ms }) => renderP99Ms },
];
const LOAD: Curve[] = [
  { label: 'workers', color: 'total', of: ({ workers }) => workers },
  { label: 'busy', color: 'render', of: ({ busy }) => busy },
  { label: 'queue', color: 'queue', of: ({ queue }) => queue },
];
const HEIGHT_PX = 150;
const AXIS_PX = 52;
/** What is drawn as a line through the curves. */
const MARKED = new Set<Entry['kind']>(['scaling', 'rollout', 'stuck', 'warning']);

interface CurvesProps {
  points: Point[];
  entries: Entry[];
}

export function Curves({ points, entries }: CurvesProps) {
  return (
    <div class="curves">
      <Chart title="time of requests, ms" curves={TIMES} points={points} entries={entries} />
      <Chart title="workers and queue" curves={LOAD} points={points} entries={entries} />
    </div>
  );
}

function Chart({ title, curves, points, entries }: CurvesProps & { title: string; curves: Curve[] }) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const marks = useRef(entries);
  marks.current = entries;
  const data = dataOf(points, curves);
  const last = useRef(data);
  last.current = data;
  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const make = () => {
      chart.current?.destroy();
      chart.current = new uPlot(
        optionsOf(curves, element.clientWidth, () => marks.current),
        last.current,
        element,
      );
    };
    make();
    const observer = new ResizeObserver(() =>
      chart.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX }),
    );
    observer.observe(element);
    const forget = onTheme(make);
    return () => {
      forget();
      observer.disconnect();
      chart.current?.destroy();
    };
  }, []);
  useEffect(() => chart.current?.setData(data), [points]);
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <div ref={box} />
    </figure>
  );
}

function dataOf(points: Point[], curves: Curve[]): uPlot.AlignedData {
  return [points.map(({ atMs }) => atMs / 1000), ...curves.map(({ of }) => points.map(of))];
}

function optionsOf(curves: Curve[], width: number, entries: () => Entry[]): uPlot.Options {
  const colors = theme();
  const axis = {
    stroke: colors.dim,
    grid: { stroke: colors.line, width: 1 },
    ticks: { stroke: colors.line, width: 1 },
  };
  return {
    ...{ width, height: HEIGHT_PX, cursor: { sync: { key: 'time' }, drag: { x: false, y: false } } },
    scales: { y: { range: (_chart, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] } },
    axes: [
      { ...axis, space: 90, values: (_chart, times) => times.map(clock) },
      { ...axis, size: AXIS_PX },
    ],
    series: [
      { label: 'at', value: (_chart: uPlot, atS: number | null) => (atS === null ? '-' : clock(atS)) },
      ...curves.map(({ label, color }) => ({
        ...{ label, stroke: colors[color], width: 1.5, spanGaps: false, points: { show: false } },
        value: (_chart: uPlot, value: number | null) => (value === null ? '-' : String(Math.round(value))),
      })),
    ],
    hooks: { draw: [(chart) => drawMarks(chart, entries())] },
  };
}

function clock(atS: number): string {
  return new Date(1000 * atS).toLocaleTimeString();
}

function drawMarks(chart: uPlot, entries: Entry[]): void {
  const { min = 0, max = 0 } = chart.scales.x ?? {};
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.setLineDash([4, 4]);
  for (const { atMs, kind } of entries) {
    if (!MARKED.has(kind) || atMs / 1000 < min || atMs / 1000 > max) continue;
    ctx.strokeStyle = kind === 'stuck' || kind === 'warning' ? theme().silent : theme().text;
    const x = Math.round(chart.valToPos(atMs / 1000, 'x', true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
