/**
 * A canary, against the real controllers: the operator writes shares, and goes on when pods have said that they know
 * them. There is no kubelet here: pods are made ready, and the test answers on their port 8999.
 */
import { createServer, type Server } from 'node:http';
import type { Json } from '../support/api-client.ts';
import { corelane } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, TOLD } from '../support/told.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

const ADDRESSES = Array.from({ length: 80 }, (_unused, index) => `127.55.0.${index + 1}`);
/** Of a RenderService: pods get what is written, or stay with what they have. */
const held = new Map<string, string>();
/** Pods that know no canary. */
const old = new Set<string>();
/** Of a RenderService: what becomes of requests at each look at one of its pods. */
const traffic = new Map<string, { requests: number; errors: number }>();
/** What each address has counted. */
const counted = new Map<string, { revision: number; canary: number; errors: number; stable: number }>();

let world: World;
let operator: OperatorProcess;
const servers: Server[] = [];
/** What each address is the pod of, and what it says. */
const services = new Map<string, string>();
const taken = new Map<string, string>();

const serialOf = (settings: string) => /^serial=(\w+)$/m.exec(settings)?.[1] ?? '';

beforeAll(async () => {
  world = await World.create(sharedServer(), 'canary');
  for (const address of ADDRESSES) {
    const server = createServer(async ({ url }, response) => {
      const name = services.get(address) ?? '';
      if (url === '/canary' && name) return void response.end(sidesPage(address, name, await settings(name)));
      if (url !== '/live' || !name) return void response.writeHead(404).end();
      const serial = held.get(name) ?? serialOf(await settings(name));
      response.end(`serial=${serial}\n${old.has(name) ? '' : 'canary=1\n'}`);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(8999, address, resolve));
  }
  operator = await world.startOperator();
});

afterAll(async () => {
  await OperatorProcess.killAll();
  for (const server of servers) server.close();
});

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

async function settings(name: string): Promise<string> {
  return (await world.get('ConfigMap', `${name}-live`)).data.settings;
}

/** What pods are told: hundredths of a percent, or nothing. */
async function share(name: string): Promise<number | undefined> {
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

const image = (version: number) => ({ template: podTemplate({ image: `corelane.test/app:${version}` }) });
const steps = (...all: object[]) => ({ rollout: { canary: { steps: all, analysis: { enabled: false } } } });
/** Steps that are judged, by errors alone. */
const judged = (analysis: object, ...all: object[]) => ({
  rollout: { canary: { steps: all, analysis: { latency: { enabled: false }, ...analysis } } },
});
const APPROVED = { share: 25, approval: true };

/** `1:4 2:1` is four pods of version 1 and one of version 2; `z` is out of service. */
async function revisions(name: string): Promise<string> {
  const all = await world.deployments(name);
  return all
    .map(({ metadata, spec }) => {
      const version = spec.template.spec.containers[0].image.split(':')[1];
      return `${version}:${spec.replicas}${metadata.annotations['corelane.dev/retired'] ? 'z' : ''}`;
    })
    .toSorted()
    .join(' ');
}

async function rolloutOf(name: string): Promise<Json> {
  return (await world.get('RenderService', name)).status?.rollout ?? {};
}

/** Waits until its status is like this; pods become ready meanwhile. */
async function until(name: string, expected: object, except?: string): Promise<Json> {
  return await eventually(`${name}: ${JSON.stringify(expected)}`, async () => {
    await play(name, except);
    const { metadata, status } = await world.get('RenderService', name);
    expect(status.observedGeneration).toBe(metadata.generation);
    expect(status.rollout).toMatchObject(expected);
    return status.rollout;
  });
}

const untilComplete = (name: string) => until(name, { phase: 'Complete' });

/** With four pods of version 1, and these steps. */
async function running(name: string, ...all: object[]): Promise<void> {
  await runningWith(name, steps(...all));
}

async function runningWith(name: string, spec: object): Promise<void> {
  await world.createRenderService(name, { ...image(1), replicas: 4, ...spec });
  await untilComplete(name);
  await eventually('it is ready', async () => {
    await play(name);
    expect(await world.condition(name, 'Ready')).toMatchObject({ status: 'True' });
  });
}

/** With version 2 at a step of 25 % that somebody has to approve. */
async function atTheStep(name: string): Promise<string> {
  await running(name, APPROVED);
  await world.patchSpec(name, image(2));
  const { canary } = await until(name, { phase: 'Paused', reason: 'AwaitingApproval' });
  return canary.revision;
}

const annotate = (name: string, annotations: object) =>
  world.admin.patch(world.path('RenderService', name), { metadata: { annotations } });

async function reasons(name: string): Promise<string[]> {
  return (await world.events(name)).map(({ reason }) => reason);
}

/** `corelane rollout VERB NAME OPTIONS`. */
const rollout = (...args: string[]) => corelane(world, 'rollout', ...args);

test('a step begins when all pods know its share; a person lets it go on; the stable one is whole until the end', async () => {
  await running('shop', { share: 25, for: '1s' }, { share: 50, approval: true });
  expect(await share('shop')).toBeUndefined();
  held.set('shop', serialOf(await settings('shop')));
  await world.patchSpec('shop', image(2));
  await until('shop', { phase: 'Preparing', reason: 'TellingPods', canary: { step: 0, share: 0, appliedPods: 0 } });
  expect([await share('shop'), await revisions('shop')]).toEqual([0, '1:4 2:1']);
  held.delete('shop');
  const { canary, stable, message } = await until('shop', { phase: 'Paused', reason: 'AwaitingApproval' });
  expect(canary).toMatchObject({ attempt: 1, step: 2, steps: 2, share: 50, appliedPods: 6, pods: 6 });
  expect(stable).toMatchObject({ replicas: 4, available: 4 });
  expect(message).toContain(`corelane.dev/rollout-promote: ${canary.revision}:2`);
  expect([await share('shop'), await revisions('shop')]).toEqual([5_000, '1:4 2:2']);
  expect(await settings('shop')).toContain(`canary-revision=${Number.parseInt(canary.revision, 16)}\n`);
  // An HPA must not take the canary for pods that are too many.
  expect((await world.admin.get(`${world.path('RenderService', 'shop')}/scale`)).status.replicas).toBe(4);
  expect(await world.condition('shop', 'Ready')).toMatchObject({ status: 'Unknown' });
  const metrics = await operator.metrics();
  expect(metrics.find(({ name }) => name === 'corelane_renderservice_rollout_share_ratio')).toMatchObject({
    labels: { namespace: 'canary', renderservice: 'shop' },
    value: 0.5,
  });

  await annotate('shop', { 'corelane.dev/rollout-promote': `${canary.revision}:2` });
  await until('shop', { phase: 'Complete', revision: canary.revision });
  await eventually('nobody is told of shares', async () => expect(await share('shop')).toBeUndefined());
  await eventually('the one before rests', async () => expect(await revisions('shop')).toBe('1:1z 2:4'));
  await eventually('status has none of it', async () =>
    expect(Object.keys(await rolloutOf('shop')).toSorted()).toEqual(['phase', 'progressTime', 'revision', 'revisions']),
  );
  await eventually('Events tell it', async () =>
    expect(await reasons('shop')).toEqual(
      expect.arrayContaining(['CanaryStarted', 'CanaryShare', 'CanaryAwaitsApproval', 'CanaryPromoted']),
    ),
  );
  // The way back takes no steps.
  await world.patchSpec('shop', image(1));
  await untilComplete('shop');
  expect(await revisions('shop')).toBe('1:4 2:1z');
  expect(await share('shop')).toBeUndefined();
});

test('abort, by a fact that stays: share 0, its pods go when all know it; retry begins anew', async () => {
  const revision = await atTheStep('stopped');
  held.set('stopped', serialOf(await settings('stopped')));
  await annotate('stopped', { 'corelane.dev/rollout-abort': revision });
  await until('stopped', { phase: 'Aborting', reason: 'AbortAsked', canary: { share: 0 } });
  await eventually('pods are told', async () => expect(await share('stopped')).toBe(0));
  expect(await revisions('stopped')).toBe('1:4 2:1');
  held.delete('stopped');
  await until('stopped', { phase: 'Aborted', reason: 'AbortAsked' });
  await eventually('its pods go', async () => expect(await revisions('stopped')).toBe('1:4 2:0z'));
  await eventually('a pipeline sees it', async () =>
    expect(await world.condition('stopped', 'Stalled')).toMatchObject({
      status: 'True',
      reason: 'RolloutAborted',
      message: expect.stringContaining('stable serves with 4 of 4'),
    }),
  );
  await eventually('Events tell it', async () =>
    expect(await reasons('stopped')).toEqual(expect.arrayContaining(['CanaryAborted', 'RolloutAborted'])),
  );
  expect(await rollout('status', 'stopped')).toMatchObject({ code: 1 });
  expect((await rollout('retry', 'stopped')).code).toBe(0);
  const { canary } = await until('stopped', { phase: 'Paused', canary: { attempt: 2, share: 25 } });
  expect(canary.revision).toBe(revision);
  expect(await rollout('promote', 'stopped')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`corelane.dev/rollout-promote: ${revision}#2:1`),
  });
  await untilComplete('stopped');
  expect(await revisions('stopped')).toMatch(/^1:[14]z 2:4$/);
});

