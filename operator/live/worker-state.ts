/** What a worker does, in a word or three. Computes only. */
import type { WorkerFigures } from './figures.ts';

/** An event loop that is silent for longer is shown so; a beat comes four times a second. */
const SILENT_S = 3;

/** Whether its event loop stands still. A worker that is away is silent, too, and not stuck. */
export function isSilent({ up, silentS = 0 }: WorkerFigures): boolean {
  return up && silentS > SILENT_S;
}

export function stateOf(worker: WorkerFigures): string {
  const { crashLoop, silentS = 0, requests, restarts, blocked, up, runtimeAbsent, isBackingOff } = worker;
  if (crashLoop) return `crashes, exit ${crashLoop.exitCode}`;
  if (silentS > SILENT_S) return `silent for ${silentS.toFixed(0)} s`;
  const hasBegun = requests !== undefined || restarts !== 0;
  if (!hasBegun) return 'starting';
  if (blocked) return 'given up renders';
  if (up) return runtimeAbsent ? 'up, no runtime' : 'up';
  return isBackingOff ? 'waits to restart' : 'down';
}
