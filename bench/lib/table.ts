/** Tables for the terminal and for Markdown. Computes only. */

/** A Markdown table whose columns are also aligned in a terminal: the first to the left, the others to the right. */
export function table(head: string[], rows: (string | number)[][]): string {
  const cells = [head, ...rows.map((row) => row.map(String))];
  const widths = head.map((_unused, column) => Math.max(3, ...cells.map((row) => (row[column] ?? '').length)));
  const line = (row: string[]) =>
    `| ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] as number) : cell.padStart(widths[column] as number))).join(' | ')} |`;
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(head), line(rule), ...cells.slice(1).map(line)].join('\n');
}

/** A figure with at most one digit behind the point; `-` where there is no value. */
export function ms(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return '-';
  return value < 100 && !Number.isInteger(value) ? value.toFixed(1) : String(Math.round(value));
}

export function ratio(value: number): string {
  return Number.isNaN(value) ? '-' : value.toFixed(2);
}
