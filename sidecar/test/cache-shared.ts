/** Pods that share what they keep, for the tests of it. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import type { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { ask, page, renders, statuses, statusOf } from './cache.ts';

const sidecar = { nginx: { memoryLimit: '1Gi' }, haproxy: { memoryLimit: '512Mi' } };
export const SPEC: Partial<RenderServiceSpecInput> = {
  ...{ workersPerPod: 2, sidecar, queue: { maxLength: 50 } },
  cache: { enabled: true, shared: 'Peers' },
};
/** The same for all pods, whatever port of this machine leads to them. */
export const HOST = 'shop.example';
/** Looked for long enough, but not for ever. */
export const NAMES = Array.from({ length: 100 }, (_unused, n) => n);

/** Asks a pod for a page of the service. */
export const get = (pod: Pod, path: string, headers: Record<string, string> = {}): Promise<Answer> =>
  pod.get(path, { headers: { host: HOST, ...headers } });

/** How often a page has been rendered in the fleet. */
export const total = (fleet: Fleet, id: string): number => fleet.pods.reduce((sum, pod) => sum + renders(pod, id), 0);

/** What waits in herds, in all pods. */
export async function waiting(fleet: Fleet): Promise<number> {
  const lines = await Promise.all(fleet.pods.map((pod) => pod.metricLines('haproxy_server_current_queue')));
  const herds = lines.flat().filter((line) => line.includes('{proxy="herds",'));
  return herds.reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
}

/** From now on its renders wait for `release` again. */
export async function holdAgain(fleet: Fleet, id: string): Promise<void> {
  for (const pod of fleet.pods) await docker('exec', pod.workers[0] as string, 'rm', '-f', `/events/lines.${id}`);
}

let pages = 0;
/** A page whose home is that pod, as another one sees it; nobody has it any more. `at` makes its URL. */
export async function pageOf(
  fleet: Fleet,
  home: Pod,
  asker: Pod,
  control = 'max-age=600',
  more = '',
  at: (id: string, control: string, more: string) => string = page,
): Promise<{ id: string; path: string }> {
  for (const _ of NAMES) {
    pages += 1;
    const id = `home-${pages}`;
    const path = at(id, control, more);
    home.release(id);
    asker.release(id);
    await get(asker, path);
    const isThere = renders(home, id) > 0;
    await holdAgain(fleet, id);
    if (!isThere) continue;
    // The home last: it drops what is older than a change that it hears of.
    for (const pod of [asker, home]) await ask(pod, 'POST', '/purge-pod', 'X-Corelane-Purge: *');
    return { id, path };
  }
  throw new Error('no page has its home there');
}

/** What makes a pod have no page for others, and what undoes that. */
export type Act = (home: Pod) => Promise<unknown>;

/** Begins the drain of a pod. */
export async function drained(home: Pod): Promise<void> {
  await docker('exec', home.haproxy, 'touch', '/run/corelane/drain/begun');
  await until('it drains', async () => (await home.get('/readyz', { port: PORTS.health })).status !== 200);
}

/** A page whose home cannot render it is rendered once by the pod that was asked, and kept. */
export async function expectRenderedHere(fleet: Fleet, fault: Act, undo: Act): Promise<void> {
  const [home, other] = fleet.pods as [Pod, Pod];
  const { id, path } = await pageOf(fleet, home, other);
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
}

/** Each of two pods renders its own pages. */
export async function expectOwnPages(fleet: Fleet): Promise<void> {
  for (const n of NAMES.slice(0, 8)) for (const pod of fleet.pods) await get(pod, page(`own-${n}`));
  expect(fleet.pods.map((pod) => NAMES.slice(0, 8).map((n) => renders(pod, `own-${n}`)))).toEqual([
    ...[Array(8).fill(1), Array(8).fill(1)],
  ]);
}
