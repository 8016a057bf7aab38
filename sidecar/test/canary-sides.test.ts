/** A canary: who is on which side by what he sends, what the application sees of it, and what is counted. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { logs } from '../../e2e/harness/engine/docker.ts';
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { CANARY_FILE, PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { liveSerial, renderLive } from '../../operator/src/render/live.ts';
import {
  CANARY,
  CanaryFleet,
  COOKIE,
  canaryAt,
  livePage,
  NAVIGATION,
  placeOf,
  type Side,
  STABLE,
  setCanary,
  sideMetric,
} from './canary.ts';
import { rawConnection } from './raw.ts';

const SPEC: Partial<RenderServiceSpecInput> = { workersPerPod: 1, queue: { maxLength: 100 } };

let all: CanaryFleet;
let stable: Pod;
let canary: Pod;
beforeAll(async () => {
  all = await CanaryFleet.start(1, 1, SPEC, PATIENT_PEERS);
  [stable, canary] = [all.stable[0] as Pod, all.canary[0] as Pod];
  await all.untilSidesKnown();
});
afterAll(() => all?.stop());
afterEach(() => all.set(undefined));

let count = 0;
/** Where a request to either pod is rendered: it must not matter to which. */
async function sideOf(path: string, headers: Record<string, string> = {}): Promise<Side | undefined> {
  const sides: (Side | undefined)[] = [];
  for (const pod of all.pods) {
    count += 1;
    const id = `side-${count}`;
    expect((await pod.get(`${path}${path.includes('?') ? '&' : '?'}id=${id}`, { headers })).status).toBe(200);
    sides.push(all.sideOf(id));
  }
  expect(new Set(sides).size).toBe(1);
  return sides[0];
}
const seenOf = ({ body }: Answer): Record<string, string> => JSON.parse(body).headers;
/** A place that is on the canary's side at any share, and one that is on the other side but for 100 %. */
const OFFSET = Number.parseInt(CANARY, 16) % 10_000;
const FIRST = String((20_000 - OFFSET) % 10_000);
const LAST = String((20_000 - OFFSET - 1) % 10_000);

test('by header, cookie and query, whatever the share is, and none of these is counted', async () => {
  await all.set(
    canaryAt(1, {
      match: [
        { header: 'X-Tester', value: 'yes, of course' },
        { cookie: 'preview', value: '1' },
        { query: 'canary', value: 'a b' },
      ],
    }),
  );
  const assigned = () => sideMetric(stable, 'assigned', 'canary');
  const before = await assigned();
  const last = `${COOKIE}=${LAST}`;
  expect(await sideOf('/', { 'x-tester': 'yes, of course' })).toBe('canary');
  expect(await sideOf('/', { cookie: `preview=1; ${last}` })).toBe('canary');
  expect(await sideOf('/?canary=a%20b', { cookie: last })).toBe('canary');
  const others: [path: string, headers: Record<string, string>][] = [
    ['/', { 'x-tester': 'yes' }],
    ['/', { 'x-tester': 'YES, OF COURSE' }],
    ['/', { 'x-tester': '' }],
    ['/', { preview: '1' }],
    ['/?canary=a', {}],
    ['/?canary=%', {}],
    ['/?xcanary=a%20b', {}],
    ['/?x=1%26canary=a%20b', {}],
  ];
  for (const [path, headers] of others) expect(await sideOf(path, { ...headers, cookie: last })).toBe('stable');
  await all.set(undefined);
  expect(await assigned()).toBe(before);
});

test('by a key: a name is on one side, in all pods and at each greater share', async () => {
  const keyed = (share: number) => canaryAt(share, { key: { header: 'X-User' } });
  const names = Array.from({ length: 60 }, (_unused, n) => `user-${n}`);
  const side = new Map<string, Side | undefined>();
  for (const share of [3_000, 6_000]) {
    await all.set(keyed(share));
    for (const name of names) {
      const now = await sideOf('/', { 'x-user': name, cookie: `${COOKIE}=${LAST}` });
      if (side.get(name) === 'canary') expect(now).toBe('canary');
      side.set(name, now);
    }
    const are = [...side.values()].filter((one) => one === 'canary').length;
    expect(Math.abs(are - (names.length * share) / 10_000)).toBeLessThan(15);
  }
  // Who has none has a place.
  expect(await sideOf('/', { cookie: `${COOKIE}=${FIRST}` })).toBe('canary');
});