test('status tells how far it is, and abort by a command', async () => {
  await atTheStep('told');
  expect(await rollout('status', 'told', '-w')).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^paused: .*step 1 of 1: 25 %.*5 of 5 pods know it.*corelane rollout promote told/),
  });
  expect((await rollout('abort', 'told')).code).toBe(0);
  await until('told', { phase: 'Aborted' });
});

test('back to the stable revision: nothing is wrong', async () => {
  await atTheStep('back');
  await world.patchSpec('back', image(1));
  await untilComplete('back');
  await eventually('its pods have gone', async () => expect(await revisions('back')).toBe('1:4 2:0z'));
  expect(await world.condition('back', 'Stalled')).toMatchObject({ status: 'False' });
  await eventually('an Event tells it', async () => expect(await reasons('back')).toContain('CanaryEnded'));
});

test('another change: the first canary ends, the second begins at the first step', async () => {
  const first = await atTheStep('hasty');
  await world.patchSpec('hasty', image(3));
  const { canary } = await until('hasty', { phase: 'Paused', reason: 'AwaitingApproval' });
  expect(canary.revision).not.toBe(first);
  expect(await revisions('hasty')).toBe('1:4 2:0z 3:1');
});

test('pods that never become ready: nobody was ever sent to them', async () => {
  await world.createRenderService('never', {
    ...{ ...image(1), replicas: 2 },
    rollout: { canary: { steps: [APPROVED], analysis: { enabled: false } }, rolling: { progressDeadlineSeconds: 10 } },
  });
  await untilComplete('never');
  await world.patchSpec('never', image(2));
  await until('never', { phase: 'Aborted', reason: 'NeverReady' }, '2');
  expect(await revisions('never')).toMatch(/^1:2 2:0z$|^1:2 2:1$/);
  await eventually('a pipeline sees it', async () =>
    expect(await world.condition('never', 'Stalled')).toMatchObject({
      ...{ status: 'True', reason: 'RolloutAborted' },
      message: expect.stringMatching(asTold(TOLD.canaryAborted)),
    }),
  );
});

