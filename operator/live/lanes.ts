/** What `corelane top` shows: workers as lanes, stuck ones first, on a screen of any size. Computes only. */
import { explain, named } from './explain.ts';
import type { WorkerFigures } from './figures.ts';
import type { Snapshot } from './snapshot.ts';
import type { RequestNow } from './source.ts';
import { aligned, clip, count, mebibytes, seconds, UNKNOWN } from './text.ts';
import type { Window } from './window.ts';
import { isSilent, stateOf } from './worker-state.ts';

export const ORDERS = ['stuck', 'time', 'cpu', 'heap', 'requests', 'name'] as const;
export type Order = (typeof ORDERS)[number];

/** What a lane has for each look. */
const MARKS = { away: 'x', silent: '!', busy: '▇', idle: '·' } as const;

export interface Lane {
  pod: string;
  worker: WorkerFigures;
  /** A mark for each of the last looks, the newest last. */
  marks: string;
  /** What it renders, the oldest first; empty where it does not say. */
  requests: RequestNow[];
  /** Share of one core since the look before. */
  cpu: number | undefined;
}

export interface View {
  snapshot: Snapshot;
  window: Window;
  lanes: Lane[];
  order: Order;
  /** Number of the lane that keys are about. */
  chosen: number;
  /** Below the lanes: a stack. */
  panel: string[];
  /** What was just done. */
  message: string;
}

export type Style = 'title' | 'head' | 'alarm' | 'chosen' | 'dim' | 'plain';

export interface Line {
  text: string;
  style: Style;
}

/** The lines above the lanes: the numbers, who there is, what limits it. */
const SUMMARY_LINES = 3;
/** A terminal that has fewer lines shows the first of these alone. */
const LOW = 10;
/** What a panel may take of the lines of lanes. */
const PANEL_SHARE = 0.5;
/** Columns that a narrow terminal does without, the first one first. */
const DROPPED = ['RESTARTS', 'REQUESTS', 'MEMORY', 'HEAP', 'LANE', 'CPU', 'STATE'];
const NOW = 'NOW';
const NOW_MIN = 16;
const KEYS = '[j/k] choose [o] order [s] last stack [p] profile [q] quit';

export function markOf(worker: WorkerFigures): string {
  if (!worker.up) return MARKS.away;
  if (isSilent(worker)) return MARKS.silent;
  return worker.busy > 0 || worker.blocked ? MARKS.busy : MARKS.idle;
}

/** By the order that is wanted; of equal ones by name, so that nothing jumps. */
export function inOrder(lanes: Lane[], order: Order): Lane[] {
  const value = VALUES[order];
  return lanes.toSorted((one, other) => value(other) - value(one) || (label(one) < label(other) ? -1 : 1));
}

const VALUES: Record<Order, (lane: Lane) => number> = {
  stuck: ({ worker, requests }) => 1e9 * trouble(worker) + forMs(requests),
  time: ({ requests }) => forMs(requests),
  cpu: ({ cpu = -1 }) => cpu,
  heap: ({ worker: { oldSpaceBytes = -1 } }) => oldSpaceBytes,
  requests: ({ worker: { requests = -1 } }) => requests,
  name: () => 0,
};

/** How much a worker needs somebody: 5 stands still, 4 crashes, 3 is away, 2 is blocked, 1 renders, 0 is free. */
export function trouble(worker: WorkerFigures): number {
  if (isSilent(worker)) return 5;
  if (worker.crashLoop) return 4;
  if (!worker.up) return 3;
  if (worker.blocked) return 2;
  return worker.busy > 0 ? 1 : 0;
}

function forMs([oldest]: RequestNow[]): number {
  return oldest?.ms ?? 0;
}

function label({ pod, worker }: Lane): string {
  return `${pod} ${worker.name.padStart(10)}`;
}

