/** A pod whose program asks its own port while it renders (apps/asks-itself.mjs). */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';

const COMMAND = ['node', '/app/asks-itself.mjs'];

/** Starts it with this time-out of renders, and waits until its limiter has one. */
export async function startAsking(render: string): Promise<Pod> {
  const classes = [{ name: 'api', match: [{ pathPrefix: '/api' }] }];
  const spec = { workersPerPod: 1, timeouts: { render }, queue: { timeout: '60s' }, classes };
  const pod = await Pod.start(spec, { command: COMMAND });
  await until(
    'the limiter knows its limit',
    async () => (await pod.runtimeMetric(0, 'corelane_worker_concurrency_limit')) === 1,
  );
  return pod;
}

/** Path of a page with these parameters. */
export const page = (id: string, query: Record<string, string | number> = {}) =>
  `/?${new URLSearchParams({ id, ...Object.fromEntries(Object.entries(query).map(([key, value]) => [key, `${value}`])) })}`;
