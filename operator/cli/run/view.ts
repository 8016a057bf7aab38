/** What stands below the log: who serves, how the load fares, what the faults cost. Computes only. */
import { milliseconds } from '../../live/text.ts';
import { bold, dim } from './screen.ts';
import { type FaultRow, faultsTable, type WorkerRow, workersTable } from './table.ts';

/** Shown while workers are taken and idle. */
export const IDLE_WORKERS = 'workers are taken, but idle: renders wait for something else. Set concurrency: Auto';
/** Faults that are shown at a time: one of each. */
const FAULTS_SHOWN = 7;
const KEYS = '[b] browser [d] dashboard [k] kill a worker [f] freeze [l] loop [r] rollout [p] profile [q] quit';

/** Of the requests that `corelane run` sends itself. */
export interface LoadFigures {
  perSecond: number;
  ok: number;
  failed: number;
  /** What the last one that failed got. */
  lastFailure: string | undefined;
  skipped: number;
  p50Ms: number | undefined;
  p99Ms: number | undefined;
}

export interface View {
  /** URL, name, engine, what is being done. */
  head: string[];
  rows: WorkerRow[];
  queue: number;
  refused: number;
  load: LoadFigures | undefined;
  faults: FaultRow[];
  /** Whether `concurrency` limits the service at the moment. */
  areWorkersIdle: boolean;
}

/** @param isTerminal with colours, and keys */
export function viewLines(
  { head, rows, queue, refused, load, faults, areWorkersIdle }: View,
  isTerminal: boolean,
): string[] {
  const title = head.filter(Boolean).join(' · ');
  const status = [`queue ${queue}`, `refused ${refused}`, ...(load ? [loadLine(load)] : [])];
  return [
    '',
    isTerminal ? bold(title) : title,
    ...workersTable(rows),
    status.join(' · '),
    ...(areWorkersIdle ? [IDLE_WORKERS] : []),
    ...(faults.length > 0 ? ['', ...faultsTable(faults.slice(-FAULTS_SHOWN))] : []),
    ...(isTerminal ? [dim(KEYS)] : []),
  ];
}

export function loadLine({ perSecond, ok, failed, lastFailure, skipped, p50Ms, p99Ms }: LoadFigures): string {
  const parts = [
    `load ${perSecond}/s: ok ${ok} failed ${failed}`,
    failed > 0 ? `(last: ${lastFailure})` : '',
    `p50 ${milliseconds(p50Ms)} p99 ${milliseconds(p99Ms)}`,
    skipped > 0 ? `not sent ${skipped}` : '',
  ];
  return parts.filter(Boolean).join(' ');
}
