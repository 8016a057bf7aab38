/** How long the frames of a page take while somebody does something with it. */
import type { Page } from 'playwright-core';

/** With each frame: nothing, the next key, or so many pixels further in the list, and in a page that has all rows. */
export type Doing = 'nothing' | 'keys' | 'scroll' | 'all rows';

const STEP_PX = 40;
/** Of 800 rows. */
const ALL_PX = 21_000;

/** Milliseconds from one frame to the next. */
export function frameTimes(page: Page, doing: Doing, measuredMs: number): Promise<number[]> {
  return page.evaluate(measure, { doing, measuredMs, stepPx: STEP_PX, allPx: ALL_PX });
}

/** Runs in the page. */
function measure(options: { doing: Doing; measuredMs: number; stepPx: number; allPx: number }): Promise<number[]> {
  const { doing, measuredMs, stepPx, allPx } = options;
  const list = document.getElementById('lanes') ?? document.body;
  if (doing === 'all rows') list.style.height = `${allPx}px`;
  let step = stepPx;
  const scroll = (element: Element) => {
    const before = element.scrollTop;
    element.scrollTop += step;
    if (element.scrollTop === before) step = -step;
  };
  const acts: Record<Doing, () => void> = {
    nothing: () => {},
    keys: () => document.dispatchEvent(new KeyboardEvent('keydown', { key: 'j' })),
    scroll: () => scroll(list),
    'all rows': () => scroll(document.documentElement),
  };
  return new Promise((resolve) => {
    const times: number[] = [];
    let last = Number.NaN;
    const frame = (now: number) => {
      if (!Number.isNaN(last)) times.push(now - last);
      last = now;
      acts[doing]();
      if (times.reduce((sum, ms) => sum + ms, 0) < measuredMs) requestAnimationFrame(frame);
      else resolve(times);
    };
    requestAnimationFrame(frame);
  });
}
