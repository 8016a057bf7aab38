/** Cells and columns of what a terminal shows. Computes only. */

export const UNKNOWN = '-';

/** The first columns to the left, the others to the right. */
export function aligned(rows: string[][], leftColumns: number): string[] {
  const widths = (rows[0] ?? []).map((_cell, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column < leftColumns ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
}

/** `12,345`. */
export function count(value: number | undefined): string {
  return value === undefined ? UNKNOWN : String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

export function milliseconds(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return value < 10 ? `${value.toFixed(1)} ms` : value < 10_000 ? `${Math.round(value)} ms` : seconds(value);
}

/** `0.3 s`, `72 s`. */
export function seconds(ms: number): string {
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}

export function mebibytes(bytes: number | undefined): string {
  return bytes === undefined ? UNKNOWN : `${Math.round(bytes / 1024 ** 2)} MiB`;
}

/** At most so wide, with a sign where something is missing. */
export function clip(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** `1 pod`, `3 pods`. */
export function counted(number: number, what: string): string {
  return `${count(number)} ${what}${number === 1 ? '' : 's'}`;
}
