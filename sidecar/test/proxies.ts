/** Pods whose proxies die. */
import { Pod } from '../../e2e/harness/engine/pod.ts';

/** Starts a pod whose requests wait for long. */
export const startPatient = () => Pod.start({ workersPerPod: 2, queue: { timeout: '60s' } });

/** A POST of 100 kB. */
export const post = (pod: Pod, id: string, query = '') =>
  pod.get(`/?id=${id}&${query}`, { method: 'POST', body: 'x'.repeat(100_000) });
