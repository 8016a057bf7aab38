/** Three services whose operator is replaced by one of another version: one that sets another sidecar image. */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';

export const NAMES = ['a', 'b', 'c'];
/** A pause behind each that no test waits for. */
export const PATIENT = { CORELANE_DATA_PLANE_PAUSE: '1h' };
const QUICK = { CORELANE_DATA_PLANE_PAUSE: '0s' };

/** Of the test that runs. */
export let world: World;

/** A world for each test, in a namespace that begins with this. */
export function useWorlds(prefix: string): void {
  let count = 0;

  beforeEach(async () => {
    count += 1;
    world = await World.create(sharedServer(), `${prefix}-${count}`);
  });

  afterEach(() => OperatorProcess.killAll());
}

/** An operator with this sidecar image, in place of the one that there was. */
export async function operator(version: number, environment: Record<string, string> = QUICK): Promise<OperatorProcess> {
  await OperatorProcess.stopAll();
  const process = await OperatorProcess.spawn(world.settings(`operator-${version}`), {
    CORELANE_SIDECAR_IMAGE: `corelane.test/sidecar:${version}`,
    ...environment,
  });
  await process.untilLeading();
  return process;
}

/** Version of each service's pods. */
export async function versions(): Promise<Record<string, number>> {
  const deployments = await Promise.all(NAMES.map((name) => world.deployment(name)));
  const versionOf = ({ spec }: Json) =>
    Number(JSON.stringify(spec.template).match(/corelane\.test\/sidecar:([0-9]+)/)?.[1]);
  return Object.fromEntries(deployments.map((one, index) => [NAMES[index], versionOf(one)]));
}

/** Pods with the proxies of a version. */
export async function podsOfVersion(version: number): Promise<Json[]> {
  const isOf = ({ image }: Json) => image === `corelane.test/sidecar:${version}`;
  return (await world.list('Pod')).filter(
    ({ metadata, spec }) => !metadata.deletionTimestamp && spec.initContainers.some(isOf),
  );
}

/** How a service stands with its data plane. */
export const reasonOf = async (name: string) => (await world.condition(name, 'DataPlaneCurrent'))?.reason;

/** The same of all three. */
export async function reasons(): Promise<string[]> {
  return await Promise.all(NAMES.map(async (name) => await reasonOf(name)));
}

/** Three services that are ready, with pods of version 1. */
export async function three(specOf: (name: string) => object = () => ({})): Promise<void> {
  await operator(1);
  for (const name of NAMES) await world.createRenderService(name, specOf(name));
  await untilReady(...NAMES);
}

async function untilReady(...names: string[]): Promise<void> {
  await eventually(`${names} are ready`, async () => {
    await Promise.all(names.map((name) => world.makePodsReady(name)));
    for (const name of names) expect(await world.condition(name, 'Ready')).toMatchObject({ status: 'True' });
  });
}

/** Ready could still be that of the pods before: the new ones may come a moment later. */
export async function untilUpToDate(...names: string[]): Promise<void> {
  await eventually(`${names} are up to date`, async () => {
    await Promise.all(names.map((name) => world.makePodsReady(name)));
    expect(await Promise.all(names.map(reasonOf))).toEqual(names.map(() => 'UpToDate'));
  });
}
