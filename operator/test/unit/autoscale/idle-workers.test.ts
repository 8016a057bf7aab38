/** Workers that are taken and idle: looks at one pod, and since when it has been so. */
import { areIdle, type EventLoops, type Watch, watched } from '../../../src/autoscale/idle-workers.ts';

/** Seconds of work and of idleness between two looks; 'no' for a look at a pod that is not full, '?' without loops. */
type Step = [activeS: number, idleS: number] | 'no' | '?';

/** Looks 15 s apart; the first is at a pod whose loops have run for 100 s. */
function watchAfter(steps: Step[]): Watch | undefined {
  let loops: EventLoops = { activeS: 40, idleS: 60 };
  let watch: Watch | undefined = watched(undefined, { atMs: 0, loops });
  for (const [index, step] of steps.entries()) {
    if (Array.isArray(step)) loops = { activeS: loops.activeS + step[0], idleS: loops.idleS + step[1] };
    const look = { atMs: 15_000 * (index + 1), loops: step === '?' ? undefined : loops };
    watch = step === 'no' ? undefined : watched(watch, look);
  }
  return watch;
}

const IDLE: Step = [1, 29];
const BUSY: Step = [28, 2];

test.each<[what: string, steps: Step[], sinceMs: number | undefined]>([
  ['one look tells nothing', [], undefined],
  ['idle between two looks', [IDLE], 0],
  ['idle all the time', [IDLE, IDLE, IDLE, IDLE], 0],
  ['renders that compute', [BUSY, BUSY, BUSY, BUSY], undefined],
  ['half of the time is enough', [[15, 15]], 0],
  ['less is not', [[15.1, 14.9]], undefined],
  ['a moment of work, and all begins anew', [IDLE, IDLE, BUSY, IDLE], 45_000],
  ['a moment with room, too', [IDLE, IDLE, 'no', IDLE], undefined],
  ['and from the next look on', [IDLE, 'no', IDLE, IDLE], 45_000],
  ['a look that says nothing of the loops', [IDLE, '?', IDLE], undefined],
  ['processes that were started again', [IDLE, IDLE, [-30, -60]], undefined],
  ['loops that stand still', [[0, 0]], undefined],
  ['what is no number', [[Number.NaN, 10]], undefined],
  ['what has no end', [[1, Number.POSITIVE_INFINITY]], undefined],
])('%s', (_what, steps, sinceMs) => {
  expect(watchAfter(steps)?.sinceMs).toBe(sinceMs);
});

test('it counts when it has lasted', () => {
  const four = watchAfter([IDLE, IDLE, IDLE, IDLE]);
  expect([areIdle(four, 60_000), areIdle(four, 60_001)]).toEqual([true, false]);
  expect(areIdle(watchAfter([IDLE, IDLE, IDLE, BUSY]), 1)).toBe(false);
  expect(areIdle(undefined, 0)).toBe(false);
});
