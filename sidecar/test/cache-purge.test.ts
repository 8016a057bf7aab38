/** Purges of cached pages: by a change, by what an application says, by a tag; in every pod. */
import { readFileSync } from 'node:fs';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { page, renders, statusOf } from './cache.ts';

const MISS = 'Corelane; fwd=uri-miss';
const HIT = 'Corelane; hit';

let fleet: Fleet;
let one: Pod;
let other: Pod;
beforeAll(async () => {
  const spec = { workersPerPod: 2, cache: { enabled: true, maxTtl: '1h' } };
  fleet = await Fleet.start(2, spec, { revision: 'r1', ...PATIENT_PEERS });
  [one, other] = fleet.pods as [Pod, Pod];
});
afterAll(() => fleet?.stop());

/** A page that both pods have, with these further parameters. */
async function kept(path: string, id: string, more = ''): Promise<string> {
  const target = `${path}${page(id, 'max-age=3600', more).slice(1)}`;
  for (const pod of fleet.pods) {
    await pod.get(target);
    expect(statusOf(await pod.get(target))).toBe(HIT);
  }
  return target;
}

/** Both pods still have one of these pages: now and then one shares a bucket with what was purged. */
async function expectThere(targets: string[]): Promise<void> {
  for (const pod of fleet.pods)
    expect(await Promise.all(targets.map(async (target) => statusOf(await pod.get(target))))).toContain(HIT);
}

/** Waits until a pod no longer has a page. */
async function gone(pod: Pod, target: string): Promise<void> {
  await until(`${target} is purged`, async () => statusOf(await pod.get(target)) === MISS);
}

/** A response of a worker that has this header. Not by the cache, which would have it rendered twice. */
const says = (pod: Pod, items: string, method = 'GET'): Promise<Answer> =>
  pod.get(`/says?id=says&header=${encodeURIComponent(`X-Corelane-Purge:${items}`)}`, {
    method,
    headers: { 'cache-control': 'no-cache' },
  });

/** Asks for a purge as a program of the pod does: status and text. */
const inside = (pod: Pod, items: string, where = 'purge'): Promise<string> =>
  pod.inWorker(
    0,
    `fetch('http://127.0.0.1:${PORTS.figures}/${where}', { method: 'POST', headers: { 'X-Corelane-Purge': ${JSON.stringify(items)} } })
      .then(async (answer) => console.log(answer.status, (await answer.text()).trim()))`,
  );

/** Runs the cache handler of the example for Next in a worker, as revalidatePath does. */
async function revalidatePath(pod: Pod, path: string): Promise<void> {
  await pod.inWorker(
    0,
    `${readFileSync('examples/frameworks/next/cache-handler.js', 'utf8')}\nnew module.exports().revalidateTag(['_N_T_${path}'])`,
  );
}

test('a successful change purges its page in every pod, and first where it was made', async () => {
  const path = await kept('/products/1', 'change');
  const beside = [await kept('/products/2', 'beside-2'), await kept('/products/3', 'beside-3')];
  expect((await one.get('/products/1?id=buy', { method: 'POST' })).status).toBe(200);
  expect(statusOf(await one.get(path))).toBe(MISS);
  await gone(other, path);
  await expectThere(beside);
});

test('an application purges what it names, with any response, and its client does not see that', async () => {
  for (const [index, method] of ['GET', 'POST'].entries()) {
    const [a, b, c, d] = [
      await kept('/named/a', `named-a${index}`),
      await kept('/named/b', `named-b${index}`, '&header=Cache-Tag:shoes,sale'),
      await kept('/named/c', `named-c${index}`, '&header=Cache-Tag:hats'),
      await kept('/named/d', `named-d${index}`, '&header=Cache-Tag:coats'),
    ] as const;
    const answer = await says(one, '/named/a?x=1, tag:sale, nonsense', method);
    expect([answer.status, answer.headers['x-corelane-purge']]).toEqual([200, undefined]);
    expect([statusOf(await one.get(a)), statusOf(await one.get(b))]).toEqual([MISS, MISS]);
    for (const path of [a, b]) await gone(other, path);
    await expectThere([c, d]);
  }
  expect(await docker('logs', one.haproxy)).toContain(
    'X-Corelane-Purge of a response: "nonsense" is neither a path, nor tag:NAME, nor *',
  );
});

test('a page that is shared purges what it names once, not for each who gets it', async () => {
  const path = await kept('/victim', 'victim');
  await one.get(page('purger', 'max-age=3600', '&header=X-Corelane-Purge:/victim'));
  await gone(other, path);
  expect(statusOf(await one.get(path))).toBe(MISS);
  const again = await one.get(page('purger', 'max-age=3600', '&header=X-Corelane-Purge:/victim'));
  expect([statusOf(again), again.headers['x-corelane-purge']]).toEqual([HIT, undefined]);
  expect(statusOf(await one.get(path))).toBe(HIT);
});

