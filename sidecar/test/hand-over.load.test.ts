/**
 * A request that is handed over goes to the peer that has reserved a slot for it, with that peer's ticket, whenever
 * HAProxy gets its CPU. Here because it takes that CPU away, in a fleet of four pods.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { logs } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import type { Pod, PodOptions } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';

let fleet: Fleet;
afterEach(() => fleet?.stop());

const queue = { maxLength: 1_000, timeout: '60s' };
const MODULE = 'pooling/borrowing.lua';
/** Twice as long as that waits before it takes a server that it has opened for an unused one (OPENED_MS). */
const FROZEN_S = 0.04;
const OPENED = "    slot.server:set_weight('0')\n    return true\n";
const FROZEN = 'stood still';
const SEARCH_PATH = 'lua-prepend-path /usr/share/corelane/haproxy/?.lua';

/**
 * All of HAProxy stands still for a while each time a server has been opened, before its request can connect, and
 * answers of other peers come meanwhile. One call into C after the other: HAProxy would interrupt a loop in Lua and go
 * on with the others.
 */
function withoutCpu(): PodOptions {
  const freeze = `    local ends = os.clock() + ${FROZEN_S}\n    repeat ('a'):rep(1000):find('.-b') until os.clock() > ends\n    io.stderr:write('${FROZEN}\\n')\n`;
  const text = readFileSync(fileURLToPath(new URL(`../haproxy/${MODULE}`, import.meta.url)), 'utf8');
  if (text.split(OPENED).length !== 2) throw new Error(`${MODULE} opens servers in another way`);
  return {
    files: { [MODULE]: text.replace(OPENED, OPENED.replace('    return', `${freeze}    return`)) },
    // The last one comes first.
    edit: (_file, config) => config.replace(SEARCH_PATH, `${SEARCH_PATH}\n  lua-prepend-path /etc/corelane/?.lua`),
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
  expect((await logs(home.haproxy)).split(FROZEN).length - 1).toBeGreaterThanOrEqual(await home.handedOver());
  const fewest = Math.min(...begun.map(({ length }) => length));
  figure('fewest requests that one of four pods renders', fewest, `of ${ids.length}`, '> 10');
  // Several servers were open at a time, for different peers.
  for (const there of begun) expect(there.length).toBeGreaterThan(10);
  // A ticket that somebody else has issued, or that was used before, is refused.
  for (const pod of peers) expect(await pod.metric('haproxy_frontend_requests_denied_total{proxy="peers"}')).toBe(0);
});
