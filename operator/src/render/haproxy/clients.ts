/**
 * Which clients are still there, by the ids of their requests. HAProxy alone sees a client leave. A supervisor asks it
 * about a render that only waits (sidecar/runtime/clients-gone.cjs): without a client it gives its slot back.
 */
import { type Lines, section, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { longestMs } from '../model/timeouts.ts';
import { ms } from '../safe.ts';

const TABLE = 'clients';
/**
 * More than requests and connections of peers at a time. An entry stays after the client of its request has gone, for
 * as long as the worker may go on. If there are more, the oldest of these is forgotten.
 */
const ENTRIES = '10k';

/** In front: counts a request for as long as its client is there. */
export const COUNTS_CLIENT = `http-request track-sc1 req.hdr(X-Request-ID) table ${TABLE}`;

const ASKS = '{ path_beg /client/ } { src 127.0.0.0/8 }';

/**
 * For the port of probes, and for processes of the pod only. The client of an id that HAProxy has never seen, or has
 * forgotten, counts as waiting.
 */
export const SAYS_WHETHER_GONE: Lines = [
  '# For supervisors: whether the client of the request with this id has gone.',
  words(
    `http-request return status 200 content-type text/plain string gone if ${ASKS}`,
    `{ path,field(3,/),in_table(${TABLE}) -m bool } { path,field(3,/),table_conn_cur(${TABLE}) eq 0 }`,
  ),
  `http-request return status 200 content-type text/plain string waits if ${ASKS}`,
];

/** The table. */
export function clients({ timeouts }: DataPlaneModel): Lines {
  const expire = ms(longestMs(timeouts), 'timeouts.handler');
  return [
    '# Never used for traffic: requests whose clients are there, or have been, by their ids.',
    section(`backend ${TABLE}`, `stick-table type string len 128 size ${ENTRIES} expire ${expire} store conn_cur`),
  ];
}
