/**
 * Pods share their work: who renders what, and what happens when the other pod goes away in the middle of it. In load:
 * fleets of their own for each test, stall limits of a second, and what depends on when a peer asks or renders.
 */

import { docker, SIDECAR_IMAGE } from '../../e2e/harness/engine/docker.ts';
import { Fleet, knownPeers } from '../../e2e/harness/engine/fleet.ts';
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { begunIn, hops, isReady, many, patient } from './pooling.ts';

let fleet: Fleet;
afterEach(() => fleet?.stop());

/** Lines of the access log but for those that waited for the start. */
async function rendered(pod: Pod): Promise<Record<string, unknown>[]> {
  return (await pod.accessLog()).filter(({ uri }) => uri !== pod.spec.ping.path);
}

test('what finds no slot at home is rendered by pods that have one, once, as if it had come to them', async () => {
  fleet = await Fleet.start(3, { ...patient, workersPerPod: 2 });
  const [home, ...others] = fleet.pods as [Pod, ...Pod[]];
  const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'X-Request-ID': 'same' };
  const rendering = many(6, (id) => home.get(`/?hold=1&id=${id}`, { headers }));
  await until('all are being rendered', () => fleet.pods.flatMap(begunIn).length === 6);
  fleet.release('r0', 'r1', 'r2', 'r3', 'r4', 'r5');
  const answers = await rendering;
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
  expect(fleet.pods.map((pod) => begunIn(pod).length)).toEqual([2, 2, 2]);
  expect(answers.map(hops).sort()).toEqual([0, 0, 1, 1, 1, 1]);
  const seen = answers.map(({ body }) => JSON.parse(body).headers);
  for (const name of ['traceparent', 'x-request-id', 'x-forwarded-for', 'host'])
    expect(new Set(seen.map((all) => all[name])).size).toBe(1);
  for (const { headers: sent } of answers) expect(Object.keys(sent).join()).not.toContain('corelane');

  const log = await until('all are in the log', async () => {
    const lines = await rendered(home);
    return lines.length >= 6 ? lines : undefined;
  });
  expect(log).toHaveLength(6);
  expect(log.filter(({ pod }) => pod === '')).toHaveLength(2);
  expect(new Set(log.map(({ pod, worker }) => `${pod} ${worker}`)).size).toBe(6);
  for (const pod of others) expect(await rendered(pod)).toEqual([]);
});

test('pods help each other over IPv6', async () => {
  fleet = await Fleet.start(2, { ...patient, workersPerPod: 1 }, { ipv6: true });
  const [home, other] = fleet.pods as [Pod, Pod];
  const peers = await home.runtimeApi('show servers state peers');
  expect(peers).toContain(` ${await other.addressIpv6()} `);
  expect(peers).not.toContain(await other.address());
  const answers = await many(4, (id) => home.get(`/?ms=100&id=${id}`));
  expect(answers.map(({ status }) => status)).toEqual(Array(4).fill(200));
  expect(begunIn(other).length).toBeGreaterThan(0);
});

test('nothing is handed over while there is a free slot at home', async () => {
  fleet = await Fleet.start(2, { ...patient, workersPerPod: 2 });
  const [home, other] = fleet.pods as [Pod, Pod];
  for (let round = 0; round < 20; round += 1) await many(2, (id) => home.get(`/?ms=5&id=${id}-${round}`));
  expect(begunIn(home)).toHaveLength(40);
  expect(begunIn(other)).toEqual([]);
});

test('a worker that becomes free elsewhere takes what has waited longest', async () => {
  fleet = await Fleet.start(2, { ...patient, workersPerPod: 1 });
  const [home, other] = fleet.pods as [Pod, Pod];
  const long = home.get('/?hold=1&id=long');
  await home.begun('long');
  // Longer than a refusal is remembered (pooling/offering.lua, WANTED_MS): who waits must have asked again.
  const short = other.get('/?ms=1000&id=short');
  await other.begun('short');
  const waiting: Promise<Answer>[] = [];
  for (const id of ['first', 'second', 'third']) {
    waiting.push(home.get(`/?ms=10&id=${id}`));
    await home.queued(waiting.length);
  }
  // So far only this pod has asked itself: the headless Service names it as well.
  const questions = () => home.metric('haproxy_frontend_http_requests_total{proxy="peers"}');
  const before = await questions();
  await Promise.all([...waiting, short]);
  expect(begunIn(other)).toEqual(['short', 'first', 'second', 'third']);
  // Nobody has reason to ask here: the other one has offered its slot.
  expect(await questions()).toBeGreaterThan(before);
  home.release('long');
  await long;
});

