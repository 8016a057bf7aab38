/** The hours in which services may get another data plane: `22:00-04:00`, `Mon-Fri 22:00-04:00 Europe/Berlin`. */

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const DAY = `(?:${DAYS.join('|')})`;
const TIME = '((?:[01][0-9]|2[0-3]):[0-5][0-9])';
const WINDOW = new RegExp(`^(?:(${DAY})(?:-(${DAY}))? )?${TIME}-${TIME}(?: ([A-Za-z0-9_+/-]+))?$`);

export interface Window {
  /** Days on which it opens, as numbers from Sunday on. */
  days: number[];
  /** Minutes of the day. It closes on the next day if that is not the later one. */
  opens: number;
  closes: number;
  timeZone: string;
}

/**
 * @returns undefined for the empty text: no hours are excluded
 * @throws RangeError when the text is no window, or names no time zone
 */
export function parseWindow(text: string): Window | undefined {
  if (text === '') return undefined;
  const [, first, last = first, opens, closes, timeZone = 'UTC'] = WINDOW.exec(text) ?? [];
  if (!opens || !closes) throw new RangeError(`"${text}" is no window such as "Mon-Fri 22:00-04:00 Europe/Berlin"`);
  // Throws for a zone that there is not.
  new Intl.DateTimeFormat('en', { timeZone });
  return { days: daysOf(first, last), opens: minutes(opens), closes: minutes(closes), timeZone };
}

function daysOf(first: string | undefined, last: string | undefined): number[] {
  if (first === undefined || last === undefined) return DAYS.map((_day, index) => index);
  const begin = DAYS.indexOf(first);
  const count = ((DAYS.indexOf(last) - begin + 7) % 7) + 1;
  return Array.from({ length: count }, (_unused, index) => (begin + index) % 7);
}

function minutes(time: string): number {
  const [hours, rest] = time.split(':').map(Number) as [number, number];
  return hours * 60 + rest;
}

/** Whether it is open at a time. */
export function isOpen({ days, opens, closes, timeZone }: Window, nowMs: number): boolean {
  const format = new Intl.DateTimeFormat('en', {
    timeZone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  const parts = new Map(format.formatToParts(nowMs).map(({ type, value }) => [type, value]));
  const day = DAYS.indexOf(parts.get('weekday') ?? '');
  const now = minutes(`${parts.get('hour')}:${parts.get('minute')}`);
  if (opens < closes) return days.includes(day) && opens <= now && now < closes;
  return now >= opens ? days.includes(day) : now < closes && days.includes((day + 6) % 7);
}
