/**
 * One render in the fleet: a pod that has not got a page asks its home, another pod, before it renders. A home that is
 * away costs nobody his page.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { FLEET_KEY, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { tokens } from './apps/peer-tokens.mjs';
import { ask as askNginx, ownPage, page, renders, statusOf } from './cache.ts';
import { expectOwnPages, expectRenderedHere, get, HOST, NAMES, pageOf, SPEC, total } from './cache-shared.ts';
import { mark } from './own-requests.ts';
import { AS_NGINX, ask, handOver, headerOf, identityOf, ME, message } from './peer.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await Fleet.start(2, SPEC, { revision: 'r1', ...PATIENT_PEERS });
  // Each has the key of the other from then on.
  const [one, other] = fleet.pods as [Pod, Pod];
  await pageOf(fleet, one, other);
  await pageOf(fleet, other, one);
});
afterAll(() => fleet?.stop());

test('a page that is for one alone is rendered with what makes it so, and for each', async () => {
  for (const n of NAMES.slice(0, 8)) {
    for (const [index, pod] of fleet.pods.entries()) {
      const { body } = await get(pod, ownPage(`own-${n}`, 'private'), { cookie: `user=${index}` });
      expect(JSON.parse(body).headers.cookie).toBe(`user=${index}`);
    }
    // Once for each, and once at most for each pod without what makes it so.
    expect(total(fleet, `own-${n}`)).toBeLessThanOrEqual(2 * fleet.pods.length);
  }
});

test('a page with a large head comes from its home, and is kept', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const { id, path } = await pageOf(fleet, home, other, 'max-age=600', '&head=60000');
  const before = total(fleet, id);
  for (const pod of [other, other, home]) {
    const { status, headers } = await get(pod, path);
    expect([status, headers['x-long']]).toEqual([200, 'x'.repeat(60_000)]);
  }
  expect(total(fleet, id)).toBe(before + 1);
});

test('a page that was changed here does not come back from its home', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const { id, path } = await pageOf(fleet, home, other);
  await get(home, path);
  await get(other, path);
  const before = total(fleet, id);
  expect((await other.get(`${path}&x=1`, { method: 'POST', headers: { host: HOST } })).status).toBe(200);
  const after = await get(other, path);
  expect([after.status, statusOf(after)]).toEqual([200, 'Corelane; fwd=uri-miss']);
  expect(total(fleet, id)).toBe(before + 2);
  // Now it is the new one there, too.
  expect(JSON.parse((await get(home, path)).body)).toEqual(JSON.parse(after.body));
  expect(total(fleet, id)).toBe(before + 2);
});

test('what a render has sent to its own site does not wait for the slots of the home', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const { id, path } = await pageOf(fleet, home, other);
  const [there, here] = [renders(home, id), renders(other, id)];
  const ids = [0, 1, 2, 3].map((n) => `taken-${n}`);
  // Not for the cache, so each pod renders its own.
  const held = ids.map((taken, n) =>
    get(n % 2 === 0 ? home : other, `/?hold=1&id=${taken}`, { authorization: 'Basic eDp5' }),
  );
  await until('all slots are taken', () => ids.every((taken) => total(fleet, taken) === 1));
  expect((await get(other, path, mark())).status).toBe(200);
  expect([renders(home, id), renders(other, id)]).toEqual([there, here + 1]);
  for (const pod of fleet.pods) pod.release(...ids);
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual(ids.map(() => 200));
});

test.each([
  ['a page', '/'],
  ['a tag', 'tag:tagged'],
])('what was purged here does not come back from a home that has not heard of it: %s', async (_what, item) => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const { id, path } = await pageOf(fleet, home, other, 'max-age=600', '&header=Cache-Tag:tagged');
  await get(home, path);
  const before = total(fleet, id);
  // This pod has not had the page, and its home has not heard of the purge.
  expect(await askNginx(other, 'POST', '/purge-pod', `X-Corelane-Purge: ${item}`)).toContain(' 200 OK');
  const after = await get(other, path);
  expect(statusOf(after)).toBe('Corelane; fwd=uri-miss');
  expect(total(fleet, id)).toBe(before + 1);
  expect(JSON.parse((await get(home, path)).body)).toEqual(JSON.parse(after.body));
  expect(total(fleet, id)).toBe(before + 1);
});

test('a home knows by what its pages differ', async () => {
  const [home, other] = fleet.pods as [Pod, Pod];
  const vary = '&header=Vary:Accept-Language,Cookie';
  const { path } = await pageOf(fleet, home, other, 'max-age=600', vary);
  const seen = async (pod: Pod, headers: Record<string, string>) => {
    const answer = await get(pod, path, headers);
    return [statusOf(answer), JSON.parse(answer.body).headers];
  };
  const member = { cookie: 'sid=1', 'accept-language': 'de' };
  const own = 'Corelane; fwd=miss; detail=cookie';
  expect(await seen(other, member)).toEqual([own, expect.objectContaining(member)]);
  for (const language of ['de', 'fr']) {
    const guest = { 'accept-language': language };
    for (const pod of [other, home]) expect((await seen(pod, guest))[1]).toMatchObject(guest);
    expect((await seen(other, guest))[0]).toBe('Corelane; hit');
  }
  expect(await seen(other, member)).toEqual([own, expect.objectContaining(member)]);
});

describe('what a peer may do', () => {
  /** A ticket for a page, and the proof that its response will have. */
  async function pageTicket(pod: Pod, revision = 'r1'): Promise<[ticket: string, proof: string]> {
    const identity = await identityOf(pod);
    const [token] = tokens(FLEET_KEY, 'question', ME, identity);
    const answer = await ask(pod, 'page', { 'X-Corelane-Token': token, 'X-Corelane-Own-Revision': revision });
    return tokens(FLEET_KEY, 'hand-over', headerOf(answer, 'X-Corelane-Reservation'), ME, identity);
  }
  const headers = { ...AS_NGINX, Host: HOST, 'X-Forwarded-Host': HOST };

  test('it gets a page with a ticket, once; and no worker by any other way', async () => {
    const [pod] = fleet.pods as [Pod, Pod];
    const [ticket, proof] = await pageTicket(pod);
    const answer = await handOver(pod, ticket, message(headers, `GET ${page('ticket')} HTTP/1.1`));
    expect([headerOf(answer, 'X-Corelane-Proof'), headerOf(answer, 'X-Corelane-Expires')]).toEqual([
      ...[proof, expect.stringMatching(/^@[0-9]+$/)],
    ]);
    expect(await handOver(pod, ticket, message(headers, `GET ${page('ticket')} HTTP/1.1`))).toBe('');
    expect(renders(pod, 'ticket')).toBe(1);
    for (const [line, more] of [
      ['POST /?id=no HTTP/1.1', { 'Content-Length': '0' }],
      ['GET /?id=no HTTP/1.1', { Authorization: 'Basic eDp5' }],
      ['GET /?id=no HTTP/1.1', { 'X-Forwarded-Host': 'evil.example/x' }],
      ['GET /?id=no HTTP/1.1', { 'Cache-Control': 'no-store' }],
    ] as const) {
      const [another] = await pageTicket(pod);
      expect(await handOver(pod, another, message({ ...headers, ...more }, line))).toMatch(/^$|^HTTP\/1\.1 400 /);
    }
    expect(renders(pod, 'no')).toBe(0);
  });

  test('a program in the pod gets no page at the door for peers', async () => {
    const [pod] = fleet.pods as [Pod, Pod];
    const look = "console.log(require('node:fs').existsSync('/run/corelane'))";
    expect((await pod.inWorker(0, look)).trim()).toBe('false');
    // Nor does the socket answer without the header of HAProxy.
    const talk = `
      my $socket = IO::Socket::UNIX->new("/run/corelane/pages.sock") or die "$!";
      print $socket "GET /?id=inside HTTP/1.0\\r\\nHost: a\\r\\n\\r\\n";
      print scalar <$socket>;`;
    expect(await docker('exec', pod.haproxy, 'perl', '-MIO::Socket::UNIX', '-e', talk)).toMatch(/^HTTP\/1\.1 404 /);
    expect(renders(pod, 'inside')).toBe(0);
  });
});

describe('a home that has no page for others', () => {
  test('a render that fails there is tried here, and the home is not asked again', async () => {
    const [home, other] = fleet.pods as [Pod, Pod];
    const { id, path } = await pageOf(fleet, home, other, 'max-age=600', '&status=500', ownPage);
    const [there, here] = [renders(home, id), renders(other, id)];
    expect((await get(other, path)).status).toBe(500);
    // The second one here has all that its client sent.
    expect([renders(home, id), renders(other, id)]).toEqual([there + 1, here + 2]);
  });

  test('dead: others render it', async () => {
    const other = await Fleet.start(2, SPEC);
    try {
      await expectRenderedHere(
        other,
        ({ haproxy }) => docker('kill', haproxy),
        async () => {},
      );
    } finally {
      await other.stop();
    }
  });
});

describe('pods that have no pages in common', () => {
  test('another revision: each renders its own', async () => {
    const mixed = await Fleet.start(1, SPEC, { revision: 'old', ...PATIENT_PEERS });
    try {
      await mixed.add(SPEC, { revision: 'new', ...PATIENT_PEERS });
      await mixed.untilAllKnown();
      await expectOwnPages(mixed);
    } finally {
      await mixed.stop();
    }
  });
});
