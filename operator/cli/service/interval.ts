/** Option `--interval` of the commands that look again and again. */
import { secondsOf } from '../options.ts';
import { UsageError } from '../usage.ts';

const INTERVAL_MIN_S = 1;

export const INTERVAL_OPTION = { interval: { type: 'string', default: '2s' } } as const;

export const INTERVAL_HELP = `
      --interval T    time between two looks, ${INTERVAL_MIN_S}s or more (2s)`.slice(1);

/** Seconds between two looks. @throws UsageError for less than a second, or what is no time */
export function intervalSeconds(text: string): number {
  const seconds = secondsOf('interval', text);
  if (seconds < INTERVAL_MIN_S) throw new UsageError(`--interval must be ${INTERVAL_MIN_S}s or more, not "${text}"`);
  return seconds;
}
