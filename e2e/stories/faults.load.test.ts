/**
 * Workers and proxies are killed, frozen and starved under load through the Service. The renders are pure, so `replay`
 * is Always and no fault behind nginx may cost any request; the workers write down what they begin, so it is known
 * which of those that failed had been begun. (What becomes of a POST with `replay: Safe` is in sidecar/test.)
 *
 * A CI run does each once; `make bench-drain` breaks workers twenty times in each way, and kills proxies twelve times.
 *
 * A load test: no request may fail while pods restart.
 */
import { figure } from '../../operator/test/support/figure.ts';
import { ApiProxy } from '../harness/cluster/api-proxy.ts';
import { eventually, get, kubectl } from '../harness/cluster/cluster.ts';
import { Fleet } from '../harness/cluster/fleet.ts';
import { outcomeOf, report, type StoryOutcome } from '../harness/cluster/outcome.ts';
import { killProxy, sh, signalWorker } from '../harness/cluster/processes.ts';
import { type LivePod, type LiveRenderService, podsOf } from '../harness/cluster/renderservice.ts';

const isFull = process.env.BENCH === 'full';
const PODS = isFull ? 4 : 3;
const WORKER_FAULTS = isFull ? 20 : 1;
/**
 * Three a pod: at the fourth death without 10 s of life in between the entry point leaves a proxy to kubelet (ADR 8).
 */
const PROXY_KILLS = isFull ? 3 * PODS : 1;
/** With 15 a second of the other two clients a load of 0.64 of eight workers; in CI 0.46 of six. */
const RENDER_MS = isFull ? '35' : '50';
const RATE_PER_S = isFull ? 130 : 40;
const SECONDS_MAX = 1_500;
/** Who is connected to an nginx that dies is cut off, whatever has been begun: see docs/adr/0008. */
const OF_NGINX = ['nginx worker process killed', 'nginx master process killed'];

const fleet = new Fleet('faults-story');
const proxy = new ApiProxy();
const seconds: Record<string, number> = {};
let outcome: StoryOutcome;

beforeAll(async () => {
  const resources = { requests: { cpu: '20m', memory: '64Mi' }, limits: { memory: '192Mi' } };
  const env = [
    { name: 'NODE_OPTIONS', value: '--max-old-space-size=48' },
    { name: 'RENDER_MS', value: RENDER_MS },
  ];
  const queue = { maxLength: 1_000, timeout: '20s' };
  const spec = { replay: 'Always', watchdog: { stallTimeout: '2s' }, timeouts: { render: '10s' }, queue };
  await fleet.create(PODS, spec, { resources, env });
  await proxy.start();
  await fleet.startClients(RATE_PER_S, SECONDS_MAX, '--method', 'POST', '--body-bytes', '2000');
}, 400_000);

afterAll(async () => {
  proxy.stop();
  await fleet.remove();
});

/** A page of a pod, through the API server. */
function page(pod: string, port: number, path: string): Promise<string> {
  return proxy.page(fleet.namespace, pod, port, path);
}

/** A page of port 8999 of every pod. */
async function pagesOfAll(path: string): Promise<string[]> {
  const pods = await podsOf(fleet.namespace, fleet.name);
  return Promise.all(pods.map(({ metadata }) => page(metadata.name, 8999, path)));
}

const signal = (pod: string, name: string) => signalWorker(fleet.namespace, pod, name);

/** Sends a pod a request that breaks the worker which gets it; resolves with the answer. */
function breakBy(pod: string, path: string): Promise<string> {
  const script = `require('http').request({ port: 9000, path: '${path}', method: 'POST' }, (response) => {
      console.log(response.statusCode, response.headers['x-corelane-error']);
      process.exit();
    }).on('error', ({ code }) => console.log(code)).end()`;
  return sh(fleet.namespace, pod, 'worker-0', `NODE_OPTIONS= node -e "${script}"`);
}

/** Restarts of all workers of a pod, or undefined while one of them is not up. */
async function restarts(pod: string): Promise<number | undefined> {
  let sum = 0;
  for (const worker of [0, 1]) {
    const text = await page(pod, 8999, `/workers/${worker}/metrics`);
    if (!/^corelane_worker_up\{[^}]*\} 1$/m.test(text)) return undefined;
    for (const [, value] of text.matchAll(/^corelane_worker_restarts_total\{.*\} ([0-9]+)$/gm)) sum += Number(value);
  }
  return sum;
}

