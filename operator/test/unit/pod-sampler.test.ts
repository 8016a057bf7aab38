/** When pods are asked for their figures, and what is kept of the answers. sidecar/test/pod-sample has the answers. */
import { PodSampler } from '../../src/controller/pod-sampler.ts';
import type { KubeObject } from '../../src/kube/types.ts';

function pod(index: number, status: object = { phase: 'Running', podIP: `10.0.0.${index}` }, metadata: object = {}) {
  const name = `pod-${index}`;
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, uid: `uid-${index}`, ...metadata }, status } as KubeObject;
}

/** A page of HAProxy with one worker and a queue. */
function page(queue: number): string {
  return `# HELP haproxy_server_status Current status of the service, per state label value.
haproxy_server_status{proxy="workers",server="worker-0",state="UP"} 1
haproxy_server_status{proxy="workers",server="waiting-room",state="UP"} 1
haproxy_backend_current_queue{proxy="line"} ${queue}
`;
}

/** A sampler of `pods`; `answers` gives the page of an address, or throws. */
function world(pods: KubeObject[], answers: (address: string) => Promise<string>) {
  const changed: string[] = [];
  const results: string[] = [];
  const sampler = new PodSampler({
    pods: () => pods,
    onChange: ({ metadata }) => changed.push(metadata.name),
    onResult: (result) => results.push(result),
    get: (address) => answers(address),
  });
  return { sampler, pods, changed, results };
}

test('pods that run are asked, others are not', async () => {
  const asked: string[] = [];
  const starting = pod(2, { phase: 'Pending', podIP: '10.0.0.2' });
  const stopping = pod(3, undefined, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  const { sampler } = world([pod(1), starting, stopping], async (address) => {
    asked.push(address);
    return page(3);
  });
  expect(sampler.hasRound).toBe(false);
  await sampler.round();
  expect(new Set(asked)).toEqual(new Set(['10.0.0.1']));
  expect(sampler.hasRound).toBe(true);
  expect(sampler.of(pod(1))).toMatchObject({ queue: 3, workers: [{ name: 'worker-0', up: true, busy: 0 }] });
  expect(sampler.of(starting)).toBeUndefined();
});

test('only news is told, and the first round as a whole', async () => {
  let queue = 0;
  const { sampler, changed } = world([pod(1), pod(2)], async (address) => page(address === '10.0.0.2' ? queue : 0));
  await sampler.round();
  expect(new Set(changed)).toEqual(new Set(['pod-1', 'pod-2']));
  changed.length = 0;
  await sampler.round();
  expect(changed).toEqual([]);
  queue = 5;
  await sampler.round();
  expect(changed).toEqual(['pod-2']);
});

test('a pod that does not answer keeps its figures for a while, and says why it has no new ones', async () => {
  let works = true;
  const { sampler, results, changed } = world([pod(1)], async () => {
    if (!works) throw new Error('no route');
    return page(1);
  });
  await sampler.round();
  works = false;
  changed.length = 0;
  await sampler.round();
  await sampler.round();
  expect(sampler.of(pod(1))?.queue).toBe(1);
  expect(sampler.errorOf(pod(1))).toBe('no route');
  expect(results).toEqual(['ok', 'error', 'error']);
  expect(changed).toEqual(['pod-1']);
});

test('a pod that has gone is forgotten', async () => {
  const { sampler, pods } = world([pod(1)], async () => page(1));
  await sampler.round();
  pods.pop();
  await sampler.round();
  expect(sampler.of(pod(1))).toBeUndefined();
});

test('never more than ten at a time', async () => {
  let running = 0;
  let most = 0;
  const pods = Array.from({ length: 50 }, (_unused, index) => pod(index));
  const { sampler } = world(pods, async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return page(0);
  });
  await sampler.round();
  expect(most).toBe(10);
  expect(sampler.of(pod(49))).toBeDefined();
});
