/** What tests of peers ask of pods that share their work, or that do not. */
import type { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';

/** A key of 32 bytes that is not the fleet's. */
export const OTHER_KEY = Buffer.alloc(32, 'other').toString('base64');
/** Requests wait for longer than any test. */
export const patient: Partial<RenderServiceSpecInput> = { workersPerPod: 1, queue: { timeout: '60s' } };
/** Ids of what the workers of a pod have begun. */
export const begunIn = (pod: Pod) => pod.events({ event: 'begin' }).map(({ id }) => id ?? '');

/** Requests that need both workers of two pods at the same time. */
export async function shares(fleet: Fleet, round: string): Promise<void> {
  const [home, other] = fleet.pods as [Pod, Pod];
  const ids = [`${round}-0`, `${round}-1`];
  const answers = ids.map((id) => home.get(`/?hold=1&id=${id}`));
  const ofRound = (pod: Pod) => begunIn(pod).filter((id) => ids.includes(id)).length;
  // Long before the first one is given up, which would make room at home.
  await until(`each pod renders one (${round})`, () => ofRound(home) === 1 && ofRound(other) === 1, 50_000);
  fleet.release(...ids);
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
}

/** Requests of one client, at once. */
export const pages = (count: number, pod: Pod) =>
  Promise.all(
    Array.from({ length: count }, (_unused, index) =>
      pod.get(`/?ms=150&id=p${index}`, { headers: { Cookie: 'secret=of-a-client' } }),
    ),
  );
