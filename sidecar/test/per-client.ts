/** A pod with limits for each client. */
import { type Answer, Pod } from '../../e2e/harness/engine/pod.ts';

/** Starts one whose clients have three requests at a time. */
export const startLimited = (): Promise<Pod> =>
  Pod.start({
    workersPerPod: 2,
    limits: { perClient: { requests: 3 } },
    webSockets: { enabled: true },
    watchdog: { stallTimeout: '29s' },
  });

/** A request by way of a trusted proxy, which the engine's bridge is. */
export const from = (pod: Pod, address: string, path: string): Promise<Answer> =>
  pod.get(path, { headers: { 'x-forwarded-for': address } });
