/** A request that is handed over goes to the peer that has promised a slot for it, with that peer's ticket, whenever HAProxy gets its CPU. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Fleet } from './fleet.ts';
import type { Pod, PodOptions } from './pod.ts';

let fleet: Fleet;
afterEach(() => fleet?.stop());

const queue = { maxLength: 1_000, timeout: '60s' };
const BORROWING = fileURLToPath(new URL('../haproxy/pooling/borrowing.lua', import.meta.url));
/** Twice as long as borrowing.lua waits before it takes a server that it has opened for an unused one (OPENED_MS). */
const FROZEN_S = 0.04;
const OPENED = "    slot.server:set_weight('0')\n    return true\n";

/**
 * All of HAProxy stands still for a while each time a server has been opened, before its request can connect, and answers of
 * other peers come meanwhile. One call into C after the other: HAProxy would interrupt a loop in Lua and go on with the others.
 */
function withoutCpu(): PodOptions {
  const freeze = `local ends = os.clock() + ${FROZEN_S}\nrepeat ('a'):rep(1000):find('.-b') until os.clock() > ends\n`;
  const text = readFileSync(BORROWING, 'utf8');
  if (text.split(OPENED).length !== 2) throw new Error('borrowing.lua opens servers in another way');
  const frozen = text.replace(OPENED, OPENED.replace('return', `${freeze}return`));
  const load = '  lua-load /usr/share/corelane/haproxy/pooling.lua';
  return {
    files: { 'frozen.lua': `package.preload['pooling.borrowing'] = function()\n${frozen}end\n` },
    edit: (_file, config) => config.replace(load, `  lua-load /etc/corelane/frozen.lua\n${load}`),
  };
}

test('that finds no CPU after it has opened a server sends each request to the peer of its ticket, once', async () => {
  fleet = await Fleet.start(1, { queue, workersPerPod: 1 }, withoutCpu());
  const [home] = fleet.pods as [Pod];
  const peers = [];
  for (const _ of [1, 2, 3]) peers.push(await fleet.add({ queue, workersPerPod: 4 }));
  await fleet.untilAllKnown();
  const ids = Array.from({ length: 150 }, (_unused, number) => `r${number}`);
  const answers = await Promise.all(
    ids.map((id, number) => home.get(`/?ms=20&id=${id}`, number % 2 === 0 ? {} : { method: 'POST', body: 'x' })),
  );
  expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200));
  expect(answers.map(({ body }) => JSON.parse(body).id)).toEqual(ids);
  const begun = fleet.pods.map((pod) => pod.events({ event: 'begin' }).map(({ id }) => id));
  expect(begun.flat().sort()).toEqual(ids.toSorted());
  // Several servers were open at a time, for different peers.
  for (const there of begun) expect(there.length).toBeGreaterThan(10);
  // A ticket that somebody else has issued, or that was used before, is refused.
  for (const pod of peers) expect(await pod.metric('haproxy_frontend_requests_denied_total{proxy="peers"}')).toBe(0);
});
