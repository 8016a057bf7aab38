/**
 * One render in the fleet: a pod that has not got a page asks its home, another pod, before it renders. A home that is
 * away, frozen, or says something else costs nobody his page.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Answer, FLEET_KEY, type Pod, type PodOptions, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { tokens } from './apps/peer-tokens.mjs';
import { ask as askPod, page, renders, seconds, statusOf } from './cache.ts';
import { AS_NGINX, ask, handOver, headerOf, identityOf, ME, message } from './peer.ts';

const sidecar = { nginx: { memoryLimit: '1Gi' }, haproxy: { memoryLimit: '512Mi' } };
const SPEC: Partial<RenderServiceSpecInput> = {
  ...{ workersPerPod: 2, sidecar, queue: { maxLength: 50, timeout: '30s' } },
  cache: { enabled: true, shared: 'Peers' },
};
/** The same for all pods, whatever port of this machine leads to them. */
const HOST = 'shop.example';
const SEARCH_PATH = 'lua-prepend-path /usr/share/corelane/haproxy/?.lua';

let fleet: Fleet;
afterEach(() => fleet?.stop());

const get = (pod: Pod, path: string, headers: Record<string, string> = {}) =>
  pod.get(path, { headers: { host: HOST, ...headers } });
const statuses = (answers: Answer[]) => [...new Set(answers.map(({ status }) => status))].toSorted();
const total = (id: string) => fleet.pods.reduce((sum, pod) => sum + renders(pod, id), 0);
/** Looked for long enough, but not for ever. */
const NAMES = Array.from({ length: 100 }, (_unused, n) => n);

/** Pods that know each other, and have each asked the others once. */
async function start(count: number, options: PodOptions = {}): Promise<Pod[]> {
  fleet = await Fleet.start(count, SPEC, options);
  return fleet.pods;
}

/** What waits in herds, in all pods. */
async function waiting(): Promise<number> {
  const lines = await Promise.all(fleet.pods.map((pod) => pod.metricLines('haproxy_server_current_queue')));
  const herds = lines.flat().filter((line) => line.includes('{proxy="herds",'));
  return herds.reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
}

/** From now on its renders wait for `release` again. */
async function holdAgain(id: string): Promise<void> {
  for (const pod of fleet.pods) await docker('exec', pod.workers[0] as string, 'rm', '-f', `/events/lines.${id}`);
}

/** A page whose home is that pod, as another one sees it; nobody has it any more. */
async function pageOf(
  home: Pod,
  asker: Pod,
  control = 'max-age=600',
  more = '',
): Promise<{ id: string; path: string }> {
  for (const n of NAMES) {
    const id = `home-${n}`;
    const path = page(id, control, more);
    home.release(id);
    asker.release(id);
    await get(asker, path);
    const isThere = renders(home, id) > 0;
    await holdAgain(id);
    if (!isThere) continue;
    // The home last: it drops what is older than a change that it hears of.
    for (const pod of [asker, home]) await askPod(pod, 'POST', '/purge', 'X-Corelane-Purge: 1');
    return { id, path };
  }
  throw new Error('no page has its home there');
}

/** Configuration of a pod whose module of Lua is another one. */
function withModule(module: string, edit: (text: string) => string): PodOptions {
  const text = readFileSync(fileURLToPath(new URL(`../haproxy/${module}`, import.meta.url)), 'utf8');
  if (edit(text) === text) throw new Error(`${module} is written in another way`);
  return {
    files: { [module]: edit(text) },
    // The last one comes first.
    edit: (_file, config) => config.replace(SEARCH_PATH, `${SEARCH_PATH}\n  lua-prepend-path /etc/corelane/?.lua`),
  };
}

test.each([2, 3])('200 clients at each of %d pods, and six pages: six renders', async (count) => {
  const pods = await start(count);
  const ids = Array.from({ length: 6 }, (_unused, n) => `many-${n}`);
  const answers = pods.flatMap((pod) =>
    Array.from({ length: 200 }, (_unused, n) => get(pod, page(ids[n % 6] as string, 'max-age=600', '&hold=1'))),
  );
  await until('all but six wait for a page', async () => (await waiting()) === answers.length - 6);
  fleet.release(...ids);
  const all = await Promise.all(answers);
  expect(statuses(all)).toEqual([200]);
  expect(ids.map(total)).toEqual(ids.map(() => 1));
  // And it is in each pod.
  for (const pod of pods)
    expect(statusOf(await get(pod, page('many-0', 'max-age=600', '&hold=1')))).toBe('Corelane; hit');
  const shared = await until('the log has those that came from a home', async () => {
    const logs = await Promise.all(pods.map((pod) => pod.accessLog()));
    const lines = logs.flat().filter(({ cache }) => cache === 'shared');
    return lines.length >= 6 * (count - 1) ? lines : undefined;
  });
  expect(shared).toHaveLength(6 * (count - 1));
  expect(shared.every(({ pod }) => pod !== '')).toBe(true);
});

