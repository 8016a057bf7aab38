/** All pods at once, each a block: its workers, what waits there, what it gives to other pods and takes from them. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { PagePod } from '../live/page-frame.ts';
import { contextOf, drawMark } from './draw-marks.ts';
import { theme } from './theme.ts';

const BLOCK = { width: 108, height: 46, gap: 6 };
const STEP = { x: BLOCK.width + BLOCK.gap, y: BLOCK.height + BLOCK.gap };
/** Of a pod of 64 workers the marks become thin. */
const MARK_PX_MAX = 12;
const INNER_PX = BLOCK.width - 12;
const NAME_LENGTH = 16;

interface PodsProps {
  /** Of the service: the names of its pods begin with it. */
  service: string;
  pods: PagePod[];
  onChoose: (pod: string) => void;
}

export function Pods({ service, pods, onChoose }: PodsProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 800));
    observer.observe(box.current as HTMLDivElement);
    return () => observer.disconnect();
  }, []);
  const columns = Math.max(1, Math.floor((width + BLOCK.gap) / STEP.x));
  const colors = theme();
  useLayoutEffect(() => {
    const rows = Math.ceil(pods.length / columns);
    const context = contextOf(canvas.current as HTMLCanvasElement, columns * STEP.x, Math.max(1, rows * STEP.y));
    if (!context) return;
    context.font = '11px system-ui, sans-serif';
    pods.forEach((pod, index) => {
      drawPod(
        context,
        pod,
        shortName(pod.name, service),
        (index % columns) * STEP.x,
        Math.floor(index / columns) * STEP.y,
      );
    });
  }, [pods, columns, colors]);
  const podAt = ({ offsetX, offsetY }: MouseEvent) =>
    pods[Math.floor(offsetY / STEP.y) * columns + Math.min(columns - 1, Math.floor(offsetX / STEP.x))];
  return (
    <div class="pods" ref={box}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={said(pods)}
        onClick={(event) => onChoose(podAt(event)?.name ?? '')}
        onMouseMove={(event) => {
          event.currentTarget.title = titleOf(podAt(event));
        }}
      />
    </div>
  );
}

function shortName(name: string, service: string): string {
  const own = name.startsWith(`${service}-`) ? name.slice(service.length + 1) : name;
  return own.length <= NAME_LENGTH ? own : `…${own.slice(1 - NAME_LENGTH)}`;
}

function drawPod(context: CanvasRenderingContext2D, pod: PagePod, name: string, x: number, y: number): void {
  const colors = theme();
  context.strokeStyle = pod.state === 'ready' ? colors.line : colors.silent;
  context.strokeRect(x + 0.5, y + 0.5, BLOCK.width - 1, BLOCK.height - 1);
  context.fillStyle = colors.dim;
  context.fillText(name, x + 6, y + 12);
  const markWidth = Math.min(MARK_PX_MAX, INNER_PX / Math.max(1, pod.workers.length));
  [...pod.workers].forEach((mark, place) => {
    const box = { x: x + 6 + place * markWidth, y: y + 16, width: Math.max(0.5, markWidth - 1), height: 14 };
    drawMark(context, mark, box, colors);
  });
  context.fillStyle = colors.text;
  if (pod.workers === '') context.fillText(pod.state, x + 6, y + 27);
  // Beyond its own width it is set closer: the next block's figures begin there.
  context.fillText(figuresOf(pod), x + 6, y + 42, INNER_PX);
}

/** Nothing where nothing happens, so that it stands out where something does. */
function figuresOf({ queue, outPerS, inPerS }: PagePod): string {
  const parts = [
    queue > 0 ? `queue ${queue}` : '',
    outPerS > 0 ? `↗${short(outPerS)}` : '',
    inPerS > 0 ? `↘${short(inPerS)}` : '',
  ];
  return parts.filter(Boolean).join(' ');
}

function short(rate: number): string {
  return rate < 10 ? rate.toFixed(1) : `${Math.round(rate)}`;
}

function perSecond(rate: number): string {
  return `${short(rate)}/s`;
}

function titleOf(pod: PagePod | undefined): string {
  if (!pod) return '';
  const { name, revision, state, trouble, outPerS, inPerS, peersKnown } = pod;
  const lines = [
    `${name}${revision ? `, revision ${revision}` : ''}: ${state}`,
    trouble,
    `${perSecond(outPerS)} are rendered by other pods, ${perSecond(inPerS)} come from them`,
    peersKnown === undefined ? '' : `knows ${peersKnown} other pods`,
  ];
  return lines.filter(Boolean).join('\n');
}

function said(pods: PagePod[]): string {
  const ready = pods.filter(({ state }) => state === 'ready').length;
  const waiting = pods.reduce((sum, { queue }) => sum + queue, 0);
  return `${pods.length} pods, ${ready} ready; ${waiting} requests wait`;
}
