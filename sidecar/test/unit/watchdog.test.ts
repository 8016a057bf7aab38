/** For how long the watchdog waits for what holds an event loop. */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { stallMs } = require('../../runtime/settings.cjs');
const { state } = require('../../runtime/state.cjs');
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
