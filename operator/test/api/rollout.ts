/** A world in which pods change, and how to look at revisions and pods. */
import { corelane } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

/** Of the file that runs. */
export let world: World;
export let operator: OperatorProcess;

/** A world for all tests of a file, and an operator in it. */
export function useRolloutWorld(namespace: string): void {
  beforeAll(async () => {
    world = await World.create(sharedServer(), namespace);
    await startOperator();
  });

  afterAll(() => OperatorProcess.killAll());
}

/** Ends the operator as kubelet does that has lost patience. */
export async function killOperator(): Promise<void> {
  await operator.kill();
}

/** Another process, in the pod of the one before: it need not wait for the Lease to run out. */
export async function startOperator(): Promise<void> {
  operator = await world.startOperator();
}

/** `corelane rollout VERB NAME OPTIONS`. */
export const rollout = (...args: string[]) => corelane(world, 'rollout', ...args);

export const image = (version: number) => ({ template: podTemplate({ image: `corelane.test/app:${version}` }) });

/** Deployments by the version of their image: pods, and whether they rest. */
export async function revisions(name: string): Promise<Record<string, string>> {
  const all = await world.deployments(name);
  return Object.fromEntries(
    all.map(({ metadata, spec }) => [
      spec.template.spec.containers[0].image.split(':')[1],
      `${spec.replicas}${metadata.annotations['corelane.dev/retired'] ? ' rests' : ''}`,
    ]),
  );
}

/** Pods by version: how many of them the Service leads to, of how many. */
export async function serving(name: string): Promise<Record<string, string>> {
  const selector = new Map(Object.entries<string>((await world.get('Service', name)).spec.selector));
  const pods = (await world.list('Pod')).filter(
    ({ metadata }) => metadata.labels['corelane.dev/renderservice'] === name && !metadata.deletionTimestamp,
  );
  const byVersion = Map.groupBy(pods, ({ spec }) => spec.containers[0].image.split(':')[1] as string);
  return Object.fromEntries(
    [...byVersion].map(([version, some]) => {
      const led = some.filter(({ metadata }) => [...selector].every(([key, value]) => metadata.labels[key] === value));
      return [version, `${led.length}/${some.length}`];
    }),
  );
}

export async function untilReady(name: string): Promise<void> {
  await eventually(`${name} is ready`, async () => {
    await world.makePodsReady(name);
    const { metadata, status } = await world.get('RenderService', name);
    expect(status.observedGeneration).toBe(metadata.generation);
    expect(status.rollout.phase).toBe('Complete');
    expect(await world.condition(name, 'Ready')).toMatchObject({ status: 'True' });
  });
}

export async function running(name: string, spec: object = {}): Promise<void> {
  await world.createRenderService(name, { ...image(1), ...spec });
  await untilReady(name);
}
