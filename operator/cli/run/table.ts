/** The tables that `corelane run` shows, at most 100 columns wide. Computes only. */

/** One worker at one moment. */
export interface WorkerRow {
  pod: string;
  worker: string;
  state: string;
  /** Requests it has rendered since it was started. */
  requests: number | undefined;
  busy: number;
  restarts: number | undefined;
  memoryBytes: number | undefined;
  /** Renders of the last seconds. */
  p50Ms: number | undefined;
  p99Ms: number | undefined;
}

const UNKNOWN = '-';

export function workersTable(rows: WorkerRow[]): string[] {
  return aligned(
    [
      ['POD', 'WORKER', 'STATE', 'REQUESTS', 'BUSY', 'RESTARTS', 'MEMORY', 'P50', 'P99'],
      ...rows.map((row) => [
        clip(row.pod, 24),
        row.worker,
        clip(row.state, 20),
        count(row.requests),
        count(row.busy),
        count(row.restarts),
        row.memoryBytes === undefined ? UNKNOWN : `${Math.round(row.memoryBytes / 1024 ** 2)} MiB`,
        milliseconds(row.p50Ms),
        milliseconds(row.p99Ms),
      ]),
    ],
    3,
  );
}

/** What a fault cost whom. */
export interface FaultRow {
  fault: string;
  own: string;
  othersLost: number;
  backMs: number | undefined;
}

export function faultsTable(rows: FaultRow[]): string[] {
  return aligned(
    [
      ['FAULT', 'ITS OWN REQUEST GOT', 'OTHERS LOST', 'BACK AFTER'],
      ...rows.map(({ fault, own, othersLost, backMs }) => [
        clip(fault, 36),
        clip(own, 34),
        String(othersLost),
        backMs === undefined ? UNKNOWN : seconds(backMs),
      ]),
    ],
    2,
  );
}

/** The first columns to the left, the others to the right. */
function aligned(rows: string[][], leftColumns: number): string[] {
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

function count(value: number | undefined): string {
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

function clip(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}
