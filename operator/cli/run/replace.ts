/** A change of the program's files: one worker after the other is replaced, between two requests. */
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../local/http.ts';
import type { RunFleet } from '../../local/run-fleet.ts';
import type { RunPod } from '../../local/run-pod.ts';
import { type Logs, lastWords, type WorkerLog } from './logs.ts';

/** Another worker of the pod has its turn, or a render takes its time. */
const TURN_MS_MAX = 120_000;
const TURN_EVERY_MS = 200;
/** Without a sign of either: neither up nor ended. */
const START_MS_MAX = 60_000;
/** Of the log of one that does not start. */
const LINES = 12;

/** The new program does not start; the workers that were not replaced go on. */
class StartError extends Error {}

/**
 * Replaces all workers, and the files that nginx serves.
 * @param isOutdated asked before each: another change has come
 * @throws StartError for the first that does not come up
 */
export async function replaceWorkers(fleet: RunFleet, logs: Logs, isOutdated: () => boolean): Promise<void> {
  await Promise.all(fleet.staying.map((pod) => pod.copyAssets()));
  const workers = fleet.staying.flatMap((pod) => Array.from(pod.workers.keys(), (worker) => ({ pod, worker })));
  const up = await Promise.all(workers.map(({ pod, worker }) => pod.isUp(worker).catch(() => false)));
  // Those first that serve nobody: if the change mends them the others follow.
  const order = [...workers.filter((_one, index) => !up[index]), ...workers.filter((_one, index) => up[index])];
  for (const { pod, worker } of order) {
    if (isOutdated()) return;
    const log = logs.of(pod, worker);
    if (log) Object.assign(log, { ends: 0, problem: undefined, lines: [], wasUp: false, isBroken: false });
    await replaceOne(pod, worker);
    await untilStarted(pod, worker, log);
  }
}

/** Through its supervisor; one that is not up waits for its back-off, so its container is started again. */
async function replaceOne(pod: RunPod, worker: number): Promise<void> {
  const end = Date.now() + TURN_MS_MAX;
  while (await pod.isUp(worker).catch(() => false)) {
    const isDone = await pod.runtimePage(worker, '/recycle').then(
      () => true,
      (error) => {
        if (Date.now() < end && /not now/.test(error.message)) return false;
        throw error;
      },
    );
    if (isDone) return;
    await sleep(TURN_EVERY_MS);
  }
  await pod.engine.run('restart', '-t', '0', pod.workers[worker] ?? '');
}

async function untilStarted(pod: RunPod, worker: number, log: WorkerLog | undefined): Promise<void> {
  const why = () => (log && (log.ends > 0 || log.problem) ? log : undefined);
  const isStarted = async () => why() !== undefined || (log?.wasUp !== false && (await pod.isUp(worker)));
  const isInTime = await until('it starts', isStarted, START_MS_MAX).catch(() => false);
  if (isInTime && !why()) return;
  const said = log ? [...(log.problem ? [`    ${log.problem}`] : []), ...lastWords(log, LINES)] : [];
  if (log) log.isBroken = true;
  const what = isInTime ? 'does not start' : `is not up after ${START_MS_MAX / 1000} s`;
  throw new StartError([`worker-${worker} of ${pod.name} ${what} with the change:`, ...said].join('\n'));
}