test('a browser gets a place with its page, once, and nobody else gets one', async () => {
  await all.set(canaryAt(5_000));
  const page = await stable.get('/', { headers: NAVIGATION });
  expect(placeOf(page)).toEqual({
    place: expect.any(Number),
    attributes: 'Path=/; Max-Age=2592000; SameSite=Lax; HttpOnly',
  });
  const safe = await stable.get('/', { headers: { ...NAVIGATION, 'x-forwarded-proto': 'https' } });
  expect(placeOf(safe)?.attributes).toBe('Path=/; Max-Age=2592000; SameSite=Lax; HttpOnly; Secure');
  expect(placeOf(await stable.get('/', { headers: { accept: 'text/html' } }))).toBeDefined();
  for (const [path, call] of [
    ['/', { headers: { ...NAVIGATION, cookie: `${COOKIE}=${placeOf(page)?.place}` } }],
    ['/', { headers: { accept: 'text/html', 'sec-fetch-mode': 'cors' } }],
    ['/', { headers: { accept: '*/*' } }],
    ['/', { headers: NAVIGATION, method: 'POST' }],
    // A cache would give it to everybody.
    ['/?header=cache-control:Public,+max-age%3D60', { headers: NAVIGATION }],
    ['/?header=cache-control:s-maxage%3D60', { headers: NAVIGATION }],
    ['/?header=cache-control:max-age%3D60', { headers: NAVIGATION }],
    ['/?header=cdn-cache-control:max-age%3D60', { headers: NAVIGATION }],
  ] as const)
    expect([path, placeOf(await stable.get(path, call))]).toEqual([path, undefined]);
  for (const own of ['max-age%3D0', 'private,+max-age%3D60', 'no-cache'])
    expect(placeOf(await stable.get(`/?header=cache-control:${own}`, { headers: NAVIGATION }))).toBeDefined();
  await all.set(undefined);
  expect(placeOf(await stable.get('/', { headers: NAVIGATION }))).toBeUndefined();
  // Nothing is decided any more, not even in vain.
  expect(await logs(stable.haproxy)).not.toMatch(/runtime error/);
});

test.each<[string, string, string | undefined]>([
  ['alone', `${COOKIE}=5`, undefined],
  ['first', `${COOKIE}=5; a=b`, 'a=b'],
  ['in the middle', `a=b; ${COOKIE}=5; c=d`, 'a=b; c=d'],
  ['last', `a=b; c=d; ${COOKIE}=5`, 'a=b; c=d'],
  ['twice', `a=b; ${COOKIE}=5; c=d; ${COOKIE}=6`, 'a=b; c=d'],
  ['with blanks', `a=b;  ${COOKIE} =5;c=d`, 'a=b;  c=d'],
  ['a longer name', `x${COOKIE}=5; a=b`, `x${COOKIE}=5; a=b`],
  ['none', 'a=b; c=d', 'a=b; c=d'],
])('the application does not see the cookie: %s', async (_what, cookie, seen) => {
  for (const canary of [undefined, canaryAt(5_000)]) {
    await all.set(canary);
    expect(seenOf(await stable.get('/', { headers: { cookie } })).cookie).toBe(seen);
  }
});

test('a share of nothing, or whose end has come: all go to the stable side, also from pods of the canary', async () => {
  const everything = { match: [{ header: 'X-Tester', value: '1' }] };
  for (const one of [
    canaryAt(0, everything),
    canaryAt(10_000, { ...everything, untilSeconds: Math.floor(Date.now() / 1_000) - 1 }),
  ]) {
    await all.set(one);
    // What is in no serial comes with the next look.
    await until('it counts', async () => (await sideOf('/', { cookie: `${COOKIE}=${FIRST}` })) === 'stable');
    expect(await sideOf('/', { cookie: `${COOKIE}=${FIRST}`, 'x-tester': '1' })).toBe('stable');
  }
});

test('the end comes by itself, and moves without another serial', async () => {
  const endsIn = (seconds: number) => canaryAt(10_000, { untilSeconds: Math.floor(Date.now() / 1_000) + seconds });
  await all.set(endsIn(3_600));
  expect(await sideOf('/')).toBe('canary');
  const serial = await livePage(stable);
  await all.set(endsIn(2));
  await until('it is over', async () => {
    const id = `ends-${Date.now()}`;
    await stable.get(`/?id=${id}`);
    return all.sideOf(id) === 'stable';
  });
  await all.set(endsIn(3_600));
  await until('it is renewed', async () => {
    const id = `renewed-${Date.now()}`;
    await stable.get(`/?id=${id}`);
    return all.sideOf(id) === 'canary';
  });
  expect(await livePage(stable)).toBe(serial);
});