/** The same of all pods: a request that breaks its worker may have been handed over to another pod. */
async function fleetRestarts(pods: LivePod[]): Promise<number | undefined> {
  const counts = await Promise.all(pods.map(({ metadata }) => restarts(metadata.name)));
  return counts.every((count) => count !== undefined) ? counts.reduce((sum, count) => sum + count, 0) : undefined;
}

/** Whether no worker of any pod counts as ending again and again. */
async function isCalm(): Promise<boolean> {
  const pages = await pagesOfAll('/corelane/metrics?detail=1');
  return pages.every(
    (text) =>
      /^corelane_worker_crash_looping\{.*\} 0$/m.test(text) && !/^corelane_worker_crash_looping\{.*\} 1$/m.test(text),
  );
}

/**
 * Does something to a worker of each of several pods, one after the other, and waits until all workers are up again.
 * Each time when none counts as ending again and again: else its back-off (10 s at most) is measured, which a quick
 * machine comes to.
 */
async function breakWorkers(name: string, work: (pod: string) => Promise<unknown>): Promise<void> {
  const recoveries: number[] = [];
  const pods = await podsOf(fleet.namespace, fleet.name);
  await fleet.phase(name, WORKER_FAULTS, async (index) => {
    const { metadata } = pods[index % pods.length] as LivePod;
    await eventually('no worker to wait out its back-off', 60_000, async () => (await isCalm()) || undefined);
    const before = (await eventually('all workers to be up', 60_000, () => fleetRestarts(pods))) as number;
    await work(metadata.name);
    const began = performance.now();
    await eventually('a worker to be restarted, and all to be up', 60_000, async () =>
      ((await fleetRestarts(pods)) ?? 0) > before ? true : undefined,
    );
    recoveries.push((performance.now() - began) / 1000);
  });
  seconds[`${name}: worker up again (longest)`] = Math.max(...recoveries);
  figure(`${name}: longest time until all workers are up`, Math.max(...recoveries), 's');
}

/** Whether nobody waits for a worker in any pod: all that are connected are rendered. */
async function isQueueEmpty(): Promise<boolean> {
  const pages = await pagesOfAll('/metrics?metrics=haproxy_backend_current_queue');
  return pages.every((text) => !/^haproxy_backend_current_queue\{proxy="(line|late|workers)"\} [1-9]/m.test(text));
}

/** Each time nobody waits: a queue that the fault before has left would count as a loss of this one. */
async function breakProxies(name: string, process: 'haproxy' | 'nginx', which: 'head' | 'tail'): Promise<void> {
  const recoveries: number[] = [];
  await fleet.phase(name, PROXY_KILLS, async (index) => {
    const pod = await podNumber(index);
    await eventually('the queues to be empty', 120_000, async () => (await isQueueEmpty()) || undefined);
    await killProxy(fleet.namespace, pod, process, which);
    const began = performance.now();
    await eventually(`${process} of ${pod} to serve`, 60_000, async () => {
      await page(pod, 8998, '/readyz');
      await page(pod, 9000, '/ping');
      return true;
    });
    recoveries.push((performance.now() - began) / 1000);
  });
  seconds[`${name}: serves again (longest)`] = Math.max(...recoveries);
  figure(`${name}: longest time until the pod serves again`, Math.max(...recoveries), 's');
}

async function podNumber(index: number): Promise<string> {
  const pods = await podsOf(fleet.namespace, fleet.name);
  return (pods[index % pods.length] as LivePod).metadata.name;
}

/** Name and time of the last change of readiness of each pod, and how often its containers were restarted. */
async function readiness(): Promise<unknown[]> {
  const pods = await podsOf(fleet.namespace, fleet.name);
  return pods.map(({ metadata, status }) => ({
    name: metadata.name,
    ready: status.conditions?.find(({ type }) => type === 'Ready'),
    restarts: status.containerStatuses?.map(({ restartCount }) => restartCount),
  }));
}

describe('under load from three clients, no pod leaves its Service', () => {
  let before: unknown[];
  beforeAll(async () => {
    before = await readiness();
  });
  afterEach(async () => expect(await readiness()).toEqual(before));

  test('a worker is killed', () => breakWorkers('worker killed (-9)', (pod) => signal(pod, 'KILL')), 600_000);
  test('a worker is frozen', () => breakWorkers('worker frozen', (pod) => signal(pod, 'STOP')), 600_000);
  test('a worker exhausts its heap', async () => {
    await breakWorkers('heap exhausted', async (pod) => expect(await breakBy(pod, '/heap')).toBe('502 worker-died'));
  }, 600_000);
  test('a worker loops for ever', async () => {
    await breakWorkers('infinite loop', async (pod) => expect(await breakBy(pod, '/loop')).toBe('502 worker-stuck'));
  }, 600_000);
  test('nginx is killed', async () => {
    await breakProxies('nginx worker process killed', 'nginx', 'tail');
    await breakProxies('nginx master process killed', 'nginx', 'head');
  }, 600_000);
  test('HAProxy is killed', () => breakProxies('HAProxy killed', 'haproxy', 'head'), 600_000);
});

