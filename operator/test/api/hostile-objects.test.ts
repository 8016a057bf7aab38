/**
 * Objects that somebody writes who means no good, or does not know: the operator stays up, and does its work for all
 * others.
 */
import { createServer, type Server } from 'node:http';
import net from 'node:net';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, HARMLESS, TOLD } from '../support/told.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';
import { expectToWork, stalledMessage } from './hostile-objects.ts';

let world: World;
let sequence = 0;
const open: (Server | net.Socket)[] = [];

beforeEach(async () => {
  sequence += 1;
  world = await World.create(sharedServer(), `hostile-objects-${sequence}`);
});

afterEach(async () => {
  await OperatorProcess.killAll();
  for (const one of open.splice(0)) {
    if (one instanceof net.Socket) one.destroy();
    else one.close();
  }
});

test(HARMLESS.foreignPod, async () => {
  const address = '127.53.99.1';
  let asked = 0;
  const stats = createServer((_request, response) => {
    asked += 1;
    response.end();
  });
  open.push(stats);
  await new Promise<void>((resolve) => stats.listen(8999, address, resolve));
  const labels = { 'corelane.dev/renderservice': 'honest', app: 'foreign' };
  await world.admin.post(world.path('Pod'), {
    metadata: { name: 'foreign', labels },
    spec: podTemplate({ name: 'worker-0' }).spec,
  });
  const status = {
    phase: 'Running',
    podIP: address,
    podIPs: [{ ip: address }],
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [{ name: 'worker-0', image: 'x', imageID: '', ready: true, restartCount: 0, state: {} }],
  };
  await world.admin.patch(`${world.path('Pod', 'foreign')}/status`, { status });
  const operator = await world.startOperator();
  await world.createRenderService('honest', { replicas: 1 });
  await world.untilApplied('honest');
  const own = await eventually('the pod of the RenderService is there', async () => {
    const found = (await world.list('Pod')).find(({ metadata }) => metadata.name.startsWith('honest-'));
    expect(found).toBeDefined();
    return found?.metadata.name as string;
  });
  const noOnes = '127.53.99.2';
  const running = { ...status, podIP: noOnes, podIPs: [{ ip: noOnes }] };
  await world.admin.patch(`${world.path('Pod', own)}/status`, { status: running });
  // The sampler has made a round: it has tried the pod whose address nobody has.
  await eventually('a round of the sampler', async () => {
    expect(await operator.sum('corelane_operator_pod_samples_total')).toBeGreaterThan(0);
  });
  expect(asked).toBe(0);
  // One of the two pods has told of a worker.
  expect((await world.get('RenderService', 'honest')).status.workers).toMatchObject({ total: 1 });
});

test('a template of which 64 copies would fill the memory is Stalled with its size and the bound, and nobody dies of it', async () => {
  const operator = await world.startOperator();
  const large = podTemplate({ env: [{ name: 'LARGE', value: 'x'.repeat(1_350_000) }] });
  await world.createRenderService('large', { workersPerPod: 64, template: large });
  const message = await stalledMessage(world, 'large', 'InvalidSpec');
  expect(message).toMatch(asTold(TOLD.templateTooLarge));
  expect(message).toMatch(/some 864\d\d kB.* each of 64 workers has a copy of its container \(1351 kB\)/);
  await expectToWork(world, operator);
});

test('a template that is too large only with whose its fields are is told before it is built, too', async () => {
  const operator = await world.startOperator();
  // An API server stores a new one without the ownership of its 16,000 fields, and then refuses each apply of it.
  const env = Array.from({ length: 1_000 }, (_unused, n) => ({ name: `V${n}`, value: 'x' }));
  await world.createRenderService('grows', { workersPerPod: 16, template: podTemplate({ env }) });
  expect(await stalledMessage(world, 'grows', 'InvalidSpec')).toMatch(
    /^spec\.template: makes a Deployment of some 1[4-6]\d\d kB/,
  );
  await expectToWork(world, operator);
});

test(HARMLESS.connections, async () => {
  const operator = await world.startOperator();
  let ended = 0;
  for (let n = 0; n < 300; n += 1) {
    const socket = net.connect(operator.metricsPort, '127.0.0.1');
    socket
      .on('error', () => {})
      .on('close', () => {
        ended += 1;
      });
    open.push(socket);
  }
  // Who comes later has the place of the oldest.
  await eventually('most had to make room', () => expect(ended).toBeGreaterThan(250));
  expect(await operator.metrics()).not.toEqual([]);
  expect(await operator.status('/livez')).toBe(200);
  expect(await operator.status('/readyz')).toBe(200);
});
