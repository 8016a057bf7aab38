/** Changes of the pods of a fleet, for the story of rollouts and its load test. */
import { eventually, get } from '../harness/cluster/cluster.ts';
import type { Fleet } from '../harness/cluster/fleet.ts';
import { deploymentsOf } from '../harness/cluster/renderservice.ts';

interface Revision {
  revision: string;
  replicas: number;
  available: number;
  restsUntil?: string;
}

interface RolloutStatus {
  phase: string;
  revision: string;
  revisions: Revision[];
}

interface Endpoint {
  conditions: { ready?: boolean };
  targetRef?: { name: string };
}

/** Gives the fleet another template. */
export function change(fleet: Fleet, value: string): Promise<void> {
  return fleet.change({ template: { metadata: { annotations: { 'example.com/version': value } } } });
}

/** The rollout as the status of the RenderService tells it. */
export async function rolloutOf({ namespace, name }: Fleet): Promise<RolloutStatus | undefined> {
  const { status } = await get<{ status?: { rollout?: RolloutStatus } }>('-n', namespace, 'renderservice', name);
  return status?.rollout;
}

/** Revisions of the pods that the Service leads to. */
async function served({ namespace, name }: Fleet): Promise<string[]> {
  const { items } = await get<{ items: { endpoints?: Endpoint[] }[] }>(
    ...['-n', namespace, 'endpointslices', '-l', `kubernetes.io/service-name=${name}`],
  );
  const ready = items.flatMap(({ endpoints }) => endpoints ?? []).filter(({ conditions }) => conditions.ready);
  const pods = ready.map(({ targetRef }) => targetRef?.name ?? '');
  const known = (await deploymentsOf(namespace, name)).map(({ metadata }) => metadata);
  const revisions = pods.map(
    (pod) => known.find((one) => pod.startsWith(`${one.name}-`))?.labels['corelane.dev/revision'],
  );
  return [...new Set(revisions.map(String))];
}

/** Waits until the Service leads to pods of one revision, which is the one that the spec asks for. */
export async function untilServed(fleet: Fleet, revision: string): Promise<void> {
  await eventually(`the Service to lead to ${revision} alone`, 120_000, async () =>
    (await served(fleet)).join() === revision ? true : undefined,
  );
}

/** Changes the fleet once: the revision before rests with `pods` pods, and the Service does not lead to them. */
export async function changeOnce(fleet: Fleet, pods: number): Promise<void> {
  const first = (await rolloutOf(fleet))?.revision as string;
  await change(fleet, '2');
  await fleet.rollout('status', '--watch');
  const { revision, revisions } = (await rolloutOf(fleet)) as RolloutStatus;
  expect(revision).not.toBe(first);
  expect(revisions).toMatchObject([
    { revision, replicas: pods, available: pods },
    { revision: first, replicas: pods, restsUntil: expect.any(String) },
  ]);
  await untilServed(fleet, revision);
}
