/**
 * What limits a service now, in at most ten lines: a snapshot and what came before it -> text. Computes only.
 * docs/explain.md shows each situation.
 */
import { type Finding, findingsOf } from './findings.ts';
import type { Snapshot } from './snapshot.ts';
import { workersOf } from './snapshot.ts';
import { counted, milliseconds } from './text.ts';
import type { Window } from './window.ts';
import { isSilent } from './worker-state.ts';

const LINES_MAX = 10;
/** What else there is; each has two lines at most. */
const ALSO_MAX = 3;
/** The scheduler has a line for each node. */
const LINE_LENGTH_MAX = 700;

/** @param window what happened between an earlier look and this one */
export function explain(snapshot: Snapshot, window: Window): string[] {
  const [first, ...others] = findingsOf(snapshot, window);
  const lines = [
    headline(snapshot, window),
    fleetLine(snapshot, window),
    `Now: ${first ? first.what : 'nothing limits it: requests find a free worker, and no fault is known'}`,
    ...(first?.next ? [`Next: ${first.next}`] : []),
    ...others.slice(0, ALSO_MAX).map(alsoLine),
    ...(others.length > ALSO_MAX
      ? [
          `Also: ${others
            .slice(ALSO_MAX)
            .map(({ code }) => code)
            .join(', ')}`,
        ]
      : []),
    ...scalingLine(snapshot),
    ...unknownLine(snapshot),
  ];
  return lines.slice(0, LINES_MAX).map((line) => named(line, snapshot).slice(0, LINE_LENGTH_MAX));
}

/** Commands are such as can be copied. */
export function named(line: string, { name, namespace }: Snapshot): string {
  const subject = namespace === undefined ? name : `${name} -n ${namespace}`;
  return line.replace(
    /\bcorelane (profile|logs|top|plan|check) NAME\b/g,
    (_all, verb) => `corelane ${verb} ${subject}`,
  );
}

function alsoLine({ what, next }: Finding): string {
  return `Also: ${what}${next ? `. Next: ${next}` : ''}`;
}

/** `shop/storefront: p99 420 ms (p99 of the queue 310 ms, of renders 130 ms); 240 requests/s, 2.1 % failed: ...`. */
function headline({ namespace, name }: Snapshot, window: Window): string {
  const { p99Ms, queueP99Ms, renderP99Ms, requests, failed } = window;
  const split = `p99 of the queue ${milliseconds(queueP99Ms)}, of renders ${milliseconds(renderP99Ms)}`;
  const times = p99Ms === undefined ? 'no request has been answered' : `p99 ${milliseconds(p99Ms)} (${split})`;
  const parts = [times, rate(window), failed > 0 ? `${failedShare(failed, requests)}: ${reasons(window)}` : ''];
  return `${namespace === undefined ? name : `${namespace}/${name}`}: ${parts.filter(Boolean).join('; ')}`;
}

function rate({ requests, seconds }: Window): string {
  if (seconds === undefined) return `${counted(requests, 'request')} since the pods began`;
  const perSecond = requests / seconds;
  return `${perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond)} requests/s over ${Math.round(seconds)} s`;
}

function failedShare(failed: number, requests: number): string {
  const percent = (100 * failed) / Math.max(requests, failed);
  return `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} % failed`;
}

function reasons({ failures }: Window): string {
  const sorted = [...failures].sort(([, one], [, other]) => other - one);
  return sorted
    .slice(0, 3)
    .map(([reason, count]) => `${reason} ${count}`)
    .join(', ');
}

/** `12 workers in 6 of 8 pods: 11 busy, 1 silent; 38 requests wait, 9 % are rendered by other pods`. */
function fleetLine(snapshot: Snapshot, { handedOut, rendered }: Window): string {
  const workers = workersOf(snapshot);
  const asked = snapshot.pods.filter(({ figures }) => figures);
  const number = (is: (worker: (typeof workers)[number]) => unknown) => workers.filter(is).length;
  const states = [
    `${number(({ up, busy }) => up && busy > 0)} busy`,
    ...[`${number(({ up }) => !up)} down`, `${number(isSilent)} silent`].filter((text) => !text.startsWith('0 ')),
  ];
  const all = snapshot.pods.length + snapshot.podsNotAsked;
  const of = asked.length === all ? counted(all, 'pod') : `${asked.length} of ${counted(all, 'pod')}`;
  const waiting = asked.reduce((sum, { figures }) => sum + (figures?.queue ?? 0), 0);
  const share = rendered > 0 && handedOut > 0 ? Math.max(1, Math.round((100 * handedOut) / rendered)) : 0;
  const handed = share > 0 ? `, ${Math.min(100, share)} % are rendered by other pods` : '';
  return `${counted(workers.length, 'worker')} in ${of}: ${states.join(', ')}; ${counted(waiting, 'request')} ${waiting === 1 ? 'waits' : 'wait'}${handed}`;
}

function scalingLine({ status }: Snapshot): string[] {
  const { lastDecision, utilizationPercent } = status.scaling ?? {};
  if (!lastDecision) return [];
  const { from, to, time, reason, message } = lastDecision;
  const now = utilizationPercent === undefined ? '' : `; now ${utilizationPercent} %`;
  return [`Scaling: ${from} -> ${to} pods at ${time.slice(0, 16).replace('T', ' ')} UTC, ${reason}: ${message}${now}`];
}

/** What was not seen is no sign of health. */
function unknownLine({ pods, podsNotAsked, status, generation }: Snapshot): string[] {
  const silent = pods.filter(({ silence }) => silence !== undefined);
  const parts = [
    silent.length > 0
      ? `${counted(silent.length, 'pod')} did not tell (${silent[0]?.name}: ${silent[0]?.silence})`
      : '',
    podsNotAsked > 0 ? `${counted(podsNotAsked, 'pod')} not asked` : '',
    generation !== undefined && (status.observedGeneration ?? 0) < generation
      ? 'the operator has not looked at the latest spec'
      : '',
  ];
  return parts.some(Boolean) ? [`Not known: ${parts.filter(Boolean).join('; ')}`] : [];
}
