/** Rules between fields of `spec.objectives`; see rules.ts. */
import { durationMs } from './scalars.ts';
import { isDuration, type SpecRule } from './spec-rule.ts';

const QUANTILES = ['p50', 'p90', 'p95', 'p99'] as const;

/** CEL: a list of one time, or none where it is not given or cannot be read. */
function timeOf(quantile: string): string {
  const field = `self.objectives.latency.${quantile}`;
  return `(has(${field}) && ${isDuration(field)} ? [duration(${field})] : [])`;
}

export const objectiveRules: SpecRule[] = [
  {
    path: ['objectives', 'latency'],
    message: 'no time must be longer than that of a larger share of the requests: p50 <= p90 <= p95 <= p99',
    cel: `!has(self.objectives) || !has(self.objectives.latency) || (${QUANTILES.map(timeOf).join(' + ')}).isSorted()`,
    holds: ({ objectives: { latency = {} } = {} }) => {
      const times = QUANTILES.flatMap((quantile) => latency[quantile] ?? []).map(durationMs);
      return times.every((ms, index) => index === 0 || ms >= (times[index - 1] as number));
    },
  },
];
