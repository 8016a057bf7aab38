/** Who has paid for a fault: the request that was in the victim, or others. Computes only. */
import type { Failure } from './requests.ts';
import type { FaultRow } from './table.ts';

export interface Strike {
  /** When the fault had come, by performance.now(). */
  struckMs: number;
  /** Requests that a worker has at a time: so many may share its fate. */
  places: number;
}

/** What a worker's end does to what it was rendering (X-Corelane-Error). */
const OF_THE_WORKER = /worker-died|worker-stuck|render-timeout/;
/** What the end of a proxy does to those whose connection it had. */
const OF_A_PROXY = /^(ECONNRESET|EPIPE|socket hang up)|proxy-/;

/**
 * A failure is the victim's own if it says that its worker has died of it, at most as many as the victim had places;
 * or that its proxy has, and it was on its way by then. All others are lost, whatever they say. What was in the victim
 * and is no failure was answered: by another worker, or by this one before its end.
 * @param failures all since the fault
 */
export function costOf(failures: Failure[], { struckMs, places }: Strike): Pick<FaultRow, 'own' | 'othersLost'> {
  const own = [
    ...failures.filter(({ what }) => OF_THE_WORKER.test(what)).slice(0, places),
    ...failures.filter(({ what, beganMs }) => OF_A_PROXY.test(what) && beganMs <= struckMs),
  ];
  const said = own[0]?.what ?? 'its page';
  return { own: own.length > 1 ? `${said} (${own.length} requests)` : said, othersLost: failures.length - own.length };
}
