/** The work queue: a key is worked on by one at a time, never forgotten, and a failing one holds up nobody. */
import { jest } from '@jest/globals';
import { type Outcome, WorkQueue } from '../../src/controller/queue.ts';
import { FORBIDDEN_TRIES } from '../../src/controller/reconcile.ts';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

/** A queue whose work ends when the test says so. */
function controlled(concurrency = 1) {
  const running = new Map<string, PromiseWithResolvers<Outcome>>();
  const started: string[] = [];
  const failures: { key: string; retryMs: number }[] = [];
  const work = (key: string) => {
    if (running.has(key)) throw new Error(`${key} is worked on twice at a time`);
    started.push(key);
    const gate = Promise.withResolvers<Outcome>();
    running.set(key, gate);
    return gate.promise.finally(() => running.delete(key));
  };
  const queue = new WorkQueue(work, concurrency, (key, _error, retryMs) => failures.push({ key, retryMs }));
  queue.start();
  /** Ends the work on a key and lets the queue act on it. */
  const finish = async (key: string, outcome: Outcome | Error = {}) => {
    if (outcome instanceof Error) running.get(key)?.reject(outcome);
    else running.get(key)?.resolve(outcome);
    await jest.advanceTimersByTimeAsync(0);
  };
  return { queue, started, failures, finish };
}

test('a key that is added many times is worked on once', async () => {
  const { queue, started, finish } = controlled();
  queue.add('busy');
  for (let round = 0; round < 5; round += 1) queue.add('a');
  await finish('busy');
  await finish('a');
  expect(started).toEqual(['busy', 'a']);
  expect(queue.depth).toBe(0);
});

test('a key that is added while it is worked on is worked on again, after that', async () => {
  const { queue, started, finish } = controlled(4);
  queue.add('a');
  queue.add('a');
  queue.add('a');
  expect(started).toEqual(['a']);
  await finish('a');
  expect(started).toEqual(['a', 'a']);
  await finish('a');
  expect(started).toHaveLength(2);
});

test('no more keys are worked on at a time than allowed, in the order of their coming', async () => {
  const { queue, started, finish } = controlled(2);
  for (const key of ['a', 'b', 'c', 'd']) queue.add(key);
  expect(started).toEqual(['a', 'b']);
  expect(queue.depth).toBe(4);
  await finish('b');
  expect(started).toEqual(['a', 'b', 'c']);
});

test('an urgent key goes before those that wait, and one that waits already becomes so', async () => {
  const { queue, started, finish } = controlled();
  for (const key of ['busy', 'a', 'b', 'c']) queue.add(key);
  queue.add('u', true);
  queue.add('c', true);
  // What an event adds meanwhile takes nothing of it.
  queue.add('c');
  expect(queue.depth).toBe(5);
  for (const key of ['busy', 'u', 'c', 'a']) await finish(key);
  expect(started).toEqual(['busy', 'u', 'c', 'a', 'b']);
});

test('however many are urgent, one of five is another', async () => {
  const { queue, started, finish } = controlled();
  queue.add('busy', true);
  for (let n = 0; n < 20; n += 1) queue.add(`u${n}`, true);
  for (let n = 0; n < 5; n += 1) queue.add(`o${n}`);
  for (let n = 0; n < 25; n += 1) await finish(started.at(-1) as string);
  const places = started.flatMap((key, place) => (key.startsWith('o') ? [place] : []));
  expect(places).toEqual([4, 9, 14, 19, 24]);
});

test('of four places one is free for what is urgent, and no more than four are taken', async () => {
  const { queue, started, finish } = controlled(4);
  for (const key of ['a', 'b', 'c', 'd', 'e']) queue.add(key);
  expect(started).toEqual(['a', 'b', 'c']);
  queue.add('u', true);
  queue.add('v', true);
  expect(started).toEqual(['a', 'b', 'c', 'u']);
  await finish('a');
  expect(started).toEqual(['a', 'b', 'c', 'u', 'v']);
  await finish('b');
  // Two of them are worked on, so there is a place for another one.
  expect(started.slice(5)).toEqual(['d']);
});

test('where urgent keys take all places, others get one after so many', async () => {
  const { queue, started, finish } = controlled(4);
  for (let n = 0; n < 12; n += 1) queue.add(`u${n}`, true);
  queue.add('a');
  expect(started).toEqual(['u0', 'u1', 'u2', 'u3']);
  await finish('u0');
  expect(started).toEqual(['u0', 'u1', 'u2', 'u3', 'a']);
  await finish('u1');
  expect(started.at(-1)).toBe('u4');
});

test('an urgent key that fails is urgent when it comes back', async () => {
  const { queue, started, finish } = controlled();
  queue.add('u', true);
  for (const key of ['a', 'b']) queue.add(key);
  await finish('u', new Error('conflict'));
  await jest.advanceTimersByTimeAsync(50);
  await finish('a');
  expect(started).toEqual(['u', 'a', 'u']);
});

test('a key that waits for itself does not hold up the next', async () => {
  const { queue, started } = controlled(2);
  queue.add('a');
  queue.add('a');
  queue.add('b');
  expect(started).toEqual(['a', 'b']);
});

test('a failing key comes back after delays that double up to 5 minutes', async () => {
  const { queue, failures, finish } = controlled();
  queue.add('a');
  for (let round = 0; round < 15; round += 1) {
    await finish('a', new Error('no'));
    await jest.advanceTimersByTimeAsync(failures.at(-1)?.retryMs ?? 0);
  }
  const delays = failures.map(({ retryMs }) => retryMs);
  expect(delays.slice(0, 4)).toEqual([50, 100, 200, 400]);
  expect(delays.at(-1)).toBe(300_000);
});

