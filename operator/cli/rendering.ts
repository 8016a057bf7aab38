/** Options that say what a render is and how many a worker has at a time, for `plan` and `simulate`. */
import type { Concurrency } from '../simulate/concurrency.ts';
import type { Times } from '../simulate/queueing.ts';
import { concurrencyBounds, concurrencyRange, numberOrAuto } from '../src/api/spec/concurrency.ts';
import { numberOf, secondsOf, wholeOf } from './options.ts';
import { UsageError } from './usage.ts';

export const RENDER_OPTIONS = {
  cv: { type: 'string', default: '1' },
  wait: { type: 'string', default: '0s' },
  'wait-cv': { type: 'string', default: '1' },
  concurrency: { type: 'string' },
  max: { type: 'string' },
} as const;

const CV = { min: 0, max: 10 };

/** What one render is. */
export interface RenderTimes {
  renderMeanS: number;
  renderCv: number;
  /** Undefined where it does not wait. */
  wait?: Times | undefined;
}

export function rendersOf(values: { render: string; cv: string; wait: string; 'wait-cv': string }): RenderTimes {
  const meanS = /^0(ms|s|m)?$/.test(values.wait) ? 0 : secondsOf('wait', values.wait);
  const cv = numberOf('wait-cv', values['wait-cv'], CV);
  return {
    renderMeanS: secondsOf('render', values.render),
    renderCv: numberOf('cv', values.cv, CV),
    ...(meanS > 0 && { wait: { meanS, cv } }),
  };
}

/**
 * `--concurrency` and `--max`, or else what a resource has.
 * @throws UsageError when it is none that a RenderService may have
 */
export function concurrencyOf(
  values: { concurrency?: string | undefined; max?: string | undefined },
  resource: { concurrency?: unknown; concurrencyRange?: unknown } = {},
): Concurrency {
  const { concurrency: text, max } = values;
  const wanted =
    text === undefined ? resource.concurrency : text === 'Auto' ? text : numberOf('concurrency', text, ANY);
  const range = max === undefined ? resource.concurrencyRange : { max: wholeOf('max', max, ANY) };
  const parsed = numberOrAuto.safeParse(wanted ?? 1);
  if (!parsed.success) throw new UsageError(`concurrency ${parsed.error.issues[0]?.message}`);
  if (parsed.data !== 'Auto') return parsed.data;
  const bounds = concurrencyRange.safeParse(range);
  if (!bounds.success) throw new UsageError(`--max: ${bounds.error.issues[0]?.message}`);
  return concurrencyBounds({ concurrency: parsed.data, concurrencyRange: bounds.data });
}
/** The schema has the bounds. */
const ANY = { min: 1, max: Number.MAX_SAFE_INTEGER };
