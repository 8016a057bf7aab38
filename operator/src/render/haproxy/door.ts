/** The head of a frontend that is not for clients, but that the whole cluster may reach. */
import type { Door } from '../model/doors.ts';
import { whole } from '../safe.ts';

/** CORELANE_ANY_ADDRESS is set by the entry point: `::` for both families, or `*` where there is no IPv6. */
export function bindAny(port: number): string {
  return `bind "\${CORELANE_ANY_ADDRESS}:${whole(port, 'port')}" v4v6`;
}

/**
 * Who is turned away at once is a stranger that has more connections than anybody needs. Everybody else waits in the
 * kernel's queue, first come, first served, for the short time that an idle or slow connection gets: a limit that
 * refused connections would refuse kubelet's probes, too, where they come from the address of an attacker.
 */
export function door({ connectionsMax, perSecondMax, strangers }: Door): string[] {
  const eachPerSecondMax = whole(strangers.eachPerSecondMax, 'connections per second');
  return [
    `maxconn ${whole(connectionsMax, 'connections')}`,
    `rate-limit sessions ${whole(perSecondMax, 'connections per second')}`,
    '# A request for each connection, all of it within half of the time that kubelet waits for its probe: who says nothing has left',
    '# before those behind it give up. Nobody waits for a client that does not close.',
    'option httpclose',
    'timeout http-request 1s',
    'timeout client 5s',
    'timeout client-fin 1s',
    `acl from_node src "\${CORELANE_NODE[*]}"`,
    'stick-table type ipv6 size 4k expire 10s store conn_cur,conn_rate(1s)',
    'tcp-request connection track-sc0 src unless from_node',
    `tcp-request connection reject if { sc0_conn_cur gt ${whole(strangers.eachMax, 'connections')} }`,
    `tcp-request connection reject if { sc0_conn_rate gt ${eachPerSecondMax} }`,
    `tcp-request connection reject if !from_node { fe_conn gt ${whole(strangers.allMax, 'connections')} }`,
    '# HEAD is a GET to HAProxy.',
    'http-request return status 405 unless METH_GET',
  ];
}
