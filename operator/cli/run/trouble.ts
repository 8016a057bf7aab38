/** What keeps workers from coming up at the start, and the way out. */
import type { RunPod } from '../../local/run-pod.ts';
import { lastWords, type WorkerLog } from './logs.ts';

/** So many ends of a program that has never been up are no accident. */
const ENDS = 3;
/** Lines of its log that are shown. */
const LINES = 15;
/** A start that takes longer is looked into. */
const LATE_MS = 10_000;

/** Why no worker comes up, as far as the logs tell; undefined as long as one may. */
export function troubleOf(logs: WorkerLog[]): string | undefined {
  if (logs.length === 0 || logs.some(({ wasUp }) => wasUp)) return undefined;
  const [elsewhere] = logs.filter(({ problem }) => problem);
  if (elsewhere) return `the workers do not come up: ${elsewhere.problem}`;
  if (!logs.every(({ ends }) => ends >= ENDS)) return undefined;
  const [first] = logs as [WorkerLog];
  const { pod, worker } = first;
  const words = lastWords(first, LINES);
  return [
    `the program ends again and again before it listens on PORT; the last that worker-${worker} of ${pod.name} said:`,
    ...(words.length > 0 ? words : ['    nothing']),
  ].join('\n');
}

/** Looks whether the image has Node.js, when nobody has come up for a while. */
export async function whyNoRuntime(
  pod: Pick<RunPod, 'spec' | 'workers' | 'state' | 'hasNode'>,
  sinceMs: number,
): Promise<string | undefined> {
  if (!pod.spec.runtime.instrument || performance.now() - sinceMs < LATE_MS) return undefined;
  const [container = ''] = pod.workers;
  const before = await pod.state(container);
  if (!before.Running || (await pod.hasNode(0))) return undefined;
  const after = await pod.state(container);
  // One that has ended meanwhile tells nothing of its image: the engine may have started it again.
  if (!after.Running || after.StartedAt !== before.StartedAt) return undefined;
  return (
    'the image has no Node.js that could be found (no "node" on its PATH), so nobody supervises its program. ' +
    'Take an image with Node.js 18.19 or newer, or say by runtime.instrument: false that it is meant'
  );
}
