/** The picture at the top of README.md: the same requests in two systems, as the simulator has them. */
import { type LanesChart, lanes } from '../plots/lanes.ts';
import {
  inTurn,
  type Lanes,
  oneQueue,
  requests,
  SECONDS,
  STALL_TIMEOUT_S,
  WORKERS,
  waiting,
} from '../simulate/lanes.ts';

const NAMES = Array.from({ length: WORKERS }, (_unused, worker) => `worker-${worker}`);

/** What it came to, in words. */
function outcome({ renders }: Lanes): string {
  const answered = renders.filter(({ endsS, isStuck }) => endsS <= SECONDS && !isStuck).length;
  const waited = renders.map(({ arrivesS, beginsS }) => Math.min(beginsS, SECONDS) - arrivesS);
  const unbegun = renders.filter(({ beginsS }) => beginsS > SECONDS).length;
  const left = unbegun === 0 ? 'nobody waits at the end' : `${unbegun} wait for a worker that never comes back`;
  return `${answered} of ${renders.length} answered after ${SECONDS} s; longest wait ${Math.max(...waited).toFixed(1)} s; ${left}`;
}

function chart(title: string, system: Lanes, stuck: string): LanesChart {
  const begun = system.renders.filter(({ beginsS }) => beginsS < SECONDS);
  return {
    title,
    subtitle: outcome(system),
    lanes: NAMES,
    bars: begun.map(({ worker, beginsS, endsS, isStuck }) => ({
      lane: worker,
      beginS: beginsS,
      endS: endsS,
      kind: isStuck ? 'stuck' : 'render',
    })),
    marks: system.renders
      .filter(({ isStuck }) => isStuck)
      .map(({ worker, beginsS }) => ({ lane: worker, atS: beginsS, words: stuck })),
    waiting: waiting(system),
  };
}

/** The picture; one that stands still is for readers who want no motion. */
export function waitingPicture(moves: boolean): string {
  const all = requests();
  return lanes(
    [
      chart(
        'Each request to the next event loop in turn: it waits there, whatever else is free',
        inTurn(all),
        'stuck for ever',
      ),
      chart(
        `One queue, one request per worker, and a watchdog (${STALL_TIMEOUT_S} s): Corelane`,
        oneQueue(all),
        'stuck, then killed',
      ),
    ],
    SECONDS,
    moves,
  );
}
