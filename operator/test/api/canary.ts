/**
 * A cluster for the tests of canaries. There is no kubelet here: pods are made ready, and their port 8999 is answered
 * in their place.
 */
import { createServer, type Server } from 'node:http';
import type { Json } from '../support/api-client.ts';
import { corelane } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

const ADDRESSES = Array.from({ length: 80 }, (_unused, index) => `127.55.0.${index + 1}`);
/** Of a RenderService: pods get what is written, or stay with what they have. */
export const held = new Map<string, string>();
/** Pods that know no canary. */
export const old = new Set<string>();
/** Of a RenderService: what becomes of requests at each look at one of its pods. */
export const traffic = new Map<string, { requests: number; errors: number }>();
/** What each address has counted. */
const counted = new Map<string, { revision: number; canary: number; errors: number; stable: number }>();

/** Of the file that runs. */
export let world: World;
export let operator: OperatorProcess;
const servers: Server[] = [];
/** What each address is the pod of, and what it says. */
const services = new Map<string, string>();
const taken = new Map<string, string>();

export const serialOf = (settings: string) => /^serial=(\w+)$/m.exec(settings)?.[1] ?? '';

/** A world for all tests of a file, an operator in it, and pods that answer. */
export function useCanaryWorld(namespace: string): void {
  beforeAll(async () => {
    world = await World.create(sharedServer(), namespace);
    for (const address of ADDRESSES) {
      const server = createServer(async ({ url }, response) => {
        const page = await pageOf(address, url);
        response.writeHead(page === undefined ? 404 : 200).end(page);
      });
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(8999, address, resolve));
    }
    await startOperator();
  });

  afterAll(async () => {
    await OperatorProcess.killAll();
    for (const server of servers) server.close();
  });
}

/** Ends the operator as kubelet does that has lost patience. */
export async function killOperator(): Promise<void> {
  await operator.kill();
}

/** Another process, in the pod of the one before: it need not wait for the Lease to run out. */
export async function startOperator(): Promise<void> {
  operator = await world.startOperator();
}

/** What the pod at an address answers on port 8999. */
async function pageOf(address: string, url: string | undefined): Promise<string | undefined> {
  const name = services.get(address);
  if (!name || (url !== '/canary' && url !== '/live')) return undefined;
  const told = await settings(name);
  if (url === '/canary') return sidesPage(address, name, told);
  return `serial=${held.get(name) ?? serialOf(told)}\n${old.has(name) ? '' : 'canary=1\n'}`;
}

/** Pods count from when they are told of a canary. */
function sidesPage(address: string, name: string, told: string): string {
  const revision = Number(/^canary-revision=(\d+)$/m.exec(told)?.[1] ?? 0);
  const share = Number(/^canary-share=(\d+)$/m.exec(told)?.[1] ?? 0);
  const before = counted.get(address);
  const counts = before?.revision === revision ? before : { revision, canary: 0, errors: 0, stable: 0 };
  const { requests, errors } = (share > 0 && traffic.get(name)) || { requests: 0, errors: 0 };
  counts.canary += requests;
  counts.errors += errors;
  counts.stable += requests;
  counted.set(address, counts);
  return `epoch=1.0\nrevision=${revision}\ncanary=${counts.canary} ${counts.errors}\nstable=${counts.stable} 0\n`;
}

export async function settings(name: string): Promise<string> {
  return (await world.get('ConfigMap', `${name}-live`)).data.settings;
}

/** What pods are told: hundredths of a percent, or nothing. */
export async function share(name: string): Promise<number | undefined> {
  const [, digits] = /^canary-share=(\d+)$/m.exec(await settings(name)) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** Gives each pod of a RenderService an address, and says that it is ready; those of `except` never are. */
async function play(name: string, except?: string): Promise<void> {
  const pods = (await world.list('Pod')).filter(
    ({ metadata, spec }) =>
      metadata.labels['corelane.dev/renderservice'] === name &&
      !metadata.deletionTimestamp &&
      !(except && spec.containers[0].image.endsWith(`:${except}`)),
  );
  const uids = new Set((await world.list('Pod')).map(({ metadata }) => metadata.uid));
  for (const [uid, address] of taken) {
    if (uids.has(uid)) continue;
    taken.delete(uid);
    services.delete(address);
  }
  for (const { metadata, status } of pods) {
    if (status.podIP) continue;
    const podIP = ADDRESSES.find((address) => !services.has(address)) as string;
    services.set(podIP, name);
    taken.set(metadata.uid, podIP);
    await world.admin.patch(`${world.path('Pod', metadata.name)}/status`, {
      status: { podIP, podIPs: [{ ip: podIP }] },
    });
  }
  await world.makeReady(pods.filter(({ status }) => status.phase !== 'Running'));
}

export const image = (version: number) => ({ template: podTemplate({ image: `corelane.test/app:${version}` }) });
const steps = (...all: object[]) => ({ rollout: { canary: { steps: all, analysis: { enabled: false } } } });
/** Steps that are judged, by errors alone. */
export const judged = (analysis: object, ...all: object[]) => ({
  rollout: { canary: { steps: all, analysis: { latency: { enabled: false }, ...analysis } } },
});
export const APPROVED = { share: 25, approval: true };

/** `1:4 2:1` is four pods of version 1 and one of version 2; `z` is out of service. */
export async function revisions(name: string): Promise<string> {
  const all = await world.deployments(name);
  return all
    .map(({ metadata, spec }) => {
      const version = spec.template.spec.containers[0].image.split(':')[1];
      return `${version}:${spec.replicas}${metadata.annotations['corelane.dev/retired'] ? 'z' : ''}`;
    })
    .toSorted()
    .join(' ');
}

export async function rolloutOf(name: string): Promise<Json> {
  return (await world.get('RenderService', name)).status?.rollout ?? {};
}

/** Waits until its status is like this; pods become ready meanwhile. */
export async function until(name: string, expected: object, except?: string): Promise<Json> {
  return await eventually(`${name}: ${JSON.stringify(expected)}`, async () => {
    await play(name, except);
    const { metadata, status } = await world.get('RenderService', name);
    expect(status.observedGeneration).toBe(metadata.generation);
    expect(status.rollout).toMatchObject(expected);
    return status.rollout;
  });
}

export const untilComplete = (name: string) => until(name, { phase: 'Complete' });

/** With four pods of version 1, and these steps. */
export async function running(name: string, ...all: object[]): Promise<void> {
  await runningWith(name, steps(...all));
}

export async function runningWith(name: string, spec: object): Promise<void> {
  await world.createRenderService(name, { ...image(1), replicas: 4, ...spec });
  await untilComplete(name);
  await eventually('it is ready', async () => {
    await play(name);
    expect(await world.condition(name, 'Ready')).toMatchObject({ status: 'True' });
  });
}

/** With version 2 at a step of 25 % that somebody has to approve. */
export async function atTheStep(name: string): Promise<string> {
  await running(name, APPROVED);
  await world.patchSpec(name, image(2));
  const { canary } = await until(name, { phase: 'Paused', reason: 'AwaitingApproval' });
  return canary.revision;
}

export const annotate = (name: string, annotations: object) =>
  world.admin.patch(world.path('RenderService', name), { metadata: { annotations } });

export async function reasons(name: string): Promise<string[]> {
  return (await world.events(name)).map(({ reason }) => reason);
}

/** `corelane rollout VERB NAME OPTIONS`. */
export const rollout = (...args: string[]) => corelane(world, 'rollout', ...args);