test('a page ends at the same moment in all pods', async () => {
  const [home, other] = (await start(2)) as [Pod, Pod];
  const { id, path } = await pageOf(home, other, 'max-age=4');
  const before = total(id);
  const first = await get(home, path);
  await seconds(3);
  const second = await get(other, path);
  expect([second.body, second.headers.age]).toEqual([first.body, expect.stringMatching(/^[34]$/)]);
  expect(total(id)).toBe(before + 1);
  // From then on it would be good for three more seconds, if it began there.
  await seconds(2.2);
  expect(statusOf(await get(other, path))).toBe('Corelane; fwd=stale');
  expect(total(id)).toBe(before + 2);
});

test('two pods that take each other for the home do not wait for each other', async () => {
  // And each asks only when there are herds at both: who comes later would join what the other one's request has begun.
  const blind = withModule('cache/homes.lua', (text) =>
    text
      .replace('list[#list + 1] = own', 'list[#list + 1] = nil')
      .replace(/^(function homes\.find.*)$/m, '$1\n  core.msleep(1000)'),
  );
  const pods = await start(2, blind);
  const answers = pods.flatMap((pod) =>
    Array.from({ length: 20 }, () => get(pod, page('crossed', 'max-age=600', '&hold=1'))),
  );
  await until('each renders for the other', () => total('crossed') === 2);
  fleet.release('crossed');
  expect(statuses(await Promise.all(answers))).toEqual([200]);
  expect(total('crossed')).toBe(2);
});

async function drained(home: Pod): Promise<void> {
  await docker('exec', home.haproxy, 'touch', '/run/corelane/draining');
  await until('it drains', async () => (await home.get('/readyz', { port: PORTS.health })).status !== 200);
}

describe('a home that has no page for others', () => {
  type Act = (home: Pod) => Promise<unknown>;
  const nothing: Act = async () => {};
  const faults: [string, Act, Act][] = [
    ['dead', ({ haproxy }) => docker('kill', haproxy), nothing],
    ['frozen', ({ haproxy }) => docker('pause', haproxy), ({ haproxy }) => docker('unpause', haproxy)],
    ['nginx frozen', ({ nginx }) => docker('pause', nginx), ({ nginx }) => docker('unpause', nginx)],
    ['draining', drained, nothing],
  ];

  test.each(faults)('%s: others render it', async (_name, fault, undo) => {
    const [home, other] = (await start(2)) as [Pod, Pod];
    const { id, path } = await pageOf(home, other);
    const [there, here] = [renders(home, id), renders(other, id)];
    await fault(home);
    try {
      const answers = await Promise.all(Array.from({ length: 20 }, () => get(other, path)));
      expect(statuses(answers)).toEqual([200]);
      expect([renders(home, id), renders(other, id)]).toEqual([there, here + 1]);
      expect(statusOf(await get(other, path))).toBe('Corelane; hit');
    } finally {
      await undo(home);
    }
  });

  test('frozen while it renders', async () => {
    const [home, other] = (await start(2)) as [Pod, Pod];
    const { id, path } = await pageOf(home, other, 'max-age=600', '&hold=1');
    const [there, here] = [renders(home, id), renders(other, id)];
    const answers = Array.from({ length: 20 }, () => get(other, path));
    await until('the home renders it', () => renders(home, id) === there + 1);
    await docker('pause', home.haproxy);
    try {
      await until('this pod renders it', () => renders(other, id) === here + 1);
      other.release(id);
      expect(statuses(await Promise.all(answers))).toEqual([200]);
      expect(renders(other, id)).toBe(here + 1);
    } finally {
      await docker('unpause', home.haproxy);
    }
  });

  const ends: [string, Act, Act][] = [
    ['dies', ({ haproxy }) => docker('kill', haproxy), nothing],
    ['freezes', ({ haproxy }) => docker('pause', haproxy), ({ haproxy }) => docker('unpause', haproxy)],
  ];
  test.each(ends)('%s while it renders anew: no reason to give out the page of before', async (_name, end, undo) => {
    const [home, other] = (await start(2)) as [Pod, Pod];
    const { id, path } = await pageOf(home, other, 'max-age=1', '&hold=1');
    home.release(id);
    const before = await get(other, path);
    expect(statusOf(before)).toBe('Corelane; fwd=uri-miss');
    await holdAgain(id);
    await seconds(2.2);
    const there = renders(home, id);
    const answer = get(other, path);
    await until('the home renders it', () => renders(home, id) === there + 1);
    await end(home);
    try {
      other.release(id);
      const after = await answer;
      expect([after.status, statusOf(after)]).toEqual([200, expect.stringContaining('fwd=stale')]);
      expect(JSON.parse(after.body)).not.toEqual(JSON.parse(before.body));
    } finally {
      await undo(home);
    }
  });

  test('a render that fails there is tried here, and the home is not asked again', async () => {
    const [home, other] = (await start(2)) as [Pod, Pod];
    const { id, path } = await pageOf(home, other, 'max-age=600', '&status=500');
    const [there, here] = [renders(home, id), renders(other, id)];
    expect((await get(other, path)).status).toBe(500);
    expect([renders(home, id), renders(other, id)]).toEqual([there + 1, here + 1]);
  });

  const lies: [string, RegExp, string][] = [
    ['no proof of who it is', / +http-after-response set-header X-Corelane-Proof .*\n/, ''],
    ['no word about its page', / +http-response set-header X-Corelane-Expires .*\n/, ''],
    ['nonsense about its page', /X-Corelane-Expires %\[res\.hdr\(X-Accel-Expires\)\]/, 'X-Corelane-Expires @1e99'],
  ];
  test.each(lies)('%s: others render it', async (_name, find, replace) => {
    fleet = await Fleet.start(1, SPEC);
    const home = await fleet.add(SPEC, { edit: (_file, text) => text.replace(find, replace) });
    await fleet.untilAllKnown();
    const other = fleet.pods[0] as Pod;
    const answers: Answer[] = [];
    const ids: string[] = [];
    // Half of them have their home there. On a busy machine it may not answer in time, and is left alone for a while.
    await until('a page was rendered there', async () => {
      const id = `lie-${ids.length}`;
      ids.push(id);
      answers.push(await get(other, page(id)));
      return renders(home, id) > 0;
    });
    expect(statuses(answers)).toEqual([200]);
    // Nobody is given what was rendered there.
    expect(ids.map((id) => renders(other, id))).toEqual(ids.map(() => 1));
    expect(answers.every(({ headers }) => !Object.keys(headers).some((name) => name.startsWith('x-corelane')))).toBe(
      true,
    );
  });
});

