/**
 * Changes of pods and the way back, under an open-loop load, with a client that keeps its connection and one that finds
 * pods as an ingress does: a change, undo, another change in the middle of one, an operator that is killed. Nothing is
 * lost, and undo takes seconds, because pods of the revision before are there.
 *
 * A load test: no request may fail for minutes.
 */
import { figure } from '../../operator/test/support/figure.ts';
import { eventually, kubectl, SELDOM_MS } from '../harness/cluster/cluster.ts';
import { Fleet } from '../harness/cluster/fleet.ts';
import { OPERATOR_NAMESPACE } from '../harness/cluster/operator.ts';
import { failedRequests } from '../harness/cluster/outcome.ts';
import { deploymentsOf, untilReady } from '../harness/cluster/renderservice.ts';
import { change, changeOnce, rolloutOf, untilServed } from './rollout.ts';

const PODS = 3;
const fleet = new Fleet('rollout-story');

beforeAll(async () => {
  // As many as the service has: the way back starts none.
  const rollout = { rolling: { maxSurge: 1 }, retain: { replicas: PODS } };
  const env = [{ name: 'RENDER_MS', value: '50' }];
  await fleet.create(PODS, { rollout, queue: { maxLength: 1_000, timeout: '20s' } }, { env });
  await fleet.startClients(25, 900);
}, 400_000);

afterAll(async () => {
  await fleet.stopClients();
  await fleet.remove();
});

const rolloutStatus = () => rolloutOf(fleet);

test('a change: the revision before rests, and gets nothing any more', () => changeOnce(fleet, PODS), 300_000);

test('undo in seconds: its pods are there', async () => {
  const before = (await rolloutStatus())?.revisions.find(({ restsUntil }) => restsUntil)?.revision as string;
  const began = performance.now();
  await fleet.rollout('undo');
  await untilServed(fleet, before);
  figure('time from an undo until the Service has only the revision before', (performance.now() - began) / 1000, 's');
  await untilReady(fleet.namespace, fleet.name);
  expect((await rolloutStatus())?.revision).toBe(before);
}, 300_000);

test('another change in the middle of one', async () => {
  await change(fleet, '3');
  await eventually('the change to be in the middle', 120_000, async () => {
    const rollout = await rolloutStatus();
    const target = rollout?.revisions.find(({ revision }) => revision === rollout.revision);
    return (rollout?.phase === 'Rolling' && (target?.available ?? 0) > 0) || undefined;
  });
  await change(fleet, '4');
  await fleet.rollout('status', '--watch');
  await untilServed(fleet, (await rolloutStatus())?.revision as string);
}, 300_000);

test('an operator that is killed in the middle: the next one goes on', async () => {
  await change(fleet, '5');
  await eventually('the change to begin', 60_000, async () =>
    (await rolloutStatus())?.phase === 'Rolling' ? true : undefined,
  );
  await kubectl([
    ...['-n', OPERATOR_NAMESPACE, 'delete', 'pod', '--all', '--grace-period=0', '--force', '--wait=false'],
  ]);
  await fleet.rollout('status', '--watch');
  await untilServed(fleet, (await rolloutStatus())?.revision as string);
  await kubectl(['-n', OPERATOR_NAMESPACE, 'rollout', 'status', 'deployment/corelane', '--timeout=90s']);
}, 400_000);

test('what is written into a Deployment by hand is taken back and told', async () => {
  const [deployment] = await deploymentsOf(fleet.namespace, fleet.name);
  await kubectl(['-n', fleet.namespace, 'scale', `deployment/${deployment?.metadata.name}`, '--replicas=1']);
  await eventually(
    'it to be told',
    60_000,
    async () => {
      const path = '{.status.conditions[?(@.type=="ObjectsInSync")].message}';
      const args = ['get', 'renderservice', fleet.name, '-o', `jsonpath=${path}`];
      const message = await kubectl(['-n', fleet.namespace, ...args]);
      return message.includes('"kubectl" has scaled it from 3 to 1') || undefined;
    },
    SELDOM_MS,
  );
  await fleet.settled();
}, 300_000);

test('no request is lost', async () => {
  const clients = await fleet.stopClients();
  const failed = failedRequests(clients);
  const sent = clients.reduce((sum, { timeline }) => sum + timeline.length, 0);
  figure('requests lost', failed.length, `of ${sent}`, '0');
  expect(failed).toEqual([]);
  for (const { timeline } of clients) expect(timeline.length).toBeGreaterThan(0);
}, 200_000);
