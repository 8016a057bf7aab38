/** Traffic over a day: requests per second, one number a minute. */
import { Random } from './random.ts';

const STEP_S = 60;
const DAY_STEPS = 24 * 60;
/** A week by the minute; more would not be read by anybody. */
const STEPS_MAX = 7 * DAY_STEPS;

export interface Trace {
  stepS: number;
  rps: number[];
}

export interface FlashCrowd {
  /** Step at which it begins. */
  at: number;
  /** Times the traffic of that moment. */
  factor: number;
  minutes: number;
}

/** Two minutes from ordinary traffic to the peak, as after a push message or a television spot. */
const FLASH_RAMP_STEPS = 2;

/** When and how the generated day's flash crowd comes. */
const DAY_FLASH: FlashCrowd = { at: 14 * 60, factor: 3, minutes: 15 };

/**
 * A day of a shop: little at night, a peak at noon, a larger one at 20:30, and a flash crowd at 14:00; a little noise.
 * @param peakRps traffic at the evening peak
 */
export function generatedDay(peakRps: number, seed: number): Trace {
  const random = new Random(seed);
  const hump = (hour: number, at: number, width: number) => Math.exp(-(((hour - at) / width) ** 2));
  let noise = 0;
  const rps = Array.from({ length: DAY_STEPS }, (_unused, step) => {
    const hour = step / 60;
    const base =
      0.1 + 0.55 * hump(hour, 12, 3) + 0.8 * (hump(hour, 20.5, 3) + hump(hour + 24, 20.5, 3)) + 0.2 * hump(hour, 16, 4);
    noise = 0.9 * noise + 0.015 * random.normal();
    return Math.max(0, base * (1 + noise) * flashFactor(step, DAY_FLASH));
  });
  const evening = Math.max(...rps.slice(18 * 60));
  return { stepS: STEP_S, rps: rps.map((value) => (value * peakRps) / evening) };
}

function flashFactor(step: number, { at, factor, minutes }: FlashCrowd): number {
  const since = step - at;
  if (since < 0) return 1;
  if (since < FLASH_RAMP_STEPS) return 1 + ((factor - 1) * (since + 1)) / FLASH_RAMP_STEPS;
  if (since < minutes) return factor;
  return 1 + (factor - 1) * Math.exp(-(since - minutes) / 6);
}

/**
 * A trace of your own: lines of `seconds,rps`, or of `rps` alone, one a minute; a line of words is a heading.
 * @throws Error that names the line which is wrong
 */
export function parseTrace(csv: string): Trace {
  const rows = csv
    .split('\n')
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line, number }) => line !== '' && !line.startsWith('#') && !(number === 1 && /[a-z]/i.test(line)))
    .map(({ line, number }) => {
      const cells = line.split(/[,;\t]/).map((cell) => Number(cell.trim() === '' ? Number.NaN : cell));
      const bad = cells.length > 2 || cells.some((cell) => !Number.isFinite(cell) || cell < 0);
      if (bad) throw new Error(`line ${number} of the trace is no "seconds,rps": ${line.slice(0, 80)}`);
      return cells;
    });
  if (rows.length < 2) throw new Error('the trace has fewer than two lines of numbers');
  if (rows.length > STEPS_MAX) throw new Error(`the trace has more than ${STEPS_MAX} lines`);
  const rps = rows.map((cells) => cells.at(-1) as number);
  const [first, second] = rows as [number[], number[]];
  const stepS = first.length === 2 ? (second[0] as number) - (first[0] as number) : STEP_S;
  rows.forEach((cells, index) => {
    const expected = (first[0] as number) + index * stepS;
    if (cells.length === 2 && (stepS <= 0 || Math.abs((cells[0] as number) - expected) > 1e-6)) {
      throw new Error(`the times of the trace must be evenly spaced: line ${index + 1} of the numbers is not`);
    }
  });
  return { stepS, rps };
}

/** Traffic at a time; the last value lasts. */
export function rateAt({ stepS, rps }: Trace, atS: number): number {
  return rps[Math.min(Math.floor(atS / stepS), rps.length - 1)] as number;
}

/** The most traffic in a span of time. */
export function peakBetween({ stepS, rps }: Trace, fromS: number, toS: number): number {
  const from = Math.max(0, Math.floor(fromS / stepS));
  const to = Math.min(rps.length - 1, Math.floor(toS / stepS));
  let most = 0;
  for (let step = from; step <= to; step += 1) most = Math.max(most, rps[step] as number);
  return most;
}

/** Where traffic grows most within five minutes, and the most that it comes to in the quarter of an hour after. */
export function steepestRise(trace: Trace): { atS: number; rps: number } {
  const { stepS, rps } = trace;
  const span = Math.max(1, Math.round(300 / stepS));
  let at = 0;
  let most = Number.NEGATIVE_INFINITY;
  for (let step = 0; step + span < rps.length; step += 1) {
    const rise = (rps[step + span] as number) - (rps[step] as number);
    if (rise > most) [most, at] = [rise, step];
  }
  // The rise begins with the last step of ordinary traffic.
  while (
    at + 1 < rps.length &&
    (rps[at + 1] as number) < (rps[at] as number) * 1.2 &&
    at * stepS < durationS(trace) - 300
  )
    at += 1;
  const atS = (at + 1) * stepS;
  return { atS, rps: peakBetween(trace, atS, atS + 900) };
}

export function durationS({ stepS, rps }: Trace): number {
  return stepS * rps.length;
}
