/** Looks for those who watch: while nobody does, there are none. */
import { jest } from '@jest/globals';
import { Feed, type Listener } from '../../../cli/dashboard/feed.ts';
import { fleet } from '../live/fleet.ts';
import { madeUp } from './sources.ts';

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['performance', 'nextTick', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

const PACE = { intervalMs: 1_000, askedMax: 10 };
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('while nobody watches nobody is looked at, and who comes back has the next look', async () => {
  let looks = 0;
  const look = () => {
    looks += 1;
    return fleet();
  };
  const feed = new Feed(madeUp({ look }), PACE);
  const frames: unknown[] = [];
  const listener: Listener = (name, value) => {
    if (name === 'frame') frames.push(value);
  };
  const [one, other] = [feed.listen(listener), feed.listen(() => {})];
  await settled();
  expect([looks, frames.length, jest.getTimerCount()]).toEqual([1, 1, 1]);
  one();
  await jest.advanceTimersByTimeAsync(1_000);
  expect([looks, frames.length, jest.getTimerCount()]).toEqual([2, 1, 1]);
  other();
  await jest.advanceTimersByTimeAsync(10_000);
  expect([looks, jest.getTimerCount()]).toEqual([2, 0]);
  feed.listen(listener);
  await settled();
  // What was known, and a look.
  expect([looks, frames.length]).toEqual([3, 3]);
  feed.close();
});

test('what is slow is not asked twice at a time', async () => {
  let looks = 0;
  const feed = new Feed(
    madeUp({
      look: () => {
        looks += 1;
        return new Promise(() => {});
      },
    }),
    PACE,
  );
  feed.listen(() => {});
  feed.listen(() => {});
  await jest.advanceTimersByTimeAsync(10_000);
  expect(looks).toBe(1);
});
