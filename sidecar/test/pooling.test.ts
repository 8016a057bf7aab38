/** Pods share their work: who renders what, where it waits, and what a pod does that drains or is full. */

import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet, knownPeers } from '../../e2e/harness/engine/fleet.ts';
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { AS_NGINX, handOver, identityOf, message, reserved } from './peer.ts';
import { begunIn, hops, isReady, many, patient } from './pooling.ts';
import { rawConnection } from './raw.ts';

let fleet: Fleet;
/** How much the workers of each pod had begun before the test. */
let before: Map<Pod, number>;
beforeAll(async () => {
  const spec = { ...patient, workersPerPod: 1, webSockets: { enabled: true } };
  fleet = await Fleet.start(2, spec, { revision: 'same', ...PATIENT_PEERS });
});
afterAll(() => fleet?.stop());
beforeEach(async () => {
  // A slot of the test before may still be taken.
  for (const pod of fleet.pods)
    for (const proxy of ['line', 'workers'])
      await until(
        'it is idle',
        async () => (await pod.metric(`haproxy_backend_current_sessions{proxy="${proxy}"}`)) === 0,
      );
  before = new Map(fleet.pods.map((pod) => [pod, begunIn(pod).length]));
});

const begunSince = (pod: Pod) => begunIn(pod).slice(before.get(pod));

test('a WebSocket waits at home, where it is counted, also for the first worker', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const page = home.get('/?hold=1&id=page');
  await home.begun('page');
  const key = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
  const lines = ['GET /socket HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket', ...key];
  const socket = await rawConnection(home.port(PORTS.http));
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const waiting = 'haproxy_server_current_queue{proxy="line",server="slots"}';
  await until('it waits', async () => (await home.metric(waiting)) === 1);
  // The page behind it does not wait for it: the other pod has a worker.
  expect(hops(await home.get('/?id=behind'))).toBe(1);
  expect(received).toBe('');
  home.release('page');
  expect((await page).status).toBe(200);
  await until('it is a WebSocket', () => received.startsWith('HTTP/1.1 101'));
  expect(begunSince(other)).toEqual(['behind']);
  socket.destroy();
});

test('a slot that a peer has kept is for one request', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const before = await home.handedOver();
  const requests = [home.get('/?hold=1&id=long')];
  await home.begun('long');
  requests.push(home.get('/?hold=1&id=moved'));
  await other.begun('moved');
  requests.push(other.get('/?hold=1&id=own'));
  await other.queued(1);
  requests.push(home.get('/?id=waits'));
  await home.queued(1);
  // The slot goes to the other pod's own request. What waits must not follow the one that has been handed over.
  other.release('moved');
  await other.begun('own');
  home.release('long');
  await home.begun('waits');
  other.release('own');
  expect((await Promise.all(requests)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  // Without a ticket of its own it would have been turned away there.
  expect(await home.handedOver()).toBe(before + 1);
});

test('what comes from a peer and finds no slot waits for a worker of this pod, and not in the queue', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const [ticket] = await reserved(home, await identityOf(home), 'same');
  const long = home.get('/?hold=1&id=first');
  await home.begun('first');
  const late = handOver(home, ticket, message(AS_NGINX, 'GET /?id=late HTTP/1.1'));
  await until('it waits', async () => (await home.metric('haproxy_backend_current_queue{proxy="workers"}')) === 1);
  home.release('first');
  expect((await long).status).toBe(200);
  expect(await late).toMatch(/^HTTP\/1\.1 200 /);
  expect(begunSince(home)).toEqual(['first', 'late']);
  expect(begunSince(other)).toEqual([]);
});

test('a large body arrives whole, and no worker ever has two', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const body = Buffer.alloc(3 * 1024 * 1024, 'x');
  const rendering = many(8, (id) => home.get(`/?hold=1&id=${id}`, { method: 'POST', body }), 'large-');
  await until('the other pod has one', () => begunSince(other).length > 0);
  fleet.release(...Array.from({ length: 8 }, (_unused, index) => `large-${index}`));
  const answers = await rendering;
  expect(answers.map((answer) => JSON.parse(answer.body).bytes)).toEqual(Array(8).fill(body.length));
  for (const pod of fleet.pods) for (const { inFlight } of pod.events({ event: 'begin' })) expect(inFlight).toBe(1);
});

test('the largest head goes to a peer, and so does the head of its answer come back', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const page = home.get('/?hold=1&id=beside-large');
  await home.begun('beside-large');
  const headers = { 'x-a': 'a'.repeat(30_000), 'x-b': 'b'.repeat(30_000) };
  const moved = await home.get('/?id=moved-large&head=60000', { headers });
  expect([moved.status, hops(moved), moved.headers['x-long']]).toEqual([200, 1, 'x'.repeat(60_000)]);
  expect(JSON.parse(moved.body).headers).toMatchObject(headers);
  expect(begunSince(other)).toEqual(['moved-large']);
  home.release('beside-large');
  expect((await page).status).toBe(200);
});

test('a sign-in that a peer was rendering when its worker died is not rendered again', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const page = home.get('/?hold=1&id=beside-sign-in');
  await home.begun('beside-sign-in');
  const signIn = home.get('/auth/callback?hold=1&id=sign-in');
  const { worker, pid } = await other.begun('sign-in');
  await other.kill(worker, pid, 'KILL');
  const { status, headers } = await signIn;
  expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
  home.release('beside-sign-in');
  expect((await page).status).toBe(200);
  expect(fleet.pods.map(begunSince)).toEqual([['beside-sign-in'], ['sign-in']]);
  await until('there is another worker', () => other.server(worker) !== pid);
  await until('it is back', () => other.isUp(worker));
});

// The last one: that pod drains from then on.
test('a pod that drains hands over what it has', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const long = other.get('/?hold=1&id=stays');
  await other.begun('stays');
  const waiting = many(2, (id) => home.get(`/?hold=1&id=${id}`), 'moves-');
  await home.queued(1);
  await docker('exec', home.haproxy, 'touch', '/run/corelane/drain/begun');
  await until('it drains', async () => !(await isReady(home)));
  other.release('stays');
  await until('the other pod has taken one', () => begunSince(other).length === 2);
  fleet.release('moves-0', 'moves-1');
  expect((await Promise.all([long, ...(await waiting)])).map(({ status }) => status)).toEqual([200, 200, 200]);
});

describe('readiness', () => {
  const small: Partial<RenderServiceSpecInput> = { workersPerPod: 1, queue: { maxLength: 2, timeout: '60s' } };

  test('a pod with a full queue leaves while another has room, and comes back', async () => {
    const fleet = await Fleet.start(1, small, { revision: 'old' });
    try {
      const [home] = fleet.pods as [Pod];
      const other = await fleet.add(small, { revision: 'new' });
      await fleet.untilAllKnown();
      expect(await knownPeers(home)).toBe(2);
      const busy = many(3, (id) => home.get(`/?hold=1&id=${id}`));
      const answer = await until('it is not ready', async () => {
        const readiness = await home.get('/readyz', { port: PORTS.health });
        return readiness.status === 503 ? readiness : undefined;
      });
      expect(answer.body).toBe('queue-full');
      expect(await isReady(other)).toBe(true);
      home.release('r0', 'r1', 'r2');
      await until('it is ready again', () => isReady(home));
      expect((await busy).map(({ status }) => status)).toEqual([200, 200, 200]);
    } finally {
      await fleet.stop();
    }
  });
});
