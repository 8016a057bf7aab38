/** Pods as `corelane explain` reads them, and what it then says. */
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { explain } from '../../operator/live/explain.ts';
import { readFigures } from '../../operator/live/figures.ts';
import type { Snapshot } from '../../operator/live/snapshot.ts';
import { windowOf } from '../../operator/live/window.ts';
import { PORTS, workerName } from '../../operator/src/api/names.ts';

/** As a source does it, with what the API server would say left out. */
export async function look(...pods: Pod[]): Promise<Snapshot> {
  const now = pods.map(async (pod, index) => {
    const page = async (path: string) => {
      const { status, body } = await pod.get(path, { port: PORTS.stats });
      if (status !== 200) throw new Error(`${path}: ${status}`);
      return body;
    };
    const names = Array.from({ length: pod.spec.workersPerPod }, (_unused, worker) => workerName(worker));
    const figures = await readFigures(page, names, Date.now());
    return { name: `pod-${index}`, revision: 'r1', state: 'ready' as const, figures };
  });
  const { queue, pooling } = (pods[0] as Pod).spec;
  return {
    ...{ name: 'shop', atMs: Date.now(), status: {}, pods: await Promise.all(now), podsNotAsked: 0 },
    bounds: { queueLength: queue.maxLength, concurrency: 1, latencyMs: {}, ...(pooling.enabled && { peersMax: 64 }) },
  };
}

/** What is said once it is what a pattern has, of what came since `before`. */
export function says(pattern: RegExp, before: Snapshot, ...pods: Pod[]): Promise<string> {
  return until(String(pattern), async () => {
    const now = await look(...pods);
    const text = explain(now, windowOf(now, before)).join('\n');
    return pattern.test(text) ? text : undefined;
  });
}

/** A page of a worker's supervisor, asked from within the pod. */
export function runtimePage(pod: Pod, worker: number, path: string): Promise<string> {
  const ask = `
    const [port, path] = process.argv.slice(-2);
    require('node:http').get({ host: '127.0.0.1', port, path, headers: { 'X-Corelane-Runtime': 'true' } }, (response) => response.pipe(process.stdout));`;
  return pod.inWorker(worker, ask, String(PORTS.firstWorkerRuntime + worker), path);
}
