/**
 * One render in the fleet: many clients, pages that end, homes that freeze, lie or end while they render, and pods that
 * have no pages in common. A load test: floods, pages of seconds, and twenty fleets.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { withModules } from '../../e2e/harness/engine/haproxy-modules.ts';
import { type Answer, type Pod, type PodOptions, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { page, renders, seconds, statuses, statusOf } from './cache.ts';
import {
  type Act,
  drained,
  expectOwnPages,
  expectRenderedHere,
  get,
  holdAgain,
  pageOf,
  SPEC,
  total,
  waiting,
} from './cache-shared.ts';

let fleet: Fleet;
afterEach(() => fleet?.stop());

/** Pods that know each other, and have each asked the others once. */
async function start(count: number, options: PodOptions = {}): Promise<Pod[]> {
  fleet = await Fleet.start(count, SPEC, options);
  return fleet.pods;
}

test.each([2, 3])('200 clients at each of %d pods, and six pages: six renders', async (count) => {
  const pods = await start(count);
  const ids = Array.from({ length: 6 }, (_unused, n) => `many-${n}`);
  const answers = pods.flatMap((pod) =>
    Array.from({ length: 200 }, (_unused, n) => get(pod, page(ids[n % 6] as string, 'max-age=600', '&hold=1'))),
  );
  await until('all but six wait for a page', async () => (await waiting(fleet)) === answers.length - 6);
  fleet.release(...ids);
  const all = await Promise.all(answers);
  expect(statuses(all)).toEqual([200]);
  const rendered = ids.map((id) => total(fleet, id));
  const sum = rendered.reduce((one, other) => one + other);
  figure(`${count} pods: renders of six pages for ${answers.length} requests at once`, sum, '', '6');
  expect(rendered).toEqual(ids.map(() => 1));
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
  const { id, path } = await pageOf(fleet, home, other, 'max-age=4');
  const before = total(fleet, id);
  const first = await get(home, path);
  await seconds(3);
  const second = await get(other, path);
  expect([second.body, second.headers.age]).toEqual([first.body, expect.stringMatching(/^[34]$/)]);
  expect(total(fleet, id)).toBe(before + 1);
  // From then on it would be good for three more seconds, if it began there.
  await seconds(2.2);
  expect(statusOf(await get(other, path))).toBe('Corelane; fwd=stale');
  expect(total(fleet, id)).toBe(before + 2);
});

test('two pods that take each other for the home do not wait for each other', async () => {
  // And each asks only when there are herds at both: who comes later would join what the other one's request has begun.
  const blind = withModules({
    'cache/homes.lua': (text) =>
      text
        .replace('list[#list + 1] = own', 'list[#list + 1] = nil')
        .replace(/^(function homes\.find.*)$/m, '$1\n  core.msleep(1000)'),
  });
  const pods = await start(2, blind);
  const answers = pods.flatMap((pod) =>
    Array.from({ length: 20 }, () => get(pod, page('crossed', 'max-age=600', '&hold=1'))),
  );
  await until('each renders for the other', () => total(fleet, 'crossed') === 2);
  fleet.release('crossed');
  expect(statuses(await Promise.all(answers))).toEqual([200]);
  expect(total(fleet, 'crossed')).toBe(2);
});

describe('a home that has no page for others', () => {
  const nothing: Act = async () => {};
  const faults: [string, Act, Act][] = [
    ['frozen', ({ haproxy }) => docker('pause', haproxy), ({ haproxy }) => docker('unpause', haproxy)],
    ['nginx frozen', ({ nginx }) => docker('pause', nginx), ({ nginx }) => docker('unpause', nginx)],
    ['draining', drained, nothing],
  ];

  test.each(faults)('%s: others render it', async (_name, fault, undo) => {
    await start(2);
    await expectRenderedHere(fleet, fault, undo);
  });

  test('frozen while it renders', async () => {
    const [home, other] = (await start(2)) as [Pod, Pod];
    const { id, path } = await pageOf(fleet, home, other, 'max-age=600', '&hold=1');
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
    const { id, path } = await pageOf(fleet, home, other, 'max-age=1', '&hold=1');
    home.release(id);
    const before = await get(other, path);
    expect(statusOf(before)).toBe('Corelane; fwd=uri-miss');
    await holdAgain(fleet, id);
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
  test('another key: each renders its own', async () => {
    fleet = await Fleet.start(1, SPEC);
    await fleet.add(SPEC, { key: Buffer.alloc(32, 'other').toString('base64') });
    await fleet.untilAllKnown();
    await expectOwnPages(fleet);
  });

  test('nor across revisions that share their work', async () => {
    const mixed = { ...SPEC, pooling: { acrossRevisions: true } };
    fleet = await Fleet.start(1, mixed, { revision: 'old' });
    await fleet.add(mixed, { revision: 'new' });
    await fleet.untilAllKnown();
    await expectOwnPages(fleet);
  });
});
