/** What tests of pods that share their work send, and read of them. */
import type { Answer, Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';

/** Requests wait for longer than any test. */
export const patient: Partial<RenderServiceSpecInput> = { queue: { timeout: '60s' } };

/** How often a request was handed over before a worker got it, as the worker saw it. */
export function hops({ body }: Answer): number {
  const value = JSON.parse(body).headers['x-corelane-handed-over'];
  return value === undefined ? 0 : value.split(',').length;
}

/** Ids of what the workers of a pod have begun, in order. */
export function begunIn(pod: Pod): string[] {
  return pod.events({ event: 'begin' }).map(({ id }) => id ?? '');
}

/** So many requests at once, each with its id. */
export function many(count: number, send: (id: string) => Promise<Answer>, name = 'r'): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, (_unused, index) => send(`${name}${index}`)));
}

/** Whether a pod would get new connections from a Service. */
export async function isReady(pod: Pod): Promise<boolean> {
  return (await pod.get('/readyz', { port: PORTS.health })).status === 200;
}
