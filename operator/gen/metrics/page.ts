/** The tables of docs/metrics.md, from the rows. */
import type { MetricRow } from './row.ts';

/** One line for each metric: its name with its labels, its type, what it means. */
export function metricsTable(rows: readonly MetricRow[]): string {
  const lines = rows.map(({ name, labels, type, meaning }) => {
    const series = labels.length > 0 ? `${name}{${labels.join(',')}}` : name;
    return `| \`${series}\` | ${type} | ${meaning} |`;
  });
  return ['| metric | type | meaning |', '|---|---|---|', ...lines].join('\n');
}
