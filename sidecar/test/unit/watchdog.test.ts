/** For how long the watchdog waits for what holds an event loop, and what a pause of everything counts for. */
import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { nowMs } = require('../../runtime/clock.cjs');
const { take } = require('../../runtime/servers.cjs');
const { beatMs, stallMs, supervisor } = require('../../runtime/settings.cjs');
const { effects, state } = require('../../runtime/state.cjs');
const { capture } = require('../../runtime/watchdog.cjs');

test('a heap snapshot holds an event loop for five minutes, and not for ever', async () => {
  state.child = { exitCode: null, signalCode: null };
  const isHeldAfter = async (heldMs: number) => {
    const server = { pid: 0, beats: 0, silentMs: heldMs + stallMs, heldMs, takesSnapshot: true };
    state.servers.set(server, server);
    const { stalls } = state;
    const captured = capture(server, { tellsFirst: false });
    // Ends a hold, after the look.
    server.beats += 1;
    await captured;
    return state.stalls === stalls;
  };
  expect([await isHeldAfter(299_999), await isHeldAfter(300_000)]).toEqual([true, false]);
});

test('after a pause of the whole container no worker is at fault', () => {
  // As worker.cjs sets them: a beat, and a render that nobody waits for has had its time.
  const OVERDUE_BEAT = Buffer.from([0x40 | 16]);
  Object.setPrototypeOf(effects, new Proxy({}, { get: () => () => {} }));
  const socket = Object.assign(new EventEmitter(), { unref() {}, resume() {}, write() {} });
  take('corelane-worker', [supervisor.token, '7', '1'], socket);
  const server = state.servers.get(socket);
  const isOverdue = (sinceLookMs: number) => {
    state.watchedAtMs = nowMs() - sinceLookMs;
    socket.emit('data', OVERDUE_BEAT);
    return server.overdue;
  };
  expect(isOverdue(0)).toBe(true);
  expect(isOverdue(60_000)).toBe(false);
  // The worker has not got the time of the pause in addition for its next stall.
  expect(server.silentMs).toBe(-2 * beatMs);
  expect(isOverdue(0)).toBe(false);
  state.resumedAtMs -= stallMs;
  expect(isOverdue(0)).toBe(true);
  // Pauses again and again do not save a worker for ever.
  expect(isOverdue(60_000)).toBe(true);
  state.resumedAtMs -= stallMs;
  expect(isOverdue(60_000)).toBe(false);
  state.servers.delete(socket);
});
