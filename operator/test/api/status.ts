/** What a RenderService says about itself when all is well, and how it comes to say so. */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import type { World } from '../support/world.ts';

export const READY = { Ready: 'True AllPodsReady', Reconciling: 'False UpToDate', Stalled: 'False UpToDate' };

/** Status and reason of each condition of kstatus: `{ Ready: 'True AllPodsReady', ... }`. */
export async function conditions(world: World, name: string): Promise<Record<string, string>> {
  const { status } = await world.get('RenderService', name);
  const others = ['WorkersHealthy', 'DataPlaneCurrent'];
  const all: Json[] = (status?.conditions ?? []).filter(({ type }: Json) => !others.includes(type));
  return Object.fromEntries(all.map(({ type, status: value, reason }) => [type, `${value} ${reason}`]));
}

/** Does kubelet's part until the RenderService is ready. */
export async function untilReady(world: World, name: string): Promise<void> {
  await eventually(`${name} is ready`, async () => {
    await world.makePodsReady(name);
    expect(await conditions(world, name)).toEqual(READY);
  });
}

/** Creates a RenderService and brings it up. */
export async function createReady(world: World, name: string, spec: object = {}): Promise<void> {
  await world.createRenderService(name, spec);
  await untilReady(world, name);
}
