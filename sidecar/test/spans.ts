/** Sampled requests, and what a pod says of their spans. */
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

export const TRACE = '0af7651916cd43dd8448eb211c80319c';
export const CLIENT = 'b7ad6b7169203331';
/** Headers of a request that is sampled. */
export const SAMPLED = { traceparent: `00-${TRACE}-${CLIENT}-01` };
/** Nobody listens there. */
export const NOBODY = { tracing: { endpoint: 'http://127.0.0.1:9' } };

/** A figure of the pod's page; NaN: it has none. */
export async function figure(pod: Pod, series: string): Promise<number> {
  const { body } = await pod.get('/corelane/metrics', { port: PORTS.stats });
  const line = body.split('\n').find((text) => text.startsWith(`${series} `));
  return Number(line?.split(' ')[1] ?? Number.NaN);
}
