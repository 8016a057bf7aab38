/** An operator behind an API server that fails, and changes by chance that it must carry out all the same. */
import { chmod, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Json, KindName } from '../support/api-client.ts';
import { eventually, settled } from '../support/eventually.ts';
import { FailingApi } from '../support/failing-api.ts';
import { HOSTILE_SEED } from '../support/hostile.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { Random } from '../support/random.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

const SHARE = 0.06;
const WATCH_SHARE = 0.8;
/** Watches end anew after so many rounds. */
const ROUNDS_OF_WATCH = 5;
/** RenderServices at a time that are changed, and those that nobody touches. */
const SERVICES_MAX = 8;
const UNTOUCHED = ['still-1', 'still-2'];
/** After ten failures in a row the next try is a minute away. */
const REST_MS = 120_000;
/** Of each RenderService, beside its Deployments. */
const OWNED: KindName[] = ['Service', 'PodDisruptionBudget'];
/** Revisions of before that are remembered. */
const HISTORY_MAX = 2;
/** Longer than all of this takes: its end would be one more write. */
export const REST = { rollout: { retain: { for: '1h' } } };

const SERVING = 'corelane.dev/serving';
const REVISION = 'corelane.dev/revision';

interface Wanted {
  port: number;
  replicas: number;
}
const DEFAULTS: Wanted = { port: 80, replicas: 2 };

/** Of the test that runs. */
export let world: World;
export let api: FailingApi;

/** Ends the operators and the proxy. */
export async function end(): Promise<void> {
  await OperatorProcess.killAll();
  await api?.close();
}

/** A namespace, and a proxy in front of the API server. */
export async function prepare(namespace: string): Promise<void> {
  world = await World.create(sharedServer(), namespace);
  api = await FailingApi.start(sharedServer(), HOSTILE_SEED);
}

/** An operator that knows the API server by the proxy alone. */
export function throughProxy(podName: string): Promise<OperatorProcess> {
  return OperatorProcess.spawn({ ...world.settings(podName), kubeconfig: api.kubeconfig });
}

/** Path of a program for a kubeconfig's `exec`, which is this one from now on. */
export async function plugin(body: string): Promise<string> {
  const path = join(api.folder, 'plugin');
  await writeFile(`${path}.new`, `#!/bin/sh\n${body}\n`);
  await chmod(`${path}.new`, 0o700);
  await rename(`${path}.new`, path);
  return path;
}

/** An operator whose token is the output of a program. */
export async function throughPlugin(command: string): Promise<OperatorProcess> {
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command, interactiveMode: 'Never' };
  const kubeconfig = await api.kubeconfigOf({ exec }, 'exec');
  return OperatorProcess.spawn({ ...world.settings('operator-0'), kubeconfig });
}

/** Output of a program that gives the operator's token, for a moment. */
export function credential(): string {
  return JSON.stringify({
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token: api.user.token, expirationTimestamp: '2000-01-01T00:00:00Z' },
  });
}

/**
 * Tests of so many changes by chance, beside an API server that fails; so often everything comes to rest, and is looked
 * at.
 */