test('pods of a data plane that knows no canary: it waits, and says what to do', async () => {
  old.add('aged');
  await running('aged', APPROVED);
  await world.patchSpec('aged', image(2));
  const { message } = await until('aged', { phase: 'Preparing', reason: 'DataPlaneTooOld' });
  expect(message).toContain('5 of 5 pods take no part in a canary');
  expect(await share('aged')).toBe(0);
});

test('an operator that is killed in the middle: the next one goes on where it was', async () => {
  const revision = await atTheStep('orphan');
  await operator.kill();
  operator = await world.startOperator('operator-1');
  await annotate('orphan', { 'corelane.dev/rollout-promote': revision });
  await untilComplete('orphan');
  await eventually('the one before rests', async () => expect(await revisions('orphan')).toBe('1:1z 2:4'));
});

test('what a canary remembers is lost: it gets nothing more', async () => {
  await atTheStep('lost');
  const { metadata } = await world.deployment('lost');
  await world.admin.patch(world.path('Deployment', metadata.name), {
    metadata: { annotations: { 'corelane.dev/canary': null } },
  });
  await until('lost', { phase: 'Aborted', reason: 'StatusLost' });
  expect(await revisions('lost')).toMatch(/^1:4 2:[01]z?$/);
});

test('what somebody sets in the file of live settings is no share', async () => {
  await atTheStep('forged');
  const text = await settings('forged');
  await world.admin.patch(world.path('ConfigMap', 'forged-live'), {
    data: { settings: text.replace('canary-share=2500', 'canary-share=10000') },
  });
  await eventually('it is taken back', async () => expect(await share('forged')).toBe(2_500));
});

