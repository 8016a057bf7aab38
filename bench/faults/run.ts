/** Runs one scenario on one system, and adds up what happened. */
import { fifoResponseMs } from '../lib/fifo.ts';
import { type Group, type Record as LoadRecord, runLoad } from '../lib/load.ts';
import type { Note } from '../lib/notes.ts';
import { failuresOf, missingMs, type Outcome, outcomeOf } from '../lib/outcome.ts';
import { createRandom } from '../lib/random.ts';
import { type Latency, summarize } from '../lib/stats.ts';
import { recover, type System } from '../systems/system.ts';
import { BODY_BYTES, CLIENTS_GROUP, RUNAWAY_IDS, type Scenario, SLOW_GROUP } from './scenarios.ts';

/** A client gives up then. */
const TIMEOUT_MS = 10_000;

export interface Result {
  system: string;
  scenario: string;
  outcome: Outcome;
  failures: { [reason: string]: number };
  /** The clients with slow bodies, where there are any. */
  slow?: Outcome;
  /** For each runaway request: ms until its worker began another one; null if it never did. */
  runawayMs?: (number | null)[];
}

/** The bound for the clients of a run. */
export interface Ideal {
  /** With the service time that the requests ask for. */
  asked: Latency;
  /** With the time that each worker took, from its first sight of a request to its answer. */
  taken: Latency;
}

export interface Run {
  records: LoadRecord[];
  notes: Note[];
}

/** Sends the groups, while `act` runs. Afterwards all workers are up and free again. */
export async function run(
  system: System,
  groups: Group[],
  act?: Scenario['act'],
  bodyBytes = BODY_BYTES,
): Promise<Run> {
  const notesBefore = system.notes.read().length;
  const over = new AbortController();
  let acting: Promise<void> | undefined;
  const plan = { targets: system.targets, bodyBytes, timeoutMs: TIMEOUT_MS, phases: [groups] };
  const records = await runLoad(system.network, plan, () => {
    acting = act?.(system, { random: createRandom(4), over: over.signal });
  });
  over.abort();
  await acting;
  const notes = system.notes.read().slice(notesBefore);
  await recover(system);
  return { records, notes };
}

export async function runScenario(system: System, scenario: Scenario): Promise<Result & { ideal: Ideal }> {
  const { records, notes } = await run(system, scenario.groups(system), scenario.act);
  const slow = outcomeOf(records, notes, SLOW_GROUP);
  const isRunaway = scenario.key === 'runaway';
  return {
    system: system.name,
    scenario: scenario.key,
    outcome: outcomeOf(records, notes, CLIENTS_GROUP),
    failures: failuresOf(records, CLIENTS_GROUP),
    ...(slow.requests > 0 && { slow }),
    ...(isRunaway && { runawayMs: RUNAWAY_IDS.map((id) => missingMs(notes, id) ?? null) }),
    ideal: ideal({ records, notes }, system.workers, 50),
  };
}

/** What a perfect queue would have made of the same arrivals. */
export function ideal({ records, notes }: Run, workers: number, serviceMs: number): Ideal {
  const begins = new Map(notes.filter(({ event }) => event === 'begin').map(({ id, at }) => [id, at]));
  const ends = new Map(notes.filter(({ event }) => event === 'end').map(({ id, at }) => [id, at]));
  const arrivals = records.filter(({ group }) => group === CLIENTS_GROUP).sort((a, b) => a.at - b.at);
  const taken = (id: string) => (ends.get(id) ?? Number.NaN) - (begins.get(id) ?? Number.NaN) || serviceMs;
  const simulate = (service: (id: string) => number) =>
    summarize(
      fifoResponseMs(
        arrivals.map(({ id, at }) => ({ at, service: service(id) })),
        workers,
      ),
    );
  return { asked: simulate(() => serviceMs), taken: simulate(taken) };
}
