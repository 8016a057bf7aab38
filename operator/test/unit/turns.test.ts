/** Whose turn it is, and in which hours. */
import { type Pace, type Standing, turnsOf } from '../../src/turns/turns.ts';
import { isOpen, parseWindow, type Window } from '../../src/turns/window.ts';

const PACE: Pace = { maxConcurrent: 1, pauseMs: 120_000 };
const NOW = 1_000_000;

const one = (key: string, more: Partial<Standing> = {}): Standing => ({
  ...{ key, isWaiting: true, isHealthy: true, wasRenewed: false, hadTurn: false, hasFailed: false },
  ...more,
});
/** After its turn. */
const renewed = (key: string, more: Partial<Standing> = {}) =>
  one(key, { isWaiting: false, wasRenewed: true, hadTurn: true, ...more });

describe('turns', () => {
  test('the first by name begins, and nobody else until it has been healthy for the pause', () => {
    expect(turnsOf([one('n/b'), one('n/a')], PACE, NOW, true)).toEqual({ next: ['n/a'], busy: [] });
    const rolling = renewed('n/a', { isHealthy: false });
    expect(turnsOf([rolling, one('n/b')], PACE, NOW, true)).toEqual({ next: [], busy: ['n/a'] });
    const healthy = renewed('n/a', { healthySinceMs: NOW });
    const againMs = NOW + PACE.pauseMs;
    expect(turnsOf([healthy, one('n/b')], PACE, againMs - 1, true)).toEqual({ next: [], busy: ['n/a'], againMs });
    expect(turnsOf([healthy, one('n/b')], PACE, againMs, true)).toEqual({ next: ['n/b'], busy: [] });
  });

  test('as many at a time as may be', () => {
    const all = [renewed('n/a'), one('n/b'), one('n/c'), one('n/d')];
    expect(turnsOf(all, { ...PACE, maxConcurrent: 3 }, NOW, true).next).toEqual(['n/b', 'n/c']);
    expect(turnsOf(all, { ...PACE, maxConcurrent: 1 }, NOW, true).next).toEqual([]);
  });

  test('one that does not become healthy holds all, however many may be at a time; mended, it holds none', () => {
    const failed = renewed('n/a', { isHealthy: false, hasFailed: true });
    const all = [failed, one('n/b'), one('n/c')];
    expect(turnsOf(all, { ...PACE, maxConcurrent: 9 }, NOW, true)).toEqual({
      next: [],
      heldBy: 'n/a',
      busy: ['n/a'],
    });
    const mended = renewed('n/a', { healthySinceMs: NOW - PACE.pauseMs });
    expect(turnsOf([mended, one('n/b')], PACE, NOW, true)).toEqual({ next: ['n/b'], busy: [] });
  });

  test('one that fails long after its turn holds nobody', () => {
    const later = renewed('n/a', { isHealthy: false, hasFailed: true, healthySinceMs: NOW - PACE.pauseMs });
    expect(turnsOf([later, one('n/b')], PACE, NOW, true)).toEqual({ next: ['n/b'], busy: [] });
  });

  test('who is ill waits, unless another version has made it so: that one comes first', () => {
    const ill = one('n/a', { isHealthy: false });
    expect(turnsOf([ill, one('n/b')], PACE, NOW, true).next).toEqual(['n/b']);
    expect(turnsOf([ill], PACE, NOW, true).next).toEqual([]);
    const left = one('n/z', { isHealthy: false, wasRenewed: true });
    expect(turnsOf([ill, one('n/b'), left], PACE, NOW, true).next).toEqual(['n/z']);
  });

  test('nobody begins while the window is closed; who has begun goes on', () => {
    expect(turnsOf([renewed('n/a'), one('n/b')], PACE, NOW, false)).toEqual({ next: [], busy: ['n/a'] });
  });

  test('who is not waiting is not asked', () => {
    const settled = one('n/a', { isWaiting: false });
    expect(turnsOf([settled], PACE, NOW, true)).toEqual({ next: [], busy: [] });
  });

  test('twenty services, one after the other, whatever is forgotten in between', () => {
    const keys = Array.from({ length: 20 }, (_unused, index) => `n/s${String(index).padStart(2, '0')}`);
    const all = new Map(keys.map((key) => [key, one(key)]));
    const order: string[] = [];
    for (let now = NOW; order.length < keys.length; now += PACE.pauseMs) {
      const { next } = turnsOf([...all.values()], PACE, now, true);
      expect(next).toHaveLength(1);
      order.push(...next);
      for (const key of next) all.set(key, renewed(key, { healthySinceMs: now }));
    }
    expect(order).toEqual(keys);
  });
});

describe('the window', () => {
  const at = (text: string) => Date.parse(text);
  const open = (text: string, time: string) => isOpen(parseWindow(text) as Window, at(time));

  test('is always open when there is none', () => expect(parseWindow('')).toBeUndefined());

  test.each([
    ['22:00-04:00', '2026-01-05T21:59:59Z', false],
    ['22:00-04:00', '2026-01-05T22:00:00Z', true],
    ['22:00-04:00', '2026-01-06T03:59:59Z', true],
    ['22:00-04:00', '2026-01-06T04:00:00Z', false],
    ['09:00-17:00', '2026-01-05T12:00:00Z', true],
    ['09:00-17:00', '2026-01-05T17:00:00Z', false],
    // 2026-01-05 is a Monday.
    ['Mon-Fri 22:00-04:00', '2026-01-10T03:00:00Z', true],
    ['Mon-Fri 22:00-04:00', '2026-01-10T22:00:00Z', false],
    ['Mon-Fri 22:00-04:00', '2026-01-05T03:00:00Z', false],
    ['Fri-Mon 01:00-02:00', '2026-01-04T01:30:00Z', true],
    ['Sun 01:00-02:00', '2026-01-05T01:30:00Z', false],
    ['22:00-23:00 Europe/Berlin', '2026-01-05T21:30:00Z', true],
    ['22:00-23:00 Europe/Berlin', '2026-07-06T20:30:00Z', true],
    ['00:00-01:00', '2026-01-05T00:30:00Z', true],
  ])('%s at %s: %s', (text, time, expected) => expect(open(text, time)).toBe(expected));

  test.each(['nightly', '22-04', '24:00-01:00', 'Mo 22:00-04:00', '22:00-04:00 Mars/Olympus'])(
    '%s is refused',
    (text) => expect(() => parseWindow(text)).toThrow(RangeError),
  );
});