test('requests of a pod without a worker go to its peers, and what one got stuck in comes back', async () => {
  fleet = await Fleet.start(2, { ...patient, workersPerPod: 1, watchdog: { stallTimeout: '1s' } });
  const [home, other] = fleet.pods as [Pod, Pod];
  await docker('rm', '--force', home.workers[0] as string);
  const answers = await many(4, (id) => home.get(`/?ms=20&id=${id}`));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(answers.map(hops)).toEqual([1, 1, 1, 1]);
  expect(begunIn(other)).toHaveLength(4);
  const stuck = await home.get('/?loop=1&id=stuck', { method: 'POST' });
  expect([stuck.status, stuck.headers['x-corelane-error']]).toEqual([502, 'worker-stuck']);
});

test('pods of another revision share nothing, unless they are told to', async () => {
  fleet = await Fleet.start(1, { ...patient, workersPerPod: 1 }, { revision: 'old' });
  const [home] = fleet.pods as [Pod];
  const other = await fleet.add({ ...patient, workersPerPod: 1 }, { revision: 'new' });
  await fleet.untilAllKnown();
  const answers = await many(3, (id) => home.get(`/?ms=200&id=${id}`));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(begunIn(other)).toEqual([]);
  await fleet.stop();

  const mixed = { ...patient, workersPerPod: 1, pooling: { acrossRevisions: true } };
  fleet = await Fleet.start(1, mixed, { revision: 'old' });
  const newer = await fleet.add(mixed, { revision: 'new' });
  await fleet.untilAllKnown();
  await many(4, (id) => (fleet.pods[0] as Pod).get(`/?ms=200&id=${id}`));
  expect(begunIn(newer).length).toBeGreaterThan(0);
});

test('pooling.enabled: false keeps everything at home, and takes nothing from a pod that still shares', async () => {
  fleet = await Fleet.start(1, { ...patient, workersPerPod: 1 });
  const [home] = fleet.pods as [Pod];
  const other = await fleet.add({ ...patient, workersPerPod: 1, pooling: { enabled: false } });
  await fleet.untilAllKnown();
  const answers = await Promise.all(
    fleet.pods.map((pod, index) => many(3, (id) => pod.get(`/?ms=300&id=${id}`), `p${index}-`)),
  );
  expect(answers.flat().map(({ status }) => status)).toEqual(Array(6).fill(200));
  for (const pod of [home, other]) expect(begunIn(pod)).toHaveLength(3);
});

test('a request that gets stuck in another pod: the pod that it came to knows where', async () => {
  fleet = await Fleet.start(2, { ...patient, workersPerPod: 2, watchdog: { stallTimeout: '1s' } });
  const [home, other] = fleet.pods as [Pod, Pod];
  const busy = many(2, (id) => home.get(`/?hold=1&id=${id}`));
  await Promise.all(['r0', 'r1'].map((id) => home.begun(id)));
  // The worker that a peer asks first must not be the right one by chance.
  const own = other.get('/?hold=1&id=own');
  await other.begun('own');
  const stuck = await home.get('/?loop=1&id=stuck', { method: 'POST' });
  expect(begunIn(other)).toEqual(['own', 'stuck']);
  expect([stuck.status, stuck.headers['x-corelane-error']]).toEqual([502, 'worker-stuck']);
  expect(Object.keys(stuck.headers)).not.toContain('x-corelane-stuck');
  const line = await until('it is in the log', async () => (await rendered(home)).find(({ status }) => status === 502));
  const place = expect.stringMatching(/^render \/app\/worker\.mjs:[0-9]+$/);
  expect(line).toMatchObject({ error: 'worker-stuck', stuckIn: place, pod: expect.stringMatching(/./) });

  // A worker that just dies has no such reason, wherever it was.
  const died = await home.get('/?exit=1&id=died', { method: 'POST' });
  expect(begunIn(other)).toEqual(['own', 'stuck', 'died']);
  expect([died.status, died.headers['x-corelane-error']]).toEqual([502, 'worker-died']);
  fleet.release('r0', 'r1', 'own');
  await Promise.all([busy, own]);
});

