/** Marks of workers on a canvas: who sees no colours sees heights, a block that is open, and one that is crossed. */
import type { Theme } from './theme.ts';

const SHAPES = { '·': ['free', 0.2], '▇': ['busy', 0.75], '!': ['silent', 1], x: ['away', 1] } as const;

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function drawMark(context: CanvasRenderingContext2D, mark: string, box: Box, colors: Theme): void {
  const [color, share] = SHAPES[mark as keyof typeof SHAPES] ?? SHAPES['·'];
  const height = box.height * share;
  const y = box.y + box.height - height;
  if (mark === 'x') {
    context.strokeStyle = colors[color];
    context.strokeRect(box.x + 0.5, y + 0.5, box.width - 1, height - 1);
    return;
  }
  context.fillStyle = colors[color];
  context.fillRect(box.x, y, box.width, height);
}

/** A context whose units are CSS pixels, of a canvas that is empty and so large. */
export function contextOf(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}
