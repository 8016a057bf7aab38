/** The page of `corelane dashboard`: what it is told, keys, and everything on one screen. */
import 'uplot/dist/uPlot.min.css';
import './page.css';
import { render } from 'preact';
import { ORDERS } from '../live/lanes.ts';
import type { PageFrame, PageLane } from '../live/page-frame.ts';
import type { WholeStall } from '../live/source.ts';
import { Chosen } from './chosen.tsx';
import { Curves } from './curves.tsx';
import { Help } from './help.tsx';
import { Lanes } from './lanes.tsx';
import { Pods } from './pods.tsx';
import { choose, chosenIndex, indexOf, NOTHING, nextOrder, type State, shownLanes, step, withFrame } from './state.ts';
import { onTheme } from './theme.ts';
import { Revisions, TimeLine } from './time-line.tsx';

/** Rows of a page of the list. */
const PAGE = 15;
const STEPS: Record<string, number> = {
  ...{ j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE },
  ...{ Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY },
};
const PROFILE_SECONDS = 10;

let state: State = NOTHING;
let isDrawing = false;

/** However many changes there are, it is drawn once for each frame of the screen. */
function change(next: State): void {
  state = next;
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    draw();
  });
}

function draw(): void {
  const { frame } = state;
  document.title = frame ? `${frame.name} - corelane` : 'corelane';
  render(<Page state={state} />, document.getElementById('page') as HTMLElement);
}

function Page({ state }: { state: State }) {
  const { frame, points, entries, trouble, order, filter, chosen } = state;
  const lanes = shownLanes(state);
  const lane = lanes[chosenIndex(lanes, chosen)];
  return (
    <>
      <header>
        <h1>{frame ? nameOf(frame) : 'corelane'}</h1>
        <p class={trouble ? 'alarm' : 'dim'} role="status">
          {trouble || 'live'}
        </p>
        <button type="button" onClick={() => change({ ...state, isHelpOpen: true })}>
          Keys <kbd>?</kbd>
        </button>
      </header>
      <main>
        <Explanation lines={frame?.lines ?? []} name={frame ? nameOf(frame) : ''} />
        <Revisions revisions={frame?.revisions ?? []} />
        <Curves points={points} entries={entries} />
        <section aria-label="pods">
          <h2>Pods</h2>
          <Pods
            service={frame?.name ?? ''}
            pods={frame?.pods ?? []}
            onChoose={(pod) => change({ ...state, filter: pod })}
          />
        </section>
        <section aria-label="workers">
          <div class="bar">
            <h2>Workers</h2>
            <label>
              find{' '}
              <input
                id="filter"
                type="search"
                value={filter}
                onInput={(event) => change({ ...state, filter: event.currentTarget.value })}
              />
            </label>
            <label>
              order{' '}
              <select
                value={order}
                onChange={(event) => change({ ...state, order: event.currentTarget.value as State['order'] })}
              >
                {ORDERS.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
            <span class="dim">
              {lanes.length} of {frame?.lanes.length ?? 0}
            </span>
          </div>
          <Lanes lanes={lanes} chosen={chosen} onChoose={(one) => change(choose(state, one))} />
        </section>
        <div class="below">
          <Chosen
            lane={lane}
            state={state}
            onStack={() => lane && showStack(lane)}
            onProfile={() => lane && profile(lane)}
          />
          <TimeLine entries={entries} notes={frame?.notes ?? []} />
        </div>
      </main>
      <Help isOpen={state.isHelpOpen} onClose={() => change({ ...state, isHelpOpen: false })} />
    </>
  );
}

function nameOf({ namespace, name }: PageFrame): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** What `corelane explain` says; its first line is the figures. The name stands above. */
function Explanation({ lines, name }: { lines: string[]; name: string }) {
  return (
    <div class="explanation" aria-live="off">
      {lines.map((whole) => {
        const line = whole.startsWith(`${name}: `) ? whole.slice(name.length + 2) : whole;
        const [, label = '', text = line] = /^(Now|Next|Also|Scaling|Not known): (.*)$/s.exec(line) ?? [];
        return (
          <p key={line} class={label.toLowerCase().replace(' ', '-')}>
            {label && <b>{label}: </b>}
            {text}
          </p>
        );
      })}
    </div>
  );
}

/** @throws Error with what the listener says */
async function asked(path: string, lane: PageLane, method = 'GET') {
  const query = new URLSearchParams({ pod: lane.pod, worker: String(indexOf(lane)) });
  const response = await fetch(`${path}?${query}`, { method });
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

async function showStack(lane: PageLane): Promise<void> {
  const who = `${lane.worker.name} of ${lane.pod}`;
  change({ ...choose(state, lane), stack: [], message: `asking for the last stack of ${who}` });
  try {
    const last = ((await asked('stalls', lane)) as WholeStall[]).at(-1);
    const message = last
      ? `${who} stuck ${last.seconds} s at ${last.time} in ${last.in}; requests: ${last.requests.join(', ') || 'none'}`
      : `${who} has not been stuck since its supervisor began`;
    change({ ...state, message, stack: (last?.stack ?? []).map((one) => `at ${one}`) });
  } catch (error) {
    change({ ...state, message: `no stack of ${who}: ${(error as Error).message}` });
  }
}

async function profile(lane: PageLane): Promise<void> {
  const who = `${lane.worker.name} of ${lane.pod}`;
  change({ ...choose(state, lane), message: `profiling ${who} for ${PROFILE_SECONDS} s` });
  try {
    const made = await asked('profiles', lane, 'POST');
    change({ ...state, message: `profile of ${who}:`, profiles: [made, ...state.profiles] });
  } catch (error) {
    change({ ...state, message: `no profile of ${who}: ${(error as Error).message}` });
  }
}

function onKey(event: KeyboardEvent): void {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if (ctrlKey || metaKey || altKey || state.isHelpOpen) return;
  const filter = document.getElementById('filter') as HTMLInputElement;
  if (target === filter) {
    if (key === 'Escape' || key === 'Enter') document.getElementById('lanes')?.focus();
    if (key === 'Escape') change({ ...state, filter: '' });
    return;
  }
  if (target instanceof HTMLSelectElement) return;
  if (!act(key, filter)) return;
  event.preventDefault();
}

/** @returns whether the key does something here */
function act(key: string, filter: HTMLInputElement): boolean {
  const by = STEPS[key];
  const lanes = shownLanes(state);
  const lane = lanes[chosenIndex(lanes, state.chosen)];
  if (by !== undefined) change(step(state, by));
  else if (key === 'o') change({ ...state, order: nextOrder(state.order) });
  else if (key === '/') filter.focus();
  else if (key === '?') change({ ...state, isHelpOpen: true });
  else if (key === 's' && lane) void showStack(lane);
  else if (key === 'p' && lane) void profile(lane);
  else if (key === 'Escape') change({ ...state, filter: '' });
  else return false;
  return true;
}

/** The browser connects again by itself; the listener then tells everything anew. */
function listen(): void {
  const told = new EventSource('told');
  told.addEventListener('history', ({ data }) => change({ ...state, ...JSON.parse(data), trouble: '' }));
  told.addEventListener('frame', ({ data }) => change(withFrame(state, JSON.parse(data))));
  told.addEventListener('trouble', ({ data }) => change({ ...state, trouble: JSON.parse(data).message }));
  told.addEventListener('error', () => change({ ...state, trouble: 'corelane does not answer: was it ended?' }));
}

onTheme(() => change({ ...state }));
document.addEventListener('keydown', onKey);
draw();
listen();