test('a POST whose worker in another pod dies before it has begun it is rendered, once', async () => {
  fleet = await Fleet.start(2, { ...patient, workersPerPod: 1 });
  const [home, other] = fleet.pods as [Pod, Pod];
  const busy = home.get('/?hold=1&id=busy');
  await home.begun('busy');
  // One that is idle, from another request of this peer, is not for the next one: its end would name no worker.
  const idle = 'haproxy_server_idle_connections_current{proxy="workers",server="worker-0"}';
  await until('a connection is kept', async () => {
    await home.get('/?id=warm', { method: 'POST' });
    return (await other.metric(idle)) > 0;
  });
  const rendered = () => [home, other].flatMap(begunIn).filter((id) => id !== 'warm');
  const frozen = other.server(0);
  await other.kill(0, frozen, 'STOP');
  const post = home.get('/?id=post', { method: 'POST', body: 'x'.repeat(300_000) });
  const sessions = 'haproxy_server_current_sessions{proxy="workers",server="worker-0"}';
  await until('the other pod has it', async () => (await other.metric(sessions)) === 1);
  await other.kill(0, frozen, 'KILL');
  expect((await post).status).toBe(200);
  expect(rendered().sort()).toEqual(['busy', 'post']);

  // One that it has begun is not.
  const begun = home.get('/?hold=1&id=begun', { method: 'POST' });
  const { pid } = await other.begun('begun');
  await other.kill(0, pid, 'KILL');
  fleet.release('begun');
  expect((await begun).headers['x-corelane-error']).toBe('worker-died');
  expect(rendered().sort()).toEqual(['begun', 'busy', 'post']);
  fleet.release('busy');
  await busy;
});

test('a new pod is found and takes what waits', async () => {
  fleet = await Fleet.start(1, { ...patient, workersPerPod: 1 });
  const [home] = fleet.pods as [Pod];
  const waiting = many(3, (id) => home.get(`/?hold=1&id=${id}`));
  await home.queued(2);
  const second = await fleet.add({ ...patient, workersPerPod: 1 });
  await until('the new pod takes one', () => begunIn(second).length > 0);
  fleet.release('r0', 'r1', 'r2');
  await waiting;
});

test('a pod that drains takes nothing from others, and ends although they ask', async () => {
  fleet = await Fleet.start(2, { ...patient, workersPerPod: 1, drain: { delay: '0s', timeout: '10m' } });
  const [home, other] = fleet.pods as [Pod, Pod];
  const hook = docker('exec', home.haproxy, 'corelane-drain');
  const ended = docker('exec', home.nginx, 'corelane-drain');
  await until('it drains', async () => !(await isReady(home)));
  const busy = many(4, (id) => other.get(`/?hold=1&id=${id}`));
  await other.queued(3);
  await Promise.all([hook, ended]);
  expect(await home.drainHooks()).toEqual(['drained']);
  other.release('r0', 'r1', 'r2', 'r3');
  await busy;
  expect(begunIn(home)).toEqual([]);
});

test('connections that pods keep for their questions do not hold a HAProxy that stops', async () => {
  fleet = await Fleet.start(3, { ...patient, workersPerPod: 1, drain: { delay: '0s', timeout: '10m' } });
  const [home, other, gone] = fleet.pods as [Pod, Pod, Pod];
  const askEachOther = async (...pods: Pod[]) => {
    for (const pod of pods) await many(6, (id) => pod.get(`/?ms=50&id=${id}`));
  };
  await askEachOther(home, other, gone);
  await gone.stop();
  await until('one is no peer any more', async () => (await knownPeers(home)) === 2);
  await askEachOther(home, other);
  // Gracefully, as when kubelet replaces HAProxy because of a probe; one that has drained is ended at once.
  await docker('exec', home.haproxy, 'corelane-drain');
  await docker('kill', '--signal', 'TERM', home.haproxy);
  await until('the container ends', async () => !(await home.state(home.haproxy)).Running);
  expect((await other.get('/?id=after')).status).toBe(200);
});

test('a client cannot speak to the peers, nor for the proxies', async () => {
  fleet = await Fleet.start(2, { ...patient, workersPerPod: 1 });
  const [home] = fleet.pods as [Pod];
  const headers = { 'X-Corelane-Ask': 'slot', 'X-Corelane-Handed-Over': 'forged', 'X-Corelane-Anything': 'x' };
  const answers = await many(4, (id) => home.get(`/?ms=300&id=${id}`, { headers }));
  expect(answers.map(({ body }) => JSON.parse(body).id)).toEqual(['r0', 'r1', 'r2', 'r3']);
  expect(answers.map(hops).sort()).toEqual([0, 0, 1, 1]);
  expect(answers.map(({ body }) => body).join()).not.toMatch(/forged|x-corelane-a/);
});