export function testRounds(namespace: string, rounds: number, untilRest: number): void {
  const random = new Random(HOSTILE_SEED);
  const alive = new Map<string, Wanted>();
  const podsOf = async (name: string) =>
    (await world.list('Pod')).filter(
      ({ metadata }) => metadata.labels['corelane.dev/renderservice'] === name && !metadata.deletionTimestamp,
    );
  let operator: OperatorProcess;
  let made = 0;

  /** As kubelet does. A process ends by itself only when it has lost the lead. */
  async function keepRunning(): Promise<void> {
    if (!operator.hasEnded) return;
    const code = await operator.exitCode(0);
    if (code !== 'SIGKILL') expect([code, operator.log.includes('"result":"lost"')]).toEqual([1, true]);
    expect(operator.log).not.toMatch(/unhandled|uncaught/i);
    operator = await throughProxy('operator-0');
  }

  const OURS: Record<string, (name: string) => Promise<unknown>> = {
    async port(name) {
      const port = random.whole(1_024, 32_000);
      alive.set(name, { ...(alive.get(name) as Wanted), port });
      await world.patchSpec(name, { service: { port } });
    },
    async replicas(name) {
      const replicas = random.whole(0, 3);
      alive.set(name, { ...(alive.get(name) as Wanted), replicas });
      await world.patchSpec(name, { replicas });
    },
    image: (name) =>
      world.patchSpec(name, { template: podTemplate({ image: `corelane.test/app:${random.whole(1, 999)}` }) }),
    live: (name) => world.patchSpec(name, { queue: { maxLength: random.whole(1, 100) } }),
    async deleted(name) {
      alive.delete(name);
      await world.admin.delete(world.path('RenderService', name));
    },
  };
  /** By others, to what is ours; it may be there or not. */
  const FOREIGN: Record<string, (name: string) => Promise<unknown>> = {
    async scaled(name) {
      const { metadata } = random.pick(await world.deployments(name));
      await world.admin.patch(world.path('Deployment', metadata.name), { spec: { replicas: 9 } });
    },
    async ledAway(name) {
      const { metadata } = random.pick(await podsOf(name));
      const labels = { [SERVING]: String(metadata.labels[SERVING] !== 'true') };
      await world.admin.patch(world.path('Pod', metadata.name), { metadata: { labels } });
    },
    moved: (name) =>
      world.admin.patch(world.path('Service', name), {
        spec: { externalIPs: ['192.0.2.7'], sessionAffinity: 'ClientIP' },
      }),
    unprotected: (name) => world.admin.delete(world.path('PodDisruptionBudget', name)),
    unserved: (name) => world.admin.delete(world.path('Service', name)),
    async unconfigured(name) {
      const { spec } = await world.deployment(name);
      const config = spec.template.spec.volumes.find(({ configMap }: Json) => configMap?.name.startsWith(`${name}-`));
      await world.admin.delete(world.path('ConfigMap', config.configMap.name));
    },
  };

  async function round(): Promise<void> {
    if (alive.size < 2 || (alive.size < SERVICES_MAX && random.chance(0.15))) {
      made += 1;
      alive.set(`shop-${made}`, { port: 80, replicas: 1 });
      await world.createRenderService(`shop-${made}`, { ...REST, replicas: 1, service: { port: 80 } });
      return;
    }
    const choice = random.fraction();
    const name = random.pick([...alive.keys()]);
    if (choice < 0.02) await operator.kill();
    else if (choice < 0.65) await random.pick(Object.values(OURS))(name);
    // Of what is not there yet nothing can be spoilt.
    else
      await random
        .pick(Object.values(FOREIGN))(name)
        .catch(() => {});
  }

  /** The operator has had a chance to do something about it, and to be hindered. */
  async function untilAsked(): Promise<void> {
    const enough = api.came + random.whole(2, 9);
    await eventually('it has asked for something', async () => {
      await keepRunning();
      expect(api.came).toBeGreaterThanOrEqual(enough);
    });
  }

  function fails(share: number, watchShare: number): void {
    Object.assign(api, { share, watchShare });
  }

  async function expectApplied(name: string, { port, replicas }: Wanted): Promise<void> {
    const { metadata, status } = await world.get('RenderService', name);
    expect(status?.observedGeneration).toBe(metadata.generation);
    for (const kind of OWNED) await world.get(kind, name);
    // When it could not be made, its next try is a minute away.
    await world.get('Secret', `${name}-peers`);
    const { ports, externalIPs, sessionAffinity } = (await world.get('Service', name)).spec;
    expect([ports[0].port, externalIPs, sessionAffinity]).toEqual([port, undefined, 'None']);
    const ready = status.conditions.find(({ type }: Json) => type === 'Ready');
    expect([ready.status, status.rollout.phase]).toEqual(['True', 'Complete']);
    const [{ spec, metadata: current }, ...before] = (await world.deployments(name)) as [Json, ...Json[]];
    expect(spec.replicas).toBe(replicas);
    for (const { configMap } of spec.template.spec.volumes) if (configMap) await world.get('ConfigMap', configMap.name);
    expect(before.length).toBeLessThanOrEqual(HISTORY_MAX);
    for (const one of before) expect(one.metadata.annotations).toHaveProperty(['corelane.dev/retired']);
    for (const { metadata: pod } of await podsOf(name))
      expect(pod.labels[SERVING]).toBe(String(pod.labels[REVISION] === current.labels[REVISION]));
  }

  /** Does kubelet's part: a rollout ends when its pods are ready. */
  async function makePodsReady(): Promise<void> {
    const isReady = ({ status }: Json) => status.conditions?.some(({ type }: Json) => type === 'Ready');
    const pods = await world.list('Pod');
    await world.makeReady(pods.filter((pod) => !pod.metadata.deletionTimestamp && !isReady(pod)));
  }

  /**
   * RenderServices that wait for another try, for seconds perhaps; but not those that are gone: until the operator knew
   * of that it may have failed so often that the next try would be minutes away.
   */
  function triesLeft(): string[] {
    const left = new Set([...alive.keys(), ...UNTOUCHED].map((name) => `${world.namespace}/${name}`));
    const failed = operator.log.split('\n').filter((line) => line.includes('"retryMs"'));
    return failed
      .map((line) => JSON.parse(line))
      .filter(({ key, time, retryMs }) => left.has(key) && Date.parse(time) + retryMs > Date.now() - 500)
      .map(({ key }) => key);
  }

  async function atRest(): Promise<Record<string, string>> {
    fails(0, 0);
    await eventually(
      'everything is as it should be',
      async () => {
        await keepRunning();
        await makePodsReady();
        for (const [name, wanted] of alive) await expectApplied(name, wanted);
        for (const name of UNTOUCHED) await expectApplied(name, DEFAULTS);
        const left = (await world.list('Service')).map(({ metadata }) => metadata.name.replace(/-peers$/, ''));
        expect(new Set(left)).toEqual(new Set([...alive.keys(), ...UNTOUCHED]));
        expect([(await operator.work()).depth, triesLeft()]).toEqual([0, []]);
      },
      { timeoutMs: REST_MS },
    );
    return await settled('all objects', () => world.resourceVersions());
  }

  /** Of what nobody has touched. */
  const still = (versions: Record<string, string>) =>
    Object.entries(versions).filter(([name]) => UNTOUCHED.some((one) => name.split('/')[1]?.startsWith(one)));

  const statuses = async () =>
    Object.fromEntries((await world.list('RenderService')).map(({ metadata, status }) => [metadata.name, status]));

  /** A new process, of which nothing is known but its kubeconfig. */
  async function startAfresh(): Promise<void> {
    operator = await throughProxy('operator-0');
    await operator.untilReady();
    await operator.untilLeading();
  }

  let untouched: [string, string][];

  beforeAll(async () => {
    await prepare(namespace);
    await startAfresh();
    for (const name of UNTOUCHED) await world.createRenderService(name, REST);
    untouched = still(await atRest());
    expect(untouched.length).toBeGreaterThan(10);
  });

  afterAll(end);

  test.each(Array.from({ length: rounds / untilRest }, (_unused, index) => untilRest * (index + 1)))(
    '%i changes end as they should, and no needless write is among what was done for it',
    async () => {
      fails(SHARE, WATCH_SHARE);
      for (let n = 0; n < untilRest; n += 1) {
        if (n % ROUNDS_OF_WATCH === 0) api.cutWatches();
        await round();
        await untilAsked();
      }
      // What comes last is mended by nothing that comes after it.
      for (const [index, spoil] of Object.values(FOREIGN).entries())
        await spoil([...alive.keys()][index % alive.size] as string).catch(() => {});
      const versions = await atRest();
      expect(still(versions)).toEqual(untouched);
      const told = await statuses();
      // One that knows nothing of what has happened finds nothing to do.
      await operator.kill();
      await startAfresh();
      await eventually('it has looked at all', async () => {
        const { done, depth } = await operator.work();
        expect([done >= alive.size + UNTOUCHED.length, depth]).toEqual([true, 0]);
      });
      // First, for it says what was written.
      expect(await statuses()).toEqual(told);
      expect(await operator.sum('corelane_operator_writes_total')).toBe(0);
      expect(await settled('all objects', () => world.resourceVersions())).toEqual(versions);
    },
  );
}
