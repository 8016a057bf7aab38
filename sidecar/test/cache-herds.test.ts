/** One render for all who ask for a page at the same time: also where it fails, is personal, or somebody leaves. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { herd, ownPage, page, renders, seconds, statuses, statusOf, waiters } from './cache.ts';

let pod: Pod;
beforeAll(async () => {
  // No more may wait for a worker than this: those who wait for a page are not among them.
  const queue = { maxLength: 8 };
  pod = await Pod.start({ workersPerPod: 2, queue, cache: { enabled: true } });
});
afterAll(() => pod?.stop());

test('a client does not leave the others by a header of the proxies', async () => {
  const path = page('apart', 'max-age=60', '&hold=1');
  const first = pod.get(path);
  await pod.begun('apart');
  const others = ['a', 'b'].map((name) => pod.get(path, { headers: { 'X-Corelane-Class': name } }));
  await waiters(pod, 2);
  pod.release('apart');
  expect((await Promise.all([first, ...others])).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(renders(pod, 'apart')).toBe(1);
});

test('at the end of a page, too', async () => {
  const path = page('expiry', 'max-age=2', '&hold=1');
  const first = pod.get(path);
  await pod.begun('expiry');
  pod.release('expiry');
  await first;
  await seconds(3.2);
  await docker('exec', pod.workers[0] as string, 'rm', '-f', '/events/lines.expiry');
  const answers = await herd(pod, path, 50);
  await until('one of them is rendered', () => renders(pod, 'expiry') === 2);
  pod.release('expiry');
  expect(statuses(await Promise.all(answers))).toEqual([200]);
  expect(renders(pod, 'expiry')).toBe(2);
});

test('herds of several pages do not wait for each other', async () => {
  const held = await herd(pod, page('slow', 'max-age=600', '&hold=1'), 10);
  const quick = await Promise.all(Array.from({ length: 10 }, () => pod.get(page('quick'))));
  expect([statuses(quick), renders(pod, 'quick')]).toEqual([[200], 1]);
  pod.release('slow');
  expect(statuses(await Promise.all(held))).toEqual([200]);
  expect(renders(pod, 'slow')).toBe(1);
});

test('a herd whose render fails is over after one more of its first client alone', async () => {
  const path = ownPage('fails', 'max-age=600', '&hold=1&status=500');
  const answers = await herd(pod, path, 40);
  pod.release('fails');
  const all = await Promise.all(answers);
  expect(renders(pod, 'fails')).toBe(2);
  expect(all.filter(({ status }) => status === 500)).toHaveLength(1);
  const told = all.filter(({ status }) => status !== 500);
  expect(told.map(({ headers }) => headers['x-corelane-error'])).toEqual(Array(39).fill('render-failed'));
  expect([statuses(told), told[0]?.headers['retry-after']]).toEqual([[503], '1']);
});

test('a herd whose page fails without what a client sends: two renders for all, then one for each', async () => {
  const path = ownPage('needs', 'max-age=600', '&hold=1&needs=accept-language');
  const answers = await herd(pod, path, 6, { headers: { 'accept-language': 'de' } });
  pod.release('needs');
  const all = await Promise.all(answers);
  expect([statuses(all), renders(pod, 'needs')]).toEqual([[200], 8]);
  expect(new Set(all.map(statusOf))).toEqual(new Set(['Corelane; fwd=miss; detail=error']));
});

test('a herd whose page kills workers costs two of them', async () => {
  const path = page('kills', 'max-age=600', '&hold=1&die=1');
  const answers = await herd(pod, path, 40);
  pod.release('kills');
  const all = await Promise.all(answers);
  expect(statuses(all)).toEqual([502]);
  expect(new Set(all.map(({ headers }) => headers['x-corelane-error']))).toEqual(new Set(['worker-died']));
  expect(renders(pod, 'kills')).toBe(2);
});

test('a worker that dies with the page of a herd loses nobody his page', async () => {
  const path = page('dies-once', 'max-age=600', '&hold=1&die=once');
  const answers = await herd(pod, path, 40);
  pod.release('dies-once');
  expect(statuses(await Promise.all(answers))).toEqual([200]);
  expect(renders(pod, 'dies-once')).toBe(2);
});

test('pages that fail one after the other leave their places to others', async () => {
  // More than there are places for herds, in less than a second.
  for (const n of Array.from({ length: 10 }, (_unused, index) => index)) {
    const four = ['a', 'b', 'c', 'd'].map((one) => pod.get(ownPage(`fails-${n}-${one}`, 'max-age=60', '&status=500')));
    expect(statuses(await Promise.all(four))).toEqual([500]);
  }
  const answers = await herd(pod, page('after-them', 'max-age=600', '&hold=1'), 20);
  pod.release('after-them');
  expect(statuses(await Promise.all(answers))).toEqual([200]);
  expect(renders(pod, 'after-them')).toBe(1);
});

test('a client that leaves takes no page from the others', async () => {
  const path = page('leaves', 'max-age=600', '&hold=1');
  const leaving = new AbortController();
  const first = pod.get(path, { signal: leaving.signal }).catch(() => 'gone');
  await pod.begun('leaves');
  const others = Array.from({ length: 10 }, () => pod.get(path));
  await waiters(pod, 10);
  leaving.abort();
  expect(await first).toBe('gone');
  pod.release('leaves');
  expect(statuses(await Promise.all(others))).toEqual([200]);
  expect(renders(pod, 'leaves')).toBe(1);
});

test('a page that is for nobody else is rendered for each, and once before, and later herds go to the workers at once', async () => {
  const path = ownPage('own', 'private', '&hold=1');
  const answers = await herd(pod, path, 6);
  pod.release('own');
  expect(statuses(await Promise.all(answers))).toEqual([200]);
  expect(renders(pod, 'own')).toBe(7);
  await docker('exec', pod.workers[0] as string, 'rm', '-f', '/events/lines.own');
  const later = Array.from({ length: 2 }, () => pod.get(path));
  await until('both workers have one', () => renders(pod, 'own') === 9);
  pod.release('own');
  expect(statuses(await Promise.all(later))).toEqual([200]);
});

test('while no worker is up a page of before is given out', async () => {
  const path = page('no-worker', 'max-age=1');
  const gone = await Pod.start({ workersPerPod: 1, cache: { enabled: true } });
  try {
    await gone.get(path);
    await seconds(2.2);
    await docker('kill', ...gone.workers);
    await until('no worker is up', async () => !(await gone.isUp(0)));
    // At once: when the time of the queue (120 s) is over it would be given out, too.
    const answer = await gone.get(path, { signal: AbortSignal.timeout(60_000) });
    expect([answer.status, statusOf(answer)]).toEqual([200, 'Corelane; hit']);
  } finally {
    await gone.stop();
  }
});

test('while no worker is up here another pod renders a page, and sees no client', async () => {
  const fleet = await Fleet.start(2, { workersPerPod: 1, cache: { enabled: true } }, PATIENT_PEERS);
  try {
    const [gone, other] = fleet.pods as [Pod, Pod];
    const busy = other.get('/?hold=1&id=busy');
    await other.begun('busy');
    await docker('kill', ...gone.workers);
    await until('no worker is up', async () => !(await gone.isUp(0)));
    const answer = gone.get(page('elsewhere'));
    const inWaitingRoom = 'haproxy_frontend_current_sessions{proxy="waiting-room"}';
    await until('it waits', async () => (await gone.metric(inWaitingRoom)) === 1);
    fleet.release('busy');
    expect((await busy).status).toBe(200);
    const { status, body } = await answer;
    expect([status, renders(other, 'elsewhere')]).toEqual([200, 1]);
    const { headers } = JSON.parse(body);
    expect([headers['x-forwarded-for'], headers['x-real-ip']]).toEqual([undefined, undefined]);
  } finally {
    await fleet.stop();
  }
});
