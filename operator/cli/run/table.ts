/** The tables that `corelane run` shows, at most 100 columns wide. Computes only. */
import { aligned, clip, count, mebibytes, milliseconds, seconds, UNKNOWN } from '../../live/text.ts';

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
        mebibytes(row.memoryBytes),
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