/** Many at once, from everywhere, so that slots which were reserved are gone again and again. */
test('what has been handed over never travels on', async () => {
  fleet = await Fleet.start(3, { ...patient, workersPerPod: 1 });
  const answers = await Promise.all(
    fleet.pods.map((pod, index) => many(40, (id) => pod.get(`/?ms=${5 + index}&id=${id}`), `p${index}-`)),
  );
  expect(Math.max(...answers.flat().map(hops))).toBe(1);
  expect(answers.flat().every(({ status }) => status === 200)).toBe(true);
});

describe('a peer that goes away in the middle of hand-overs', () => {
  type Act = (peer: Pod) => Promise<unknown>;
  const nothing: Act = async () => {};
  const faults: [string, Act, Act][] = [
    ['killed', (peer) => docker('kill', peer.haproxy), nothing],
    ['frozen', (peer) => docker('pause', peer.haproxy), (peer) => docker('unpause', peer.haproxy)],
    ['cut-off', cutOff, nothing],
  ];

  // Nobody can know whether a request has begun in a pod that does not answer any more: a POST is not sent again.
  test.each(faults)('a %s peer costs no GET, and no POST but those that it had', async (name, fault, undo) => {
    fleet = await Fleet.start(3, { ...patient, workersPerPod: 2 });
    const [home, peer] = fleet.pods as [Pod, Pod];
    const body = Buffer.alloc(100_000, 'x');
    const answers = many(80, async (id) => {
      const number = Number(id.slice(1));
      // One after the other, so that hand-overs happen all the time.
      await new Promise((resolve) => setTimeout(resolve, 25 * number));
      return home.get(`/?ms=150&id=${id}`, number % 2 === 0 ? {} : { method: 'POST', body });
    });
    await until('the peer has rendered some', () => peer.events({ event: 'end' }).length > 3);
    await fault(peer);
    const failed = (await answers).flatMap(({ status }, number) => (status === 200 ? [] : [number]));
    await undo(peer);
    figure(`requests lost with a ${name} peer`, failed.length, 'of 80', `<= ${peer.spec.workersPerPod}, no GET`);
    expect(failed.filter((number) => number % 2 === 0)).toEqual([]);
    expect(failed.length).toBeLessThanOrEqual(peer.spec.workersPerPod);
    const posts = fleet.pods.flatMap(begunIn).filter((id) => Number(id.slice(1)) % 2 === 1);
    expect(new Set(posts).size).toBe(posts.length);
  });
});

/**
 * Drops every packet that comes in from outside, without a word. By a routing rule, from a container that may do that
 * in the pod's network: iptables would have to be on the host, and root's.
 */
function cutOff(peer: Pod): Promise<string> {
  const drop = 'ip rule add pref 1 lookup local && ip rule del pref 0 && ip rule add pref 0 iif eth0 blackhole';
  const options = ['--rm', '--user', '0', '--cap-add', 'NET_ADMIN', '--network', `container:${peer.holder}`];
  return docker('run', ...options, '--entrypoint', 'sh', SIDECAR_IMAGE, '-c', drop);
}

describe('readiness', () => {
  test('a fleet that is full everywhere stays ready everywhere', async () => {
    fleet = await Fleet.start(2, { workersPerPod: 1, queue: { maxLength: 2, timeout: '60s' } });
    const long = Promise.all(fleet.pods.map((pod, index) => pod.get(`/?hold=1&id=long-${index}`)));
    // First the workers: a free one would take what waits in the other pod.
    for (const [index, pod] of fleet.pods.entries()) await pod.begun(`long-${index}`);
    const waiting = Promise.all(fleet.pods.map((pod, index) => many(2, (id) => pod.get(`/?id=${id}`), `p${index}-`)));
    for (const pod of fleet.pods) await pod.queued(2);
    // It takes two seconds of a full queue; what must not happen can only be looked for a while.
    const end = Date.now() + 3500;
    while (Date.now() < end) {
      for (const pod of fleet.pods) expect(await isReady(pod)).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    fleet.release('long-0', 'long-1');
    await Promise.all([long, waiting]);
  });
});
