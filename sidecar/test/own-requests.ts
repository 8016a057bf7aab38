/** A pod whose program asks its own port, or its own site, while it renders (apps/asks-itself.mjs). */
import { FLEET_KEY, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { tokens } from './apps/peer-tokens.mjs';

const COMMAND = ['node', '/app/asks-itself.mjs'];
/** Where the program has a server that says what headers it gets. */
export const ECHO_PORT = 8100;
/** Where the program has a gateway that leads to the pod: no address that it could know as the pod's own. */
const GATEWAY_PORT = 8101;
export const SITE = `127.0.0.2:${GATEWAY_PORT}`;

/** Starts it with this time-out of renders, and waits until its limiter has one. */
export async function startAsking(render: string): Promise<Pod> {
  const classes = [{ name: 'api', match: [{ pathPrefix: '/api' }] }];
  const spec = { workersPerPod: 1, timeouts: { render }, queue: { timeout: '60s' }, classes };
  const env = { ECHO_PORT: String(ECHO_PORT), GATEWAY: `${GATEWAY_PORT} ${PORTS.http}` };
  const pod = await Pod.start(spec, { command: COMMAND, env });
  await until(
    'the limiter knows its limit',
    async () => (await pod.runtimeMetric(0, 'corelane_worker_concurrency_limit')) === 1,
  );
  return pod;
}

/** Path of a page with these parameters. */
export const page = (id: string, query: Record<string, string | number> = {}) =>
  `/?${new URLSearchParams({ id, ...Object.fromEntries(Object.entries(query).map(([key, value]) => [key, `${value}`])) })}`;

const PERIOD_MS = 60_000;

/** The header by which a render's request to its own site is known, as a pod with this key makes it. */
export function mark({ key = FLEET_KEY, periods = 0, depth = 1 } = {}): Record<string, string> {
  const period = Math.floor(Date.now() / PERIOD_MS) + periods;
  return { 'X-Corelane-Own-Site': tokens(key, 'own-site', String(period), String(depth))[0] };
}
