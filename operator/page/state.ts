/** What the page shows, and how that changes. Computes only. */
import { inOrder, type Lane, ORDERS, type Order } from '../live/lanes.ts';
import type { PageFrame, PageLane, Point } from '../live/page-frame.ts';
import type { Entry } from '../live/timeline.ts';

/** As many as the server keeps. */
const POINTS_MAX = 450;
const ENTRIES_MAX = 200;

export interface Profile {
  id: string;
  title: string;
}

export interface State {
  frame: PageFrame | undefined;
  points: Point[];
  entries: Entry[];
  /** Why there are no new frames. */
  trouble: string;
  order: Order;
  filter: string;
  /** Pod and worker: a lane moves, and stays the chosen one. */
  chosen: string;
  /** What was asked for: a stack, a profile. */
  message: string;
  stack: string[];
  profiles: Profile[];
  isHelpOpen: boolean;
}

export const NOTHING: State = {
  ...{ frame: undefined, points: [], entries: [], trouble: 'connecting', order: 'stuck', filter: '', chosen: '' },
  ...{ message: '', stack: [], profiles: [], isHelpOpen: false },
};

export function keyOf({ pod, worker }: PageLane): string {
  return `${pod} ${worker.name}`;
}

/** Number of a lane's worker. */
export function indexOf({ worker: { name } }: PageLane): number {
  return Number(name.slice(name.lastIndexOf('-') + 1));
}

/** Lanes that are to be seen, in their order: of pods, revisions and requests that have the text. */
export function shownLanes({ frame, filter, order }: Pick<State, 'frame' | 'filter' | 'order'>): PageLane[] {
  const lanes = frame?.lanes ?? [];
  const text = filter.trim().toLowerCase();
  const isShown = ({ pod, worker, requests }: PageLane) =>
    `${pod} ${worker.name} ${requests.map(({ what }) => what).join(' ')}`.toLowerCase().includes(text);
  // A page's lane has all that an order looks at.
  return inOrder((text === '' ? lanes : lanes.filter(isShown)) as Lane[], order) as PageLane[];
}

/** The first one where none is chosen, or the chosen one is out of sight. */
export function chosenIndex(lanes: PageLane[], chosen: string): number {
  return Math.max(
    0,
    lanes.findIndex((lane) => keyOf(lane) === chosen),
  );
}

/** A panel is about the lane that was chosen when it came. */
export function choose(state: State, lane: PageLane | undefined): State {
  const chosen = lane ? keyOf(lane) : '';
  return chosen === state.chosen ? state : { ...state, chosen, stack: [], message: '' };
}

/** The lane so many further on. */
export function step(state: State, by: number): State {
  const lanes = shownLanes(state);
  const index = Math.max(0, Math.min(chosenIndex(lanes, state.chosen) + by, lanes.length - 1));
  return choose(state, lanes[index]);
}

export function nextOrder(order: Order): Order {
  return ORDERS[(ORDERS.indexOf(order) + 1) % ORDERS.length] ?? 'stuck';
}

export function withFrame(state: State, frame: PageFrame): State {
  const isNew = frame.atMs > (state.points.at(-1)?.atMs ?? 0);
  return {
    ...state,
    frame,
    points: (isNew ? [...state.points, frame.point] : state.points).slice(-POINTS_MAX),
    entries: [...state.entries, ...frame.entries].slice(-ENTRIES_MAX),
    trouble: '',
  };
}

/** Rows that are to be drawn: those in sight, and some beyond, so that nothing is empty while one scrolls. */
export function rowsInSight(
  { scrollTop, height, rowHeight, beyond }: { scrollTop: number; height: number; rowHeight: number; beyond: number },
  count: number,
): { first: number; end: number } {
  const first = Math.max(0, Math.min(Math.floor(scrollTop / rowHeight), count) - beyond);
  return { first, end: Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + beyond) };
}
