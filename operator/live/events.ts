/** Events about a service, as the operator has recorded them. Computes only. */
import { clip } from './text.ts';

export interface ServiceEvent {
  /** When it was seen last. */
  atMs: number;
  type: string;
  reason: string;
  message: string;
  /** How often, where the API server has made one of several. */
  count: number;
}

/** What `kubectl get` gives of an Event; whoever may write Events has written it. */
export interface EventObject {
  type?: string | undefined;
  reason?: string | undefined;
  message?: string | undefined;
  count?: number | undefined;
  eventTime?: string | null | undefined;
  firstTimestamp?: string | null | undefined;
  lastTimestamp?: string | null | undefined;
  series?: { count?: number; lastObservedTime?: string } | null | undefined;
  metadata?: { creationTimestamp?: string } | undefined;
}

/** As events.k8s.io has them; Events of the core group may have a message of a megabyte. */
const WORD_LENGTH_MAX = 128;
const MESSAGE_LENGTH_MAX = 1_024;
/** The newest of them that text shows. */
const SHOWN_MAX = 8;
const LINE_LENGTH_MAX = 400;

/** In order, the oldest first; what has no time is left out. */
export function eventsOf(objects: EventObject[]): ServiceEvent[] {
  return objects
    .map(({ type, reason, message, count, series, ...object }) => ({
      atMs: timeOf({ series, ...object }),
      type: clip(type ?? '', WORD_LENGTH_MAX),
      reason: clip(reason ?? '', WORD_LENGTH_MAX),
      message: clip(message ?? '', MESSAGE_LENGTH_MAX),
      count: series?.count ?? count ?? 1,
    }))
    .filter(({ atMs }) => Number.isFinite(atMs))
    .toSorted((one, other) => one.atMs - other.atMs || (one.reason < other.reason ? -1 : 1));
}

function timeOf({ series, lastTimestamp, eventTime, firstTimestamp, metadata }: EventObject): number {
  const text =
    series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? firstTimestamp ?? metadata?.creationTimestamp ?? '';
  return Date.parse(text);
}

/** `12:03:09 Warning ScalingStopped: ...`, below a line that says what they are; nothing where there is none. */
export function eventLines(events: ServiceEvent[]): string[] {
  if (events.length === 0) return [];
  const shown = events.slice(-SHOWN_MAX);
  const left = events.length - shown.length;
  return [
    `Events (UTC, the newest last${left > 0 ? `; ${left} older ones left out` : ''}):`,
    ...shown.map(({ atMs, type, reason, message, count }) => {
      const often = count > 1 ? ` (${count} times)` : '';
      const time = new Date(atMs).toISOString().slice(11, 19);
      return clip(`  ${time} ${type === 'Normal' ? '' : `${type} `}${reason}${often}: ${message}`, LINE_LENGTH_MAX);
    }),
  ];
}
