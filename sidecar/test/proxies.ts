/** Pods whose proxies die. */
import { Pod, type PodOptions } from '../../e2e/harness/engine/pod.ts';

/** Starts a pod whose requests wait for long. @param options of the pod */
export const startPatient = (options: PodOptions = {}) =>
  Pod.start({ workersPerPod: 2, queue: { timeout: '60s' } }, options);

/** A POST of 100 kB. */
export const post = (pod: Pod, id: string, query = '') =>
  pod.get(`/?id=${id}&${query}`, { method: 'POST', body: 'x'.repeat(100_000) });