test('a failing key does not hold up others', async () => {
  const { queue, started, finish } = controlled();
  queue.add('a');
  await finish('a', new Error('no'));
  queue.add('b');
  expect(started).toEqual(['a', 'b']);
});

test('success makes the next failure wait shortly again', async () => {
  const { queue, failures, finish } = controlled();
  queue.add('a');
  for (let round = 0; round < 5; round += 1) {
    await finish('a', new Error('no'));
    await jest.advanceTimersByTimeAsync(failures.at(-1)?.retryMs ?? 0);
  }
  await finish('a');
  queue.add('a');
  await finish('a', new Error('no'));
  expect(failures.at(-1)).toEqual({ key: 'a', retryMs: 50 });
});

test('an event brings a failing key back before its delay is over', async () => {
  const { queue, started, failures, finish } = controlled();
  queue.add('a');
  for (let round = 0; round < 8; round += 1) {
    await finish('a', new Error('no'));
    if (round < 7) await jest.advanceTimersByTimeAsync(failures.at(-1)?.retryMs ?? 0);
  }
  const before = started.length;
  queue.add('a');
  expect(started).toHaveLength(before + 1);
});

test('events that fail one after the other leave the next try where it was', async () => {
  const { queue, started, failures, finish } = controlled();
  for (let round = 0; round < 15; round += 1) {
    queue.add('a');
    await finish('a', new Error('no'));
  }
  expect(failures.at(-1)).toEqual({ key: 'a', retryMs: 50 });
  await jest.advanceTimersByTimeAsync(50);
  expect(started).toHaveLength(16);
  await finish('a', new Error('no'));
  expect(failures.at(-1)).toEqual({ key: 'a', retryMs: 100 });
});

test('what an event has brought to an end needs no other try, and fails anew for a short time only', async () => {
  const { queue, started, failures, finish } = controlled();
  queue.add('a');
  for (let round = 0; round < 10; round += 1) {
    await finish('a', new Error('no'));
    if (round < 9) await jest.advanceTimersByTimeAsync(failures.at(-1)?.retryMs ?? 0);
  }
  queue.add('a');
  await finish('a');
  await jest.advanceTimersByTimeAsync(300_000);
  expect(started).toHaveLength(11);
  queue.add('a');
  await finish('a', new Error('no'));
  expect(failures.at(-1)).toEqual({ key: 'a', retryMs: 50 });
});

test('a key that asks for it comes back after its time', async () => {
  const { queue, started, finish } = controlled();
  queue.add('a');
  await finish('a', { requeueAfterMs: 15_000 });
  await jest.advanceTimersByTimeAsync(14_999);
  expect(started).toHaveLength(1);
  await jest.advanceTimersByTimeAsync(1);
  expect(started).toHaveLength(2);
});

test('an early failure after a late requeue does not wait for the requeue', async () => {
  const { queue, started, finish } = controlled();
  queue.add('a');
  await finish('a', { requeueAfterMs: 15_000 });
  queue.add('a');
  await finish('a', new Error('no'));
  await jest.advanceTimersByTimeAsync(50);
  expect(started).toHaveLength(3);
});

test('what admission forbids is tried often enough within two seconds to be told', async () => {
  const tries: number[] = [];
  const work = async (_key: string, failures: number) => {
    tries.push(failures);
    throw new Error('forbidden');
  };
  const queue = new WorkQueue(work, 1, () => {});
  queue.start();
  queue.add('a', true);
  await jest.advanceTimersByTimeAsync(2_000);
  expect(tries).toEqual(Array.from({ length: FORBIDDEN_TRIES + 1 }, (_unused, failures) => failures));
  await queue.stop();
});

test('work that throws before its first await counts as failed', async () => {
  const failures: string[] = [];
  const queue = new WorkQueue(
    () => {
      throw new Error('at once');
    },
    1,
    (key) => failures.push(key),
  );
  queue.start();
  queue.add('a');
  await jest.advanceTimersByTimeAsync(0);
  expect(failures).toEqual(['a']);
  await queue.stop();
});

test('stop waits for what is worked on, and begins nothing more', async () => {
  const { queue, started, finish } = controlled();
  let stopped = false;
  queue.add('a');
  queue.add('b');
  queue.addAfter('c', 10);
  const stop = queue.stop().then(() => {
    stopped = true;
  });
  await jest.advanceTimersByTimeAsync(1_000);
  expect(stopped).toBe(false);
  await finish('a', new Error('no'));
  await stop;
  queue.add('d');
  await jest.advanceTimersByTimeAsync(1_000_000);
  expect(started).toEqual(['a']);
  expect(jest.getTimerCount()).toBe(0);
});

test('a time longer than a timer can wait is 24 days, and not none', async () => {
  const { queue, started, finish } = controlled();
  queue.addAfter('a', 8_000 * 365 * 86_400_000);
  await jest.advanceTimersByTimeAsync(2 ** 31 - 2);
  expect(started).toEqual([]);
  await jest.advanceTimersByTimeAsync(1);
  expect(started).toEqual(['a']);
  await finish('a', {});
  await queue.stop();
});

test('nothing is taken before the start', async () => {
  const started: string[] = [];
  const work = async (key: string) => {
    started.push(key);
    return {};
  };
  const queue = new WorkQueue(work, 1, () => {});
  queue.add('a');
  queue.start();
  queue.add('b');
  await jest.advanceTimersByTimeAsync(0);
  expect(started).toEqual(['b']);
  await queue.stop();
});