/** The whole screen, at most so wide and so high; `hasKeys` where somebody can press them. */
export function frame(
  view: View,
  { width, height, hasKeys }: { width: number; height: number; hasKeys: boolean },
): Line[] {
  const isLow = height < LOW;
  const summary = explain(view.snapshot, view.window).slice(0, isLow ? 1 : SUMMARY_LINES);
  const above: Line[] = [
    ...summary.map((text, index): Line => ({ text, style: index === 0 ? 'title' : 'plain' })),
    ...(isLow ? [] : [{ text: '', style: 'plain' } as const]),
  ];
  const below: Line[] = hasKeys ? [{ text: view.message || `${KEYS} · order: ${view.order}`, style: 'dim' }] : [];
  const panelMax = Math.max(0, Math.floor(PANEL_SHARE * (height - above.length - below.length)));
  const panel = view.panel.slice(0, panelMax).map((text): Line => ({ text, style: 'plain' }));
  const room = height - above.length - panel.length - below.length;
  const lines = [...above, ...rows(view, width, room, hasKeys), ...panel, ...below];
  return lines.slice(0, height).map(({ text, style }) => ({ text: clip(named(text, view.snapshot), width), style }));
}

function rows(view: View, width: number, room: number, hasKeys: boolean): Line[] {
  const lanes = inOrder(view.lanes, view.order);
  const shown = Math.max(0, room - 1);
  const first = Math.max(0, Math.min(view.chosen - Math.floor(shown / 2), lanes.length - shown));
  const visible = lanes.slice(first, first + shown);
  const [head = '', ...texts] = table(visible, width - 2);
  return [
    { text: `  ${head}`, style: 'head' },
    ...visible.map((lane, index): Line => {
      const isChosen = hasKeys && first + index === view.chosen;
      const style = trouble(lane.worker) >= 3 ? 'alarm' : isChosen ? 'chosen' : 'plain';
      return { text: `${isChosen ? '>' : ' '} ${texts[index]}`, style };
    }),
  ];
}

function table(lanes: Lane[], width: number): string[] {
  const all = lanes.map(cells);
  const names = Object.keys(all[0] ?? cells(NOBODY));
  for (let dropped = 0; ; dropped += 1) {
    const columns = names.filter((name) => name !== NOW && !DROPPED.slice(0, dropped).includes(name));
    const lines = aligned([columns, ...all.map((row) => columns.map((name) => row[name] ?? ''))], columns.length);
    const taken = Math.max(...lines.map((line) => line.length)) + 2;
    if (width - taken < NOW_MIN && dropped < DROPPED.length) continue;
    return lines.map((line, index) => {
      const now = index === 0 ? NOW : (all[index - 1]?.[NOW] ?? '');
      return `${line.padEnd(taken)}${clip(now, Math.max(NOW_MIN, width - taken))}`.trimEnd();
    });
  }
}

function cells({ pod, worker, marks, requests, cpu }: Lane): Record<string, string> {
  const [oldest] = requests;
  const others = requests.length > 1 ? `+${requests.length - 1} ` : '';
  return {
    POD: clip(pod, 32),
    WORKER: worker.name.slice(worker.name.lastIndexOf('-') + 1),
    STATE: clip(stateOf(worker), 18),
    LANE: marks,
    FOR: oldest ? seconds(oldest.ms) : worker.busy > 0 ? '?' : '',
    CPU: cpu === undefined ? UNKNOWN : `${Math.round(100 * cpu)} %`,
    HEAP: mebibytes(worker.oldSpaceBytes),
    MEMORY: mebibytes(worker.memoryBytes),
    REQUESTS: count(worker.requests),
    RESTARTS: count(worker.restarts),
    [NOW]: oldest ? `${others}${oldest.what}` : '',
  };
}

const NOBODY: Lane = {
  ...{ pod: '', marks: '', requests: [], cpu: undefined },
  worker: { name: '', up: true, busy: 0, downs: 0, isBackingOff: false, renders: new Map() },
};