describe('pods that have no pages in common', () => {
  const rows: [string, PodOptions, PodOptions][] = [
    ['another key', {}, { key: Buffer.alloc(32, 'other').toString('base64') }],
    ['another revision', { revision: 'old' }, { revision: 'new' }],
  ];
  test.each(rows)('%s: each renders its own', async (_name, one, other) => {
    fleet = await Fleet.start(1, SPEC, one);
    await fleet.add(SPEC, other);
    await fleet.untilAllKnown();
    for (const n of NAMES.slice(0, 8)) for (const pod of fleet.pods) await get(pod, page(`own-${n}`));
    expect(fleet.pods.map((pod) => NAMES.slice(0, 8).map((n) => renders(pod, `own-${n}`)))).toEqual([
      ...[Array(8).fill(1), Array(8).fill(1)],
    ]);
  });

  test('nor across revisions that share their work', async () => {
    const mixed = { ...SPEC, pooling: { acrossRevisions: true } };
    fleet = await Fleet.start(1, mixed, { revision: 'old' });
    await fleet.add(mixed, { revision: 'new' });
    await fleet.untilAllKnown();
    for (const n of NAMES.slice(0, 8)) for (const pod of fleet.pods) await get(pod, page(`own-${n}`));
    expect(fleet.pods.map((pod) => NAMES.slice(0, 8).map((n) => renders(pod, `own-${n}`)))).toEqual([
      ...[Array(8).fill(1), Array(8).fill(1)],
    ]);
  });
});

test('a page that is for one alone is rendered with what makes it so, and for each', async () => {
  const pods = await start(2);
  for (const n of NAMES.slice(0, 8)) {
    for (const [index, pod] of pods.entries()) {
      const { body } = await get(pod, page(`own-${n}`, 'private'), { cookie: `user=${index}` });
      expect(JSON.parse(body).headers.cookie).toBe(`user=${index}`);
    }
    // Once for each, and once at most for each pod without what makes it so.
    expect(total(`own-${n}`)).toBeLessThanOrEqual(2 * pods.length);
  }
});

test('a page that was changed here does not come back from its home', async () => {
  const [home, other] = (await start(2)) as [Pod, Pod];
  const { id, path } = await pageOf(home, other);
  await get(home, path);
  await get(other, path);
  const before = total(id);
  expect((await other.get(`${path}&x=1`, { method: 'POST', headers: { host: HOST } })).status).toBe(200);
  const after = await get(other, path);
  expect([after.status, statusOf(after)]).toEqual([200, 'Corelane; fwd=uri-miss']);
  expect(total(id)).toBe(before + 2);
  // Now it is the new one there, too.
  expect(JSON.parse((await get(home, path)).body)).toEqual(JSON.parse(after.body));
  expect(total(id)).toBe(before + 2);
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
    const [pod] = (await start(1, { revision: 'r1' })) as [Pod];
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
    const [pod] = (await start(1)) as [Pod];
    const look = "fetch('http://127.0.0.1:9099/?id=inside').then(({ status }) => console.log(status))";
    expect((await pod.inWorker(0, look)).trim()).toBe('404');
    expect(renders(pod, 'inside')).toBe(0);
  });
});
