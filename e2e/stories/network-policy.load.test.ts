/**
 * Who reaches which port of a pod, on a network that enforces NetworkPolicy. The same visitors try without the policy,
 * under it, and when it has gone: what they get in between is the policy's work.
 *
 * A load test: refused connections end by time-outs.
 */
import { apply, eventually, get, kubectl, SELDOM_MS } from '../harness/cluster/cluster.ts';
import { Fleet } from '../harness/cluster/fleet.ts';
import { OPERATOR_NAMESPACE } from '../harness/cluster/operator.ts';
import { deploymentOf, type LivePod, podsOf, untilAllWorkersUp } from '../harness/cluster/renderservice.ts';
import { create, ingress, reachable, type Standpoint, statusOf, visitor } from '../harness/cluster/visitors.ts';

const HEALTH = 8998;
const STATISTICS = 8999;
const REQUESTS = 9000;
const PEERS = 9001;
/** Of a second container: declared, and not. */
const DECLARED = 7001;
const UNDECLARED = 7002;
/** Where the proxy of Istio's ambient mode listens in a pod; here it is the second container. */
const AMBIENT = 15_008;
const PORTS = [HEALTH, STATISTICS, REQUESTS, PEERS, DECLARED, UNDECLARED, AMBIENT];

const fleet = new Fleet('network-story');
const NEIGHBOUR = 'network-story-neighbour';
const MONITORING = 'network-story-monitoring';
const VISITOR = 'network-story-visitor';

const neighbour: Standpoint = { namespace: NEIGHBOUR, pod: VISITOR };
const monitoring: Standpoint = { namespace: MONITORING, pod: VISITOR };
const inOperatorNamespace: Standpoint = { namespace: OPERATOR_NAMESPACE, pod: VISITOR };
const inSameNamespace: Standpoint = { namespace: fleet.namespace, pod: VISITOR };
/** A worker of the same RenderService; set when there is one. */
let sibling: Standpoint;
let target: LivePod;

const patch = (networkPolicy: object) =>
  kubectl([
    ...['-n', fleet.namespace, 'patch', 'renderservice', fleet.name, '--type=merge'],
    `--patch=${JSON.stringify({ spec: { networkPolicy } })}`,
  ]);

/** What `from` gets, once that is `ports`: a node learns of a policy a moment after the API server. */
async function reaches(from: Standpoint, ports: number[]): Promise<void> {
  const { podIP } = target.status;
  let found: number[] = [];
  const check = async () => {
    found = await reachable(from, podIP, PORTS);
    return JSON.stringify(found) === JSON.stringify(ports) || undefined;
  };
  // The failure says what was reached instead.
  await eventually('the network to know the policy', 30_000, check, SELDOM_MS).catch(() => {});
  expect({ from: `${from.namespace}/${from.pod}`, ports: found }).toEqual({
    from: `${from.namespace}/${from.pod}`,
    ports,
  });
}

/** Takes two pods as they are: one to be visited, one of whose workers visits. */
async function meetPods(): Promise<void> {
  const pods = await fleet.livePods();
  // On another node than the one that it is visited from, if there is one.
  [target, sibling] = [
    pods[0] as LivePod,
    { namespace: fleet.namespace, pod: (pods[1] as LivePod).metadata.name, container: 'worker-0' },
  ];
}

/** Times at which pods have stopped or begun to be Ready. */
async function readyTransitions(): Promise<Record<string, string | undefined>> {
  const pods = await podsOf(fleet.namespace, fleet.name);
  return Object.fromEntries(
    pods.map(({ metadata, status }) => {
      const ready = status.conditions?.find(({ type }) => type === 'Ready');
      return [metadata.name, `${ready?.status} since ${ready?.lastTransitionTime}`];
    }),
  );
}

