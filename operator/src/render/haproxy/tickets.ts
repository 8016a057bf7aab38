/** Requests that go to workers of other pods: what they show, and what their answers must prove (docs/pooling.md). */
import { KEPT_NEVER } from './connections.ts';

/** Type of what a connection to a peer begins with (PROXY protocol 2): the first of those that are free to use. */
export const TICKET_TLV = '0xE0';

/** Shown in the head of the connection: only there it is known which server takes the request. */
export function withTicket(ticket: string): string {
  return `send-proxy-v2 set-proxy-v2-tlv-fmt(${TICKET_TLV}) ${ticket} ${KEPT_NEVER}`;
}

const PROVEN = '{ res.hdr(X-Corelane-Proof),secure_memcmp(txn.proof) }';

/**
 * A response of another pod counts if it is of the one that has reserved the slot; anybody else's is as good as none.
 */
export const ONLY_PROVEN = refuses(`unless ${PROVEN}`);
/** The same where responses of this pod's own workers come by, too. */
export const ONLY_PROVEN_OF_BORROWED = refuses(`if { srv_name -m beg borrowed- } !${PROVEN}`);

function refuses(unproven: string): string[] {
  return [
    `http-response lua.distrust_peer ${unproven}`,
    `http-response deny deny_status 502 ${unproven}`,
    'http-response del-header X-Corelane-Proof',
  ];
}