describe('under the same load', () => {
  test('a worker goes beyond the memory limit of its container', async () => {
    // With cgroup v2 kubelet lets the whole container die, and the pod is NotReady until it is back.
    await breakWorkers('memory limit exceeded', async (pod) =>
      expect(await breakBy(pod, '/memory')).toBe('502 worker-died'),
    );
  }, 600_000);

  test('what no worker had begun is not lost, but for what was connected to a dead nginx; no worker ever had two', async () => {
    const clients = await fleet.stopClients();
    outcome = outcomeOf('faults', clients, fleet.phases, { begun: await begunRequests(), seconds });
    report(outcome);
    expect(outcome.requests).toBeGreaterThan(0);
    expect(outcome.overlaps).toBe(0);
    const others = outcome.phases.filter(({ name }) => name !== 'all' && !OF_NGINX.includes(name));
    const unbegun = others.reduce((sum, phase) => sum + phase.lost, 0);
    figure(
      'requests lost before a worker had begun them, without faults of nginx',
      unbegun,
      `of ${outcome.requests}`,
      '0',
    );
    const lost = outcome.phases.filter((phase) => phase.lost > 0).map(({ name }) => name);
    expect(lost.filter((name) => name !== 'all' && !OF_NGINX.includes(name))).toEqual([]);
    // Each broken worker takes at most the request with it that it had; those of this test are not in the clients'
    // count.
    for (const { name, count, failed } of outcome.phases) {
      // The port of a dead nginx stays open.
      expect(failed.ECONNREFUSED ?? 0).toBe(0);
      if (name === 'all' || OF_NGINX.includes(name)) continue;
      expect(Object.keys(failed).filter((how) => how !== '502 worker-died')).toEqual([]);
      expect(failed['502 worker-died'] ?? 0).toBeLessThanOrEqual(count);
    }
  }, 400_000);
});

describe('a worker that ends again and again', () => {
  const health = async () => {
    const { status } = await get<LiveRenderService>('-n', fleet.namespace, 'renderservice', fleet.name);
    return status?.conditions?.find(({ type }) => type === 'WorkersHealthy');
  };

  const crashLoopEvents = async () => {
    const events = ['-n', fleet.namespace, 'get', 'events', '-o', 'name', '--field-selector=reason=CrashLoop'];
    return (await kubectl(events)).trim().split('\n').filter(Boolean);
  };

  test('is named in status, and its pod stays Ready', async () => {
    const pod = await podNumber(1);
    // The faults above may have met one worker so often that it counts as a loop, which status does not know yet.
    await eventually('all workers to be healthy', 60_000, async () =>
      (await isCalm()) && (await health())?.status === 'True' ? true : undefined,
    );
    const before = await readiness();
    const eventsBefore = await crashLoopEvents();
    const condition = await eventually('status to tell', 120_000, async () => {
      await signal(pod, 'KILL').catch(() => undefined); // none is there while its supervisor waits
      const now = await health();
      return now?.status === 'False' ? now : undefined;
    });
    expect(condition.reason).toBe('CrashLoop');
    expect(condition.message).toMatch(new RegExp(`^worker-0 of pod ${pod} restarts in a loop: exit code 137, `));
    expect(await readiness()).toEqual(before);
    expect(await crashLoopEvents()).toHaveLength(eventsBefore.length + 1);
    if (!isFull) return;
    await eventually('status to forget it', 120_000, async () =>
      (await health())?.status === 'True' ? true : undefined,
    );
  });
});

/** What the workers of all pods have written down. */
async function begunRequests(): Promise<Set<string>> {
  const begun = new Set<string>();
  for (const { metadata, status } of await podsOf(fleet.namespace, fleet.name)) {
    for (const { name, restartCount } of status.containerStatuses ?? []) {
      for (const previous of restartCount > 0 ? [[], ['--previous']] : [[]]) {
        const log = await kubectl(['-n', fleet.namespace, 'logs', metadata.name, '-c', name, ...previous]);
        for (const [, id] of log.matchAll(/^begin (\S+)$/gm)) begun.add(id as string);
      }
    }
  }
  return begun;
}
