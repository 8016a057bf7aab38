/** `corelane top` without a name: a table of all services, once, or on a terminal again and again. */

import type { Line } from '../../live/lanes.ts';
import { serviceReport } from '../../live/report.ts';
import { servicesFrame } from '../../live/services.ts';
import { counted } from '../../live/text.ts';
import { FullScreen } from '../full-screen.ts';
import { json } from '../json.ts';
import { readKeys } from '../run/keys.ts';
import { SIGNALS } from '../signals.ts';
import { visible } from '../visible.ts';
import type { AllServices } from './all-services.ts';
import { drawn } from './drawn.ts';

const KEYS: Line = { text: '[q] quit · corelane top NAME shows workers', style: 'dim' };
/** Without a terminal nobody cuts lines. */
const SIZE = { width: 200, height: Number.MAX_SAFE_INTEGER };

interface Size {
  width: number;
  height: number;
}

/** @param secondsBetween two looks, since rates need two; @throws Error that says what is missing */
export async function printServices(all: AllServices, asJson: boolean, secondsBetween: number): Promise<void> {
  await all.look();
  await new Promise((resolve) => setTimeout(resolve, 1000 * secondsBetween));
  const { services, leftOut } = await all.look();
  if (asJson) {
    const reports = services.map(({ seen, ...names }) =>
      'error' in seen ? { ...names, error: seen.error } : { ...names, ...serviceReport(seen.snapshot, seen.window) },
    );
    console.log(json({ services: reports, leftOut }));
    return;
  }
  for (const { text } of servicesFrame(services, title(all, services.length, leftOut), SIZE))
    console.log(visible(text));
}

function title(all: AllServices, services: number, leftOut: number): string {
  const left = leftOut > 0 ? `, ${leftOut} more are left out` : '';
  return `${all.where}: ${services === 0 ? 'there is no RenderService' : counted(services, 'RenderService')}${left}`;
}

/** Until somebody presses q, or a signal comes. @throws Error when the first look fails */
export async function watchServices(all: AllServices, intervalMs: number): Promise<void> {
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
  const onSignal = () => end();
  for (const signal of SIGNALS) process.on(signal, onSignal);
  let seen = await all.look();
  let message = '';
  let timer: NodeJS.Timeout | undefined;
  let isEnding = false;
  const lines = ({ width, height }: Size): Line[] => {
    const table = servicesFrame(seen.services, title(all, seen.services.length, seen.leftOut), {
      width,
      height: Math.max(1, height - 1),
    });
    return [...table, message ? { text: message.slice(0, width), style: 'dim' } : KEYS];
  };
  const screen = new FullScreen(process.stdout, () => draw());
  const draw = () => screen.draw(lines(screen.size).map(drawn));
  const lookAgain = async () => {
    try {
      seen = await all.look();
      message = '';
    } catch (error) {
      // The last table stays.
      message = (error as Error).message;
    }
    if (isEnding) return;
    draw();
    timer = setTimeout(lookAgain, intervalMs);
  };
  screen.open();
  const unread = readKeys(process.stdin, (key) => key === 'q' && end());
  draw();
  timer = setTimeout(lookAgain, intervalMs);
  await isOver;
  isEnding = true;
  clearTimeout(timer);
  unread();
  screen.close();
  for (const signal of SIGNALS) process.off(signal, onSignal);
}
