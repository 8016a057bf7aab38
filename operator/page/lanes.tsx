/** The workers as lanes. Only rows in sight are there: two thousand workers cost what thirty do. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { trouble } from '../live/lanes.ts';
import type { PageLane } from '../live/page-frame.ts';
import { count, mebibytes, seconds } from '../live/text.ts';
import { stateOf } from '../live/worker-state.ts';
import { contextOf, drawMark } from './draw-marks.ts';
import { chosenIndex, keyOf, rowsInSight } from './state.ts';
import { theme } from './theme.ts';

const ROW_PX = 26;
/** Rows above and below those in sight. */
const BEYOND = 6;
const MARKS = 60;
const MARK_PX = 3;
const LANE_PX = 14;
const FIGURES = ['for', 'cpu', 'heap', 'requests', 'restarts'];

interface LanesProps {
  lanes: PageLane[];
  chosen: string;
  onChoose: (lane: PageLane) => void;
}

export function Lanes({ lanes, chosen, onChoose }: LanesProps) {
  const list = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ scrollTop: 0, height: 400 });
  const index = chosenIndex(lanes, chosen);
  useEffect(() => {
    const element = list.current as HTMLDivElement;
    const look = () => setSight({ scrollTop: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, []);
  useLayoutEffect(() => {
    if (chosen !== '') intoSight(list.current as HTMLDivElement, index);
  }, [chosen]);
  const { first, end } = rowsInSight({ ...sight, rowHeight: ROW_PX, beyond: BEYOND }, lanes.length);
  return (
    <div class="lanes">
      <div class="row head" aria-hidden="true">
        {['', 'pod', 'worker', 'state', 'lane', ...FIGURES, 'now'].map((name) => (
          <span key={name} class={FIGURES.includes(name) ? 'number' : ''}>
            {name}
          </span>
        ))}
      </div>
      <div
        class="list"
        id="lanes"
        ref={list}
        role="listbox"
        tabIndex={0}
        aria-label="workers"
        aria-activedescendant={lanes.length > 0 ? `lane-${index}` : undefined}
      >
        <div class="all" style={{ height: `${lanes.length * ROW_PX}px` }}>
          {lanes.slice(first, end).map((lane, offset) => (
            <Row
              key={keyOf(lane)}
              lane={lane}
              index={first + offset}
              of={lanes.length}
              isChosen={first + offset === index}
              onChoose={onChoose}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

function intoSight(list: HTMLDivElement, index: number): void {
  const [top, bottom] = [index * ROW_PX, (index + 1) * ROW_PX];
  if (top < list.scrollTop) list.scrollTop = top;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
}

interface RowProps {
  lane: PageLane;
  index: number;
  of: number;
  isChosen: boolean;
  onChoose: (lane: PageLane) => void;
}

function Row({ lane, index, of, isChosen, onChoose }: RowProps) {
  const { pod, worker, requests, cpu } = lane;
  const [oldest] = requests;
  const others = requests.length > 1 ? `+${requests.length - 1} ` : '';
  const level = trouble({ ...worker, renders: new Map() });
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the page listens to keys, the list has the focus
    <div
      class={`row level-${level}${isChosen ? ' chosen' : ''}`}
      id={`lane-${index}`}
      role="option"
      tabIndex={-1}
      aria-selected={isChosen}
      aria-posinset={index + 1}
      aria-setsize={of}
      style={{ transform: `translateY(${index * ROW_PX}px)` }}
      onClick={() => onChoose(lane)}
    >
      <span class={`dot dot-${level}`} />
      <span title={pod}>{pod}</span>
      <span>{worker.name.slice(worker.name.lastIndexOf('-') + 1)}</span>
      <span>{stateOf({ ...worker, renders: new Map() })}</span>
      <Marks marks={lane.marks} />
      <span class="number">{oldest ? seconds(oldest.ms) : worker.busy > 0 ? '?' : ''}</span>
      <span class="number">{cpu === undefined ? '' : `${Math.round(100 * cpu)} %`}</span>
      <span class="number">{worker.oldSpaceBytes === undefined ? '' : mebibytes(worker.oldSpaceBytes)}</span>
      <span class="number">{count(worker.requests)}</span>
      <span class="number">{count(worker.restarts)}</span>
      <span class="now" title={oldest?.what}>
        {others}
        {oldest?.what ?? stuckIn(lane)}
      </span>
    </div>
  );
}

/** What it was stuck in last: the source line. */
function stuckIn({ worker: { lastStall } }: PageLane): string {
  return lastStall ? `was stuck in ${lastStall.in}` : '';
}

/** Drawn anew where it has changed only: somebody scrolls sixty times a second. */
function Marks({ marks }: { marks: string }) {
  const colors = theme();
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = contextOf(canvas.current as HTMLCanvasElement, MARKS * MARK_PX, LANE_PX);
    if (!context) return;
    const begin = (MARKS - marks.length) * MARK_PX;
    [...marks].forEach((mark, place) => {
      drawMark(context, mark, { x: begin + place * MARK_PX, y: 0, width: MARK_PX - 0.5, height: LANE_PX }, colors);
    });
  }, [marks, colors]);
  return (
    <span aria-hidden="true">
      <canvas ref={canvas} tabIndex={-1} />
    </span>
  );
}
