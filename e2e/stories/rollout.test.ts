/**
 * A change of pods and the way back, without load; rollout.load.test.ts has the same and more under load. And how a
 * pod stops where a service mesh refuses what kubelet asks it.
 */
import { eventually, kubectl } from '../harness/cluster/cluster.ts';
import { Fleet } from '../harness/cluster/fleet.ts';
import { imageNames } from '../harness/cluster/operator.ts';
import { type LivePod, untilReady } from '../harness/cluster/renderservice.ts';
import { run } from '../harness/cluster/shell.ts';
import { changeOnce, rolloutOf, untilServed } from './rollout.ts';

const PODS = 1;
const BESIDE = 7001;
const fleet = new Fleet('rollout-smoke');

/** Every page needs the container beside the worker. The last one begins before the drain, and ends behind it. */
const PAGES = `
  const http = require('node:http');
  const untilRefused = (done) => require('node:net').connect(9000, '127.0.0.1')
    .once('error', done)
    .once('connect', function () { this.destroy(); setTimeout(untilRefused, 100, done); });
  http.createServer((request, response) => {
    const render = () => http.get('http://127.0.0.1:${BESIDE}/', (data) => data.pipe(response));
    if (request.url !== '/last') return render();
    console.log('begun');
    untilRefused(render);
  }).listen(process.env.PORT, '127.0.0.1');`;
/** Ends at SIGTERM at once, as proxies to databases do. */
const DATA = `
  process.on('SIGTERM', () => process.exit());
  require('node:http').createServer((_request, response) => response.end('data')).listen(${BESIDE}, '127.0.0.1');`;

beforeAll(async () => {
  // As many rest as the service has: the way back starts none.
  const rollout = { rolling: { maxSurge: 1 }, retain: { replicas: PODS } };
  const beside = {
    name: 'beside',
    image: imageNames().storefront,
    command: ['node', '-e', DATA],
    resources: { requests: { cpu: '5m', memory: '32Mi' } },
  };
  const worker = { command: ['node', '-e', PAGES] };
  await fleet.create(PODS, { rollout, workersPerPod: 1, drain: { delay: '0s' } }, worker, [beside]);
}, 400_000);

afterAll(() => fleet.remove());

test('a change: the revision before rests, and gets nothing any more', () => changeOnce(fleet, PODS), 300_000);

test('undo: its pods are there', async () => {
  const before = (await rolloutOf(fleet))?.revisions.find(({ restsUntil }) => restsUntil)?.revision as string;
  await fleet.rollout('undo');
  await untilServed(fleet, before);
  await untilReady(fleet.namespace, fleet.name);
  expect((await rolloutOf(fleet))?.revision).toBe(before);
}, 300_000);

test('a network that refuses what kubelet asks: a pod that stops ends its last page, which has all that it needs', async () => {
  const [pod] = (await fleet.livePods()) as [LivePod];
  const { name } = pod.metadata;
  const path = `/api/v1/namespaces/${fleet.namespace}/pods/${name}:9000/proxy/last`;
  const last = kubectl(['get', '--raw', path]).catch(String);
  await eventually('a worker begins the last page', 60_000, async () => {
    const log = await kubectl(['-n', fleet.namespace, 'logs', name, '-c', 'worker-0']);
    return log.includes('begun') || undefined;
  });
  // As where a mesh wants mutual TLS: kubelet has no certificate.
  const rule = ['OUTPUT', '-d', pod.status.podIP, '-p', 'tcp', '--dport', '8998', '-j', 'REJECT'];
  const iptables = (verb: string) => run('docker', ['exec', pod.spec.nodeName, 'iptables', '-w', verb, ...rule]);
  await iptables('-I');
  try {
    await kubectl(['-n', fleet.namespace, 'delete', 'pod', name, '--wait=false']);
    expect(await last).toBe('data');
  } finally {
    await iptables('-D');
  }
}, 300_000);
