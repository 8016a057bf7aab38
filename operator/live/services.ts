/** Services beside each other, those that something limits first: `corelane top` without a name. Computes only. */
import { named } from './explain.ts';
import { findingsOf } from './findings.ts';
import type { Line } from './lanes.ts';
import { type Snapshot, workersOf } from './snapshot.ts';
import { aligned, clip, milliseconds, UNKNOWN } from './text.ts';
import type { Window } from './window.ts';

export interface ServiceNow {
  namespace: string;
  name: string;
  /** What was seen, or why nothing was. */
  seen: { snapshot: Snapshot; window: Window } | { error: string };
}

const NOW = 'NOW';
const NAME_MAX = 40;
/** What is wrong has this much at least, whatever the other columns take. */
const NOW_MIN = 24;

/** @param title the first line */
export function servicesFrame(
  services: ServiceNow[],
  title: string,
  { width, height }: { width: number; height: number },
): Line[] {
  const rows = services.map((service) => ({ ...cells(service), isWell: isWell(service) }));
  const sorted = rows.toSorted((one, other) => Number(one.isWell) - Number(other.isWell));
  const heads = Object.keys(HEADS);
  const table = aligned([heads, ...sorted.map(({ columns }) => columns)], 2);
  const lines = table.map((text, index): Line => {
    const now = index === 0 ? NOW : (sorted[index - 1]?.now ?? '');
    const room = Math.max(NOW_MIN, width - (table[0]?.length ?? 0) - 2);
    const taken = Math.max(...table.map(({ length }) => length)) + 2;
    const style = index === 0 ? 'head' : sorted[index - 1]?.isWell ? 'plain' : 'alarm';
    return { text: clip(`${text.padEnd(taken)}${clip(now, room)}`.trimEnd(), width), style };
  });
  return [{ text: clip(title, width), style: 'title' } as const, ...lines].slice(0, height);
}

const HEADS = { NAMESPACE: 0, NAME: 0, PODS: 0, WORKERS: 0, BUSY: 0, WAIT: 0, 'REQ/S': 0, P99: 0, QUEUE: 0, FAILED: 0 };

function cells({ namespace, name, seen }: ServiceNow): { columns: string[]; now: string } {
  const names = [clip(namespace, NAME_MAX), clip(name, NAME_MAX)];
  if ('error' in seen) return { columns: [...names, ...Array(8).fill(UNKNOWN)], now: seen.error };
  const { snapshot, window } = seen;
  const { pods, podsNotAsked } = snapshot;
  const workers = workersOf(snapshot);
  const ready = pods.filter(({ state }) => state === 'ready').length;
  // Of pods that were not asked nothing is known.
  const sign = podsNotAsked > 0 ? '+' : '';
  const waiting = pods.reduce((sum, { figures }) => sum + (figures?.queue ?? 0), 0);
  const { requests, failed, seconds, p99Ms, queueP99Ms } = window;
  const columns = [
    ...names,
    `${ready}/${pods.length}${podsNotAsked > 0 ? ` of ${pods.length + podsNotAsked}` : ''}`,
    `${workers.length}${sign}`,
    `${workers.filter(({ up, busy }) => up && busy > 0).length}${sign}`,
    `${waiting}${sign}`,
    seconds === undefined ? UNKNOWN : (requests / seconds).toFixed(1),
    milliseconds(p99Ms),
    milliseconds(queueP99Ms),
    requests > 0 ? `${((100 * failed) / Math.max(requests, failed)).toFixed(1)} %` : UNKNOWN,
  ];
  const [first] = findingsOf(snapshot, window);
  return { columns, now: first ? named(`${first.code}: ${first.what}`, snapshot) : '' };
}

function isWell({ seen }: ServiceNow): boolean {
  return !('error' in seen) && findingsOf(seen.snapshot, seen.window).length === 0;
}
