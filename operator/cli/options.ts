/** Values of options, as users write them. */
import { UsageError } from './usage.ts';

const UNIT_S: Record<string, number> = { ms: 0.001, s: 1, m: 60, h: 3600 };

/** Seconds of `80ms`, `0.4s`, `2m`, `1h`. */
export function secondsOf(option: string, text: string): number {
  const [, value, unit] = /^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)$/.exec(text) ?? [];
  const seconds = Number(value) * (UNIT_S[unit ?? ''] ?? Number.NaN);
  if (!(seconds > 0)) throw new UsageError(`--${option} must be a time such as 80ms or 2s, not "${text}"`);
  return seconds;
}

export function numberOf(option: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!(value >= min && value <= max)) {
    throw new UsageError(`--${option} must be a number from ${min} to ${max}, not "${text}"`);
  }
  return value;
}

export function wholeOf(option: string, text: string, bounds: { min: number; max: number }): number {
  const value = numberOf(option, text, bounds);
  if (!Number.isInteger(value)) throw new UsageError(`--${option} must be a whole number, not "${text}"`);
  return value;
}

/** `p99=400ms` as a quantile and a limit. */
export function objectiveOf(text: string): { quantile: number; limitS: number } {
  const [, quantile, limit] = /^p([0-9]{1,2}(?:\.[0-9]+)?)=(.+)$/.exec(text) ?? [];
  if (quantile === undefined || limit === undefined || Number(quantile) === 0) {
    throw new UsageError(`--slo must be such as p99=400ms, not "${text}"`);
  }
  return { quantile: Number(quantile) / 100, limitS: secondsOf('slo', limit) };
}
