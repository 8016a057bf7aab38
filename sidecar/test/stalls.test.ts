/** What is remembered of stalls, and for how long. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { jest } from '@jest/globals';
import { RUNTIME } from './program.ts';

interface Stalls {
  history: { in: string }[];
  record(pid: number, silentMs: number, found: { frames?: object[]; requests: { id: string }[] }): { in: string };
  stallOf(requestId: string): { in: string } | undefined;
}

let stalls: Stalls;
beforeEach(() => {
  jest.useFakeTimers();
  jest.resetModules();
  stalls = createRequire(import.meta.url)(join(dirname(RUNTIME), 'stalls.cjs'));
});
afterEach(() => jest.useRealTimers());

test('a stall answers for its requests for a minute: clients choose ids, and use them again', () => {
  const stall = stalls.record(1, 1_000, { requests: [{ id: 'one' }, { id: 'other' }] });
  expect([stalls.stallOf('one'), stalls.stallOf('other'), stalls.stallOf('none')]).toEqual([stall, stall, undefined]);
  jest.advanceTimersByTime(59_999);
  expect(stalls.stallOf('one')).toBe(stall);
  jest.advanceTimersByTime(1);
  expect(stalls.stallOf('one')).toBeUndefined();
  expect(stalls.history).toEqual([stall]);
});

test('of two with the same id the latest counts; five are kept', () => {
  const all = [1, 2, 3, 4, 5, 6].map((pid) =>
    stalls.record(pid, 1_000, { requests: [{ id: 'same' }, { id: `${pid}` }] }),
  );
  expect([stalls.stallOf('same'), stalls.stallOf('1'), stalls.stallOf('2')]).toEqual([all[5], undefined, all[1]]);
  expect(stalls.history).toEqual(all.slice(1));
});