beforeAll(async () => {
  // Process 1 ignores a SIGTERM that it does not handle, and its pod then takes the whole grace period to end.
  const listen = `process.on('SIGTERM', () => process.exit());
    for (const port of [${DECLARED}, ${UNDECLARED}, ${AMBIENT}]) require('node:net').createServer().listen(port)`;
  const second = {
    name: 'second',
    image: process.env.STOREFRONT_IMAGE,
    command: ['node', '-e', listen],
    ports: [{ containerPort: DECLARED }],
    resources: { requests: { cpu: '5m', memory: '32Mi' } },
  };
  await fleet.create(2, { networkPolicy: { enabled: false } }, {}, [second]);
  const namespaces = [NEIGHBOUR, MONITORING];
  for (const name of namespaces) {
    await kubectl(['delete', 'namespace', name, '--ignore-not-found'], { timeoutMs: 120_000 });
    await apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  }
  await create([
    ...[...namespaces, OPERATOR_NAMESPACE, fleet.namespace].map((namespace) => visitor(namespace, VISITOR)),
    ...ingress(NEIGHBOUR, 'ingress', `${fleet.name}.${fleet.namespace}.svc.cluster.local.`),
  ]);
  await meetPods();
}, 600_000);

afterAll(async () => {
  await fleet.remove();
  await kubectl(['-n', OPERATOR_NAMESPACE, 'delete', 'pod', VISITOR, '--wait=false', '--ignore-not-found']);
  await kubectl(['delete', 'namespace', NEIGHBOUR, MONITORING, '--wait=false', '--ignore-not-found']);
});

test('without a policy everybody reaches every port', async () => {
  for (const from of [neighbour, monitoring, inOperatorNamespace, inSameNamespace, sibling]) await reaches(from, PORTS);
});

describe('under the policy', () => {
  let before: Record<string, string | undefined>;

  beforeAll(async () => {
    before = await readyTransitions();
    const peer = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': MONITORING } } };
    await patch({ enabled: true, monitoring: [peer] });
  });

  test('a neighbour sends requests, uses what another container declares, and reaches the proxy of a mesh', async () => {
    await reaches(neighbour, [REQUESTS, DECLARED, AMBIENT]);
  });

  test('so does a pod of the same namespace that is none of the RenderService', async () => {
    await reaches(inSameNamespace, [REQUESTS, DECLARED, AMBIENT]);
  });

  test('a pod of the same RenderService asks its peers', async () => {
    await reaches(sibling, [REQUESTS, PEERS, DECLARED, AMBIENT]);
  });

  test("the operator's namespace and the one that monitors read health and statistics", async () => {
    await reaches(inOperatorNamespace, [HEALTH, STATISTICS, REQUESTS, DECLARED, AMBIENT]);
    await reaches(monitoring, [HEALTH, STATISTICS, REQUESTS, DECLARED, AMBIENT]);
  });

  test('an ingress in another namespace reaches the Service', async () => {
    const { status } = await get<LivePod>('-n', NEIGHBOUR, 'pod', 'ingress');
    expect(await statusOf(neighbour, `http://${status.podIP}:8080/`)).toBe(200);
  });

  test("kubelet's readiness probes, one a second, have gone on: no pod has been unready", async () => {
    expect(await readyTransitions()).toEqual(before);
  });

  test("new pods become Ready by kubelet's probes, the operator reads them, and the old ones end by kubelet's hooks", async () => {
    const deployment = `deployment/${(await deploymentOf(fleet.namespace, fleet.name)).metadata.name}`;
    await kubectl(['-n', fleet.namespace, 'rollout', 'restart', deployment]);
    await kubectl(['-n', fleet.namespace, 'rollout', 'status', deployment, '--timeout=180s'], {
      timeoutMs: 200_000,
    });
    // Only from the pods' own pages does the operator know of workers that are up.
    await untilAllWorkersUp(fleet.namespace, fleet.name);
    await fleet.settled();
    const { items } = await get<{ items: { reason: string; message: string }[] }>('-n', fleet.namespace, 'events');
    expect(items.filter(({ reason }) => reason === 'FailedPreStopHook')).toEqual([]);
    await meetPods();
    await reaches(neighbour, [REQUESTS, DECLARED, AMBIENT]);
    await reaches(sibling, [REQUESTS, PEERS, DECLARED, AMBIENT]);
  });
});

test('turned off again, it is gone', async () => {
  await patch({ enabled: false });
  await reaches(neighbour, PORTS);
});
