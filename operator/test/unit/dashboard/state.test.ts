/** What the page of `corelane dashboard` shows, and how keys change that. */
import { type PageFrame, pageFrame } from '../../../live/page-frame.ts';
import { windowOf } from '../../../live/window.ts';
import {
  choose,
  NOTHING,
  nextOrder,
  rowsInSight,
  type State,
  shownLanes,
  step,
  withFrame,
} from '../../../page/state.ts';
import { fiveSecondsBefore, fleet, full, NOW_MS, pod, worker } from '../live/fleet.ts';

const LANES = [0, 1, 2].map((index) => ({
  pod: `storefront-7f9c-${index}`,
  worker: worker(0, { busy: 1, silentS: index === 1 ? 9 : 0.1 }),
  marks: '·▇',
  requests: [{ id: 'a', what: `GET /p/${index}`, ms: 10 * index }],
  cpu: 0.5,
}));

function frame(atMs = NOW_MS, lanes = LANES): PageFrame {
  const snapshot = fleet({ atMs, pods: [0, 1, 2].map((index) => pod(index, { figures: full() })) });
  const before = fiveSecondsBefore(snapshot);
  return pageFrame({ snapshot, window: windowOf(snapshot, before), lanes }, before, { entries: [], notes: [] });
}

const names = (state: State) => shownLanes(state).map((lane) => lane.pod.at(-1));

test('stuck ones first; found by pod, and by what they render', () => {
  const state = withFrame(NOTHING, frame());
  expect(names(state)).toEqual(['1', '2', '0']);
  expect(names({ ...state, filter: '7F9C-2 ' })).toEqual(['2']);
  expect(names({ ...state, filter: '/p/0' })).toEqual(['0']);
  expect(names({ ...state, filter: 'none' })).toEqual([]);
});

test('a lane that moves stays the chosen one; a stack is of the lane that was chosen', () => {
  const one = step(withFrame(NOTHING, frame()), 1);
  expect(one.chosen).toBe('storefront-7f9c-2 worker-0');
  const moved = withFrame({ ...one, stack: ['at render'] }, frame(NOW_MS + 1, LANES.slice(1)));
  expect(moved).toMatchObject({ chosen: one.chosen, stack: ['at render'] });
  expect(step(moved, -1)).toMatchObject({ chosen: 'storefront-7f9c-1 worker-0', stack: [] });
  expect(choose(moved, shownLanes(moved)[1])).toBe(moved);
});

test('no key leads out of the list, and none fails without one', () => {
  const state = withFrame(NOTHING, frame());
  expect(step(state, Number.POSITIVE_INFINITY).chosen).toBe('storefront-7f9c-0 worker-0');
  expect(step(state, Number.NEGATIVE_INFINITY).chosen).toBe('storefront-7f9c-1 worker-0');
  expect(step({ ...state, filter: 'none' }, 5).chosen).toBe('');
  expect(step(NOTHING, 1).chosen).toBe('');
});

test('every order comes in turn', () => {
  expect(nextOrder('stuck')).toBe('time');
  expect(nextOrder('name')).toBe('stuck');
});

test('curves have a point for each look, and no more than they can show; a look told twice is one', () => {
  let state = withFrame(NOTHING, frame(1));
  expect(withFrame(state, frame(1)).points).toHaveLength(1);
  for (let atMs = 2; atMs < 1_000; atMs += 1)
    state = withFrame(state, { ...frame(1), atMs, point: { ...frame(1).point, atMs } });
  expect(state.points).toHaveLength(450);
  expect(state.points.at(-1)?.atMs).toBe(999);
});

test('a look has what curves and pods show', () => {
  const { point, pods, revisions, lanes } = frame();
  expect(point).toMatchObject({ pods: 3, workers: 3, busy: 3, queue: 18, perSecond: 120 });
  expect(pods[0]).toMatchObject({ name: 'storefront-7f9c-0', workers: '▇', queue: 6, outPerS: 0 });
  expect(revisions).toEqual([{ revision: '7f9c', pods: 3, ready: 3 }]);
  expect(lanes[0]?.worker).not.toHaveProperty('renders');
});

test('requests that go to other pods, by the second; a pod that has begun anew gives none', () => {
  const at = (handedOut: number, atMs: number) =>
    fleet({ pods: [pod(0, { figures: full({ handedOut, handedIn: 2 * handedOut, atMs }) })] });
  const rates = (now: ReturnType<typeof at>, before: ReturnType<typeof at>) =>
    pageFrame({ snapshot: now, window: windowOf(now, before), lanes: [] }, before, { entries: [], notes: [] }).pods[0];
  expect(rates(at(110, NOW_MS + 5_000), at(100, NOW_MS))).toMatchObject({ outPerS: 2, inPerS: 4 });
  expect(rates(at(3, NOW_MS + 5_000), at(100, NOW_MS))).toMatchObject({ outPerS: 0, inPerS: 0 });
});

test('only rows in sight are drawn, however many there are', () => {
  const sight = { scrollTop: 2_600, height: 400, rowHeight: 26, beyond: 6 };
  expect(rowsInSight(sight, 10_000)).toEqual({ first: 94, end: 122 });
  expect(rowsInSight({ ...sight, scrollTop: 0 }, 10_000)).toEqual({ first: 0, end: 22 });
  expect(rowsInSight(sight, 3)).toEqual({ first: 0, end: 3 });
});