test('requests of it fail under traffic: it is over by itself, with figures, also for the next operator', async () => {
  await runningWith('judged', judged({}, { share: 25, for: '1h' }));
  traffic.set('judged', { requests: 2, errors: 0 });
  await world.patchSpec('judged', image(2));
  await until('judged', { phase: 'Stepping', reason: 'Counting', canary: { share: 25 } });
  await until('judged', { canary: { analysis: { errors: { canary: 0, stable: 0 } } } });
  traffic.set('judged', { requests: 2, errors: 2 });
  const { message, canary } = await until('judged', { phase: 'Aborted', reason: 'TooManyErrors' });
  expect(message).toMatch(/requests failed, stable 0 of \d+; stable serves with 4 of 4/);
  expect(canary.analysis.errors.canary).toBeGreaterThanOrEqual(4);
  expect(canary.analysis.requests.canary).toBeGreaterThanOrEqual(canary.analysis.errors.canary);
  expect(canary.analysis.evidence.errors).toBe(100);
  await eventually('its pods go', async () => expect(await revisions('judged')).toBe('1:4 2:0z'));
  await eventually('a pipeline sees it', async () =>
    expect(await world.condition('judged', 'Stalled')).toMatchObject({
      ...{ status: 'True', reason: 'RolloutAborted' },
      message: expect.stringMatching(asTold(TOLD.canaryJudged)),
    }),
  );
  await eventually('Events tell it', async () => expect(await reasons('judged')).toContain('CanaryAborted'));
  expect(await rollout('status', 'judged')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('requests failed, stable 0 of'),
  });
  const metrics = await operator.metrics();
  const labels = { namespace: 'canary', renderservice: 'judged', what: 'errors', side: 'canary' };
  expect(
    metrics.find((one) => one.name === 'corelane_renderservice_rollout_judged' && isLike(one.labels, labels))?.value,
  ).toBe(canary.analysis.errors.canary);
  await operator.kill();
  operator = await world.startOperator('operator-2');
  traffic.delete('judged');
  await world.patchSpec('judged', { replicas: 5 });
  const after = await until('judged', { phase: 'Aborted', reason: 'TooManyErrors' });
  expect(after.canary.analysis).toEqual(canary.analysis);
});

const isLike = (labels: Record<string, string>, wanted: Record<string, string>) =>
  Object.entries(wanted).every(([key, value]) => labels[key] === value);

test('no worse, with as many requests as it needs: all of it by itself', async () => {
  await runningWith('good', judged({ minRequests: 20 }, { share: 25, for: '1s' }, { share: 50, for: '1s' }));
  traffic.set('good', { requests: 2, errors: 0 });
  await world.patchSpec('good', image(2));
  await untilComplete('good');
  expect(await revisions('good')).toMatch(/^1:[14]z 2:4$/);
});

test('too few requests: it waits, then asks a person, and is no failure', async () => {
  await runningWith('few', judged({ maxWait: '2s' }, { share: 25, for: '1s' }));
  await world.patchSpec('few', image(2));
  const { message } = await until('few', { phase: 'Paused', reason: 'TooFewRequests', canary: { share: 25 } });
  expect(message).toContain('of fewer than 300 of its requests it is known what came of them');
  expect(await world.condition('few', 'Stalled')).toMatchObject({ status: 'False' });
  await eventually('an Event tells it', async () => expect(await reasons('few')).toContain('CanaryTooFewRequests'));
  expect(await rollout('status', 'few', '-w')).toMatchObject({ code: 2 });
  expect((await rollout('promote', 'few')).code).toBe(0);
  await untilComplete('few');
});

test('an operator that is killed while it judges: the next one knows what was written down', async () => {
  await runningWith('watched', judged({ minRequests: 1_000_000 }, { share: 25, for: '1s' }));
  traffic.set('watched', { requests: 50, errors: 0 });
  await world.patchSpec('watched', image(2));
  const before = await until('watched', { reason: 'Analysing', canary: { analysis: { errors: { canary: 0 } } } });
  await operator.kill();
  traffic.delete('watched');
  operator = await world.startOperator('operator-3');
  const after = await until('watched', { reason: 'Analysing' });
  expect(after.canary.analysis.requests.canary).toBeGreaterThanOrEqual(before.canary.analysis.requests.canary);
  const annotation = (await world.deployment('watched')).metadata.annotations['corelane.dev/canary'];
  expect(annotation.length).toBeLessThan(1_024);
  traffic.set('watched', { requests: 50, errors: 50 });
  await until('watched', { phase: 'Aborted', reason: 'TooManyErrors' });
});
