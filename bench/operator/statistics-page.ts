/**
 * A page of port 8999 as long as a real one, for who has no pod: 480 lines, of which the operator reads some 30.
 * Computes only.
 */

/** Servers of a pod with two workers, and places for requests that went to other pods. */
const SERVERS = [
  ...Array.from({ length: 32 }, (_unused, index) => ['line', `borrowed-${index}`]),
  ['line', 'slots'],
  ...['workers', 'workers-up', 'workers-alive', 'worker-runtimes'].flatMap((proxy) =>
    ['worker-0', 'worker-1'].map((server) => [proxy, server]),
  ),
  ['workers', 'waiting-room'],
];
const STATES = ['DOWN', 'UP', 'MAINT', 'DRAIN', 'NOLB'];

function family(name: string, lines: string[]): string[] {
  return [`# HELP ${name} What people may want to know of it.`, `# TYPE ${name} gauge`, ...lines];
}

/** With workers that are up and have nothing to do. */
export function statisticsPage(): string {
  const ofServers = (name: string, value = 0) =>
    family(
      `haproxy_server_${name}`,
      SERVERS.map(([proxy, server]) => `haproxy_server_${name}{proxy="${proxy}",server="${server}"} ${value}`),
    );
  const ofBackends = (name: string) =>
    family(
      `haproxy_backend_${name}`,
      [...new Set(SERVERS.map(([proxy]) => proxy)), 'poison', 'late', 'peers'].map(
        (proxy) => `haproxy_backend_${name}{proxy="${proxy}"} 0`,
      ),
    );
  const states = SERVERS.flatMap(([proxy, server]) =>
    STATES.map(
      (state) =>
        `haproxy_server_status{proxy="${proxy}",server="${server}",state="${state}"} ${state === 'UP' ? 1 : 0}`,
    ),
  );
  return [
    ...family('haproxy_frontend_intercepted_requests_total', [
      'haproxy_frontend_intercepted_requests_total{proxy="front"} 0',
    ]),
    ...ofBackends('current_queue'),
    ...ofBackends('connection_errors_total'),
    ...ofBackends('http_requests_total'),
    ...family('haproxy_server_status', states),
    ...ofServers('current_sessions'),
    ...ofServers('limit_sessions', 1),
    ...ofServers('connection_errors_total'),
    ...ofServers('check_up_down_total'),
    ...ofServers('current_queue'),
    '',
  ].join('\n');
}
