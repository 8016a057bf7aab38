/** A canary and those who mean no good: clients choose headers, neighbours talk to the peers' port. */
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { FLEET_KEY, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { tokens } from './apps/peer-tokens.mjs';
import { CANARY, CanaryFleet, COOKIE, canaryAt, STABLE, sideMetric } from './canary.ts';
import { AS_NGINX, ask, handOver, headerOf, identityOf, ME, message } from './peer.ts';

let all: CanaryFleet;
let stable: Pod;
let canary: Pod;
beforeAll(async () => {
  all = await CanaryFleet.start(1, 1, { workersPerPod: 1, queue: { maxLength: 2 } }, PATIENT_PEERS);
  [stable, canary] = [all.stable[0] as Pod, all.canary[0] as Pod];
  await all.untilSidesKnown();
});
afterAll(() => all?.stop());
beforeEach(() =>
  all.set(
    canaryAt(5_000, {
      match: [
        { query: 'canary', value: '1' },
        { cookie: 'preview', value: '1' },
      ],
    }),
  ),
);

test('no header of a client decides, reaches a peer, or is believed', async () => {
  await all.set(canaryAt(1));
  const before = await sideMetric(stable, 'assigned', 'canary');
  for (const [name, value] of [
    ['X-Corelane-Revision', CANARY],
    ['X-Corelane-Side', 'canary'],
    ['X-Corelane-Handed-Over', '1'],
    ['X-Corelane-Ask', 'side'],
    ['X-Corelane-Ticket', ME],
    ['X-Corelane-Reservation', ME],
  ] as const) {
    const headers = {
      [name]: value,
      cookie: `${COOKIE}=${(20_000 - (Number.parseInt(CANARY, 16) % 10_000) - 1) % 10_000}`,
    };
    const answer = await stable.get(`/?id=${name}`, { headers });
    expect([answer.status, all.sideOf(name)]).toEqual([200, 'stable']);
    expect(JSON.parse(answer.body).headers[name.toLowerCase()]).toBeUndefined();
  }
  expect(await sideMetric(stable, 'assigned', 'canary')).toBe(before);
});

describe('the entrance of peers', () => {
  const ofSide = async (headers: Record<string, string>) => {
    const [token] = tokens(FLEET_KEY, 'question', ME, await identityOf(canary));
    return ask(canary, 'side', { 'X-Corelane-Token': token, 'X-Corelane-Revision': CANARY, ...headers });
  };

  test('without the key nobody learns a revision, or gets a place', async () => {
    for (const what of ['side', 'revision']) {
      expect(await ask(canary, what, { 'X-Corelane-Revision': CANARY })).toBe('');
      expect(await ask(canary, what, { 'X-Corelane-Token': 'e'.repeat(32), 'X-Corelane-Revision': CANARY })).toBe('');
    }
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ['its own revision', {}, /\r\n\r\nyes$/],
    ['the other revision', { 'X-Corelane-Revision': STABLE }, /\r\n\r\nother$/],
    ['no revision', { 'X-Corelane-Revision': '' }, /\r\n\r\nother$/],
    ['part of a revision', { 'X-Corelane-Revision': CANARY.slice(1) }, /\r\n\r\nother$/],
    ['a body beyond maxSize', { 'X-Corelane-Length': '10485761' }, /\r\n\r\nnone$/],
    ['a body that is no number', { 'X-Corelane-Length': 'x' }, /\r\n\r\nyes$/],
    ['a body beyond all numbers', { 'X-Corelane-Length': '9'.repeat(400) }, /\r\n\r\nnone$/],
  ])('with the key: %s', async (_what, headers, answer) => {
    expect(await ofSide(headers)).toMatch(answer);
    expect(headerOf(await ofSide(headers), 'X-Corelane-Revision')).toBe(CANARY);
    // What was kept is free again.
    await until('there is a slot', async () => /yes$/.test(await ofSide({})));
  });

  test('a place is for one request, and the queue stays as long as it may be', async () => {
    const identity = await identityOf(canary);
    const held = canary.get('/?hold=1&id=held&canary=1');
    await canary.begun('held');
    const places: [string, string][] = [];
    for (let n = 0; n < 6; n += 1) {
      // A promise is forgotten after 20 ms, and its ticket stays good.
      await until('there is room', async () => {
        const answer = await ofSide({});
        if (/\r\n\r\nwait \d+$/.test(answer))
          places.push(tokens(FLEET_KEY, 'hand-over', headerOf(answer, 'X-Corelane-Reservation'), ME, identity));
        return places.length > n;
      });
    }
    const come = places.map(([ticket], n) =>
      handOver(canary, ticket, message(AS_NGINX, `GET /?id=come-${n} HTTP/1.1`)),
    );
    const waiting = 'haproxy_server_current_queue{proxy="line",server="slots"}';
    await until('two wait', async () => (await canary.metric(waiting)) === 2);
    const again = await handOver(canary, (places[0] as [string, string])[0]);
    expect(again).toBe('');
    canary.release('held');
    expect((await held).status).toBe(200);
    const codes = (await Promise.all(come)).map((answer) => /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]).sort();
    expect(codes).toEqual(['200', '200', '503', '503', '503', '503']);
  });
});