test('a place is what it says, or nothing', async () => {
  await all.set(canaryAt(1));
  expect(await sideOf('/', { cookie: `${COOKIE}=${FIRST}` })).toBe('canary');
  expect(await sideOf('/', { cookie: `${COOKIE}=${LAST}` })).toBe('stable');
  for (const value of [
    '',
    '-1',
    '10000',
    `${FIRST}x`,
    ` ${FIRST}`,
    '0x1',
    '1e3',
    '"1"',
    '9'.repeat(5_000),
    '%00',
    '\x01',
  ])
    if (value !== ` ${FIRST}`) {
      const socket = await rawConnection(stable.port(PORTS.http));
      socket.write(
        `GET /?id=x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept: text/html\r\nCookie: ${COOKIE}=${value}\r\n\r\n`,
      );
      let received = '';
      for await (const chunk of socket) received += chunk.toString('latin1');
      // Who has none gets one.
      if (received.startsWith('HTTP/1.1 200')) expect(received).toMatch(/^set-cookie: corelane-bucket=\d{1,4}; /im);
      else expect(received).toMatch(/^HTTP\/1\.1 400/);
    }
});

test('errors of either side are counted where it was decided, no answer among them', async () => {
  await all.set(canaryAt(1));
  const errors = async (side: Side) => (await sideMetric(stable, 'errors', side)) || 0;
  const before = { canary: await errors('canary'), stable: await errors('stable') };
  const at = (place: string) => ({ headers: { cookie: `${COOKIE}=${place}` } });
  expect((await stable.get('/?status=500', at(FIRST))).status).toBe(500);
  expect((await stable.get('/?status=500', at(LAST))).status).toBe(500);
  expect((await stable.get('/?status=404', at(FIRST))).status).toBe(404);
  // Its worker dies, and it is rendered by the other side, whose worker knows it.
  expect((await stable.get('/?id=again', at(LAST))).status).toBe(200);
  const again = await stable.get('/?die=once&id=again', at(FIRST));
  expect(again.status).toBe(200);
  expect(all.sideOf('again')).toBe('stable');
  expect(canary.events({ event: 'begin', id: 'again' })).toHaveLength(1);
  await until('they are counted', async () => (await errors('canary')) - before.canary === 2);
  expect((await errors('stable')) - before.stable).toBe(1);
  await until('its worker is back', () => canary.isUp(0));
});

test('what may be rendered once is not rendered by the other side as well', async () => {
  await all.set(canaryAt(10_000));
  const answer = await stable.get('/?die=1&id=once', { method: 'POST', body: 'x' });
  expect([answer.status, answer.headers['x-corelane-error']]).toEqual([502, 'worker-died']);
  expect(all.begun('once')).toEqual({ canary: 1, stable: 0 });
  await until('its worker is back', () => canary.isUp(0));
});

test('rules that are wrong change nothing, and the pod says so', async () => {
  const settings = canaryAt(5_000, { match: [{ header: 'X-Tester', value: '1' }] });
  await setCanary(stable, settings);
  const before = await livePage(stable);
  const file = join(stable.run, '../live', CANARY_FILE);
  for (const [text, problem] of [
    ['match header X-Tester 1', 'does not end with a line'],
    ['match header X-Tester\n', 'has a line that is none'],
    ['match path /x 1\n', 'has a line that is none'],
    ['match header X Tester: 1\n', undefined], // a value may have blanks
    ['match header X:Tester 1\n', 'has a line that is none'],
    ['match header X-Tester \x01\n', 'has a line that is none'],
    [`match header X-Tester ${'x'.repeat(257)}\n`, 'has a line that is none'],
    ['key header A\nkey cookie B\n', 'has two keys'],
    ['key query A\n', 'has a key that is none'],
    ['match header A 1\n'.repeat(9), 'has too many lines'],
    ['#'.repeat(8_192), 'is too long'],
  ] as const) {
    writeFileSync(file, text);
    const told = problem === undefined ? before : before.replace('\n', `\nproblem=of the canary ${problem}\n`);
    await until(`${JSON.stringify(text).slice(0, 40)}: ${problem}`, async () => (await livePage(stable)) === told);
  }
});

test('a pod that is of neither side decides all the same', async () => {
  const other = canaryAt(10_000, { revision: 'aaaaaaaaaa', stable: CANARY });
  await setCanary(stable, other);
  // Nobody of the first is there, so it is served by the second.
  expect((await stable.get('/?id=neither')).status).toBe(200);
  expect(all.sideOf('neither')).toBe('canary');
  expect(STABLE).not.toBe(CANARY);
});

test('a pod that keeps pages takes no part: it would give those of the canary to everybody, and after an abort', async () => {
  const pod = await Pod.start({ ...SPEC, cache: { enabled: true } }, { revision: STABLE });
  try {
    const settings = renderLive(pod.spec, undefined, undefined, canaryAt(0));
    pod.writeLive(settings);
    await until('it has them', async () => (await livePage(pod)) === `serial=${liveSerial(settings)}\n`);
    expect((await pod.get('/?id=kept')).status).toBe(200);
  } finally {
    await pod.stop();
  }
});