test('no client purges by a header', async () => {
  const path = await kept('/safe', 'safe');
  const headers = { 'x-corelane-purge': '*', 'cache-tag': 'a', 'x-corelane-changed': '9999999999999' };
  for (const method of ['GET', 'POST', 'PUT']) await one.get('/?id=hostile', { method, headers });
  expect(statusOf(await one.get(path))).toBe(HIT);
});

test('a program in a pod purges pages of all pods, or of its own alone', async () => {
  const [a, b] = [await kept('/program/a', 'program-a', '&header=Cache-Tag:p'), await kept('/program/b', 'program-b')];
  expect(await inside(one, '/program/b', 'purge-pod')).toBe('200 done');
  expect([statusOf(await one.get(b)), statusOf(await other.get(b))]).toEqual([MISS, HIT]);
  await revalidatePath(other, '/program/b');
  expect(statusOf(await other.get(b))).toBe(MISS);
  await gone(one, b);
  expect(await inside(other, 'tag:p')).toBe('200 done');
  expect(statusOf(await other.get(a))).toBe(MISS);
  await gone(one, a);
  expect(await inside(one, '*')).toBe('200 done');
  for (const path of [a, b]) {
    expect(statusOf(await one.get(path))).toBe(MISS);
    await gone(other, path);
  }
});

test('a page that is being rendered when its tag is purged is rendered again', async () => {
  const path = page('in-flight', 'max-age=3600', '&hold=in-flight&header=Cache-Tag:flying');
  const first = one.get(path);
  await one.begun('in-flight');
  expect(await inside(one, 'tag:flying')).toBe('200 done');
  one.release('in-flight');
  expect((await first).status).toBe(200);
  expect(statusOf(await one.get(path))).toBe(MISS);
  expect(renders(one, 'in-flight')).toBe(2);
  expect(statusOf(await one.get(path))).toBe(HIT);
});

test('a change in a worker of another pod purges first where it was asked for', async () => {
  const path = await kept('/lent', 'lent');
  const ids = ['busy-0', 'busy-1'];
  const busy = ids.map((id) => one.get(`/?id=${id}&hold=1`, { method: 'POST' }));
  for (const id of ids) await one.begun(id);
  expect((await one.get('/lent?id=lent-post', { method: 'POST' })).status).toBe(200);
  expect(renders(other, 'lent-post')).toBe(1);
  expect(statusOf(await one.get(path))).toBe(MISS);
  one.release(...ids);
  expect((await Promise.all(busy)).map(({ status }) => status)).toEqual([200, 200]);
});

test('a change is purged though its client has left', async () => {
  const path = await kept('/left', 'left');
  const aborted = new AbortController();
  const post = one.get('/left?id=left-post&hold=1', { method: 'POST', signal: aborted.signal });
  await one.begun('left-post');
  aborted.abort();
  await expect(post).rejects.toThrow();
  one.release('left-post');
  for (const pod of fleet.pods) await gone(pod, path);
});

test('a page whose changes are too many is purged after the last one', async () => {
  const path = await kept('/many', 'many');
  for (let n = 0; n < 5; n += 1) await one.get('/many?id=post', { method: 'POST' });
  // Of before the last one.
  for (const pod of fleet.pods) await until('it is there again', async () => statusOf(await pod.get(path)) === HIT);
  expect((await one.get('/many?id=post', { method: 'POST' })).status).toBe(200);
  for (const pod of fleet.pods) await gone(pod, path);
});

test('a tag is purged again, whoever has asked for its page in between', async () => {
  const path = await kept('/twice', 'twice', '&header=Cache-Tag:twice');
  for (const pod of [one, other, one]) {
    expect(await inside(pod, 'tag:twice')).toBe('200 done');
    expect(statusOf(await pod.get(path))).toBe(MISS);
    const [away] = fleet.pods.filter((reader) => reader !== pod) as [Pod];
    await gone(away, path);
    for (const reader of fleet.pods)
      await until('it is there again', async () => statusOf(await reader.get(path)) === HIT);
  }
});

test('a pod that hangs hears of a change when it goes on', async () => {
  const path = await kept('/hangs', 'hangs');
  await docker('pause', other.haproxy);
  try {
    await one.get('/hangs?id=post', { method: 'POST' });
    expect(statusOf(await one.get(path))).toBe(MISS);
    // It is left alone for a while.
    await until('it was asked in vain', async () => {
      const { body } = await one.get('/corelane/metrics', { port: PORTS.stats });
      return body.includes('\ncorelane_peers_known 0\n');
    });
    expect(statusOf(await other.get(path))).toBe(HIT);
  } finally {
    await docker('unpause', other.haproxy);
  }
  await gone(other, path);
});
