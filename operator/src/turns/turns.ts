/**
 * Whose turn it is to get the data plane of this operator, of all services that run another one's: a few at a time,
 * with a pause behind each, and nobody after one that did not become healthy. Nothing is remembered here: what counts
 * stands in the objects, so a restarted operator or another leader goes on where this one was.
 */

/** A service as far as it matters. */
export interface Standing {
  /** namespace/name */
  key: string;
  /** It runs what another version of the operator has made, and waits for its turn. */
  isWaiting: boolean;
  /** Its pods are ready, and no worker of them ends again and again. */
  isHealthy: boolean;
  /** Its last pods came by a turn, whichever version's. */
  wasRenewed: boolean;
  /** It has what this operator makes since its turn, or is on the way to it, or was refused it. */
  hadTurn: boolean;
  /** Since its turn it has come to a standstill. */
  hasFailed: boolean;
  /** Since when it has been healthy after its turn; undefined before. */
  healthySinceMs?: number | undefined;
}

export interface Pace {
  maxConcurrent: number;
  /** For how long a service must have been healthy before it makes room for the next one. */
  pauseMs: number;
}

export interface Turns {
  /** Who may begin now. */
  next: string[];
  /** Who has failed, so that nobody else begins. */
  heldBy?: string;
  /** Who is on the way, or in the pause behind it. */
  busy: string[];
  /** When a pause ends, if nothing else happens before. */
  againMs?: number;
}

/**
 * @param mayBegin whether anybody may begin at all: the window is open, say
 */
export function turnsOf(all: Standing[], { maxConcurrent, pauseMs }: Pace, nowMs: number, mayBegin: boolean): Turns {
  const endMs = ({ healthySinceMs }: Standing) => (healthySinceMs ?? Number.POSITIVE_INFINITY) + pauseMs;
  const busy = all.filter((one) => one.hadTurn && endMs(one) > nowMs);
  const failed = busy.find(({ hasFailed }) => hasFailed);
  const againMs = Math.min(...busy.map(endMs));
  return {
    next: failed || !mayBegin ? [] : inOrder(all).slice(0, Math.max(0, maxConcurrent - busy.length)),
    ...(failed && { heldBy: failed.key }),
    busy: busy.map(({ key }) => key),
    ...(Number.isFinite(againMs) && { againMs }),
  };
}

/**
 * First those that another version's turn has left ill: this version may be what mends them. A service that is ill for
 * another reason waits until it is well: nobody could tell afterwards what the new pods have to do with it.
 */
function inOrder(all: Standing[]): string[] {
  const waiting = all.filter(({ isWaiting, hadTurn }) => isWaiting && !hadTurn);
  const keys = (some: Standing[]) => some.map(({ key }) => key).sort();
  return [
    ...keys(waiting.filter(({ isHealthy, wasRenewed }) => !isHealthy && wasRenewed)),
    ...keys(waiting.filter(({ isHealthy }) => isHealthy)),
  ];
}
