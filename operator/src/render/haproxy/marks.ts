/**
 * Marks for requests that a render sends to its own site. HAProxy gives one to the worker runtime with each request,
 * and knows it again when such a request comes. Lua keeps both in maps (sidecar/haproxy/own-site.lua).
 */
import { type Lines, when, words } from '../directives.ts';
import type { OwnSite } from '../model/own-site.ts';
import { whole } from '../safe.ts';

const MAPS = '/usr/share/corelane/haproxy';
const HEADER = 'X-Corelane-Own-Site';

/**
 * In a frontend that gets requests from nginx, before `X-Corelane-` headers are taken away. A mark that does not count
 * sets nothing. A WebSocket lasts too long for these places.
 */
export const NOTES_OWN_SITE: Lines = [
  '# A render has sent this request to its own site: the backend with its places.',
  `http-request set-var(txn.own_site) req.fhdr(${HEADER}),map(${MAPS}/own-site.map) unless { req.hdr(Upgrade) -m found }`,
];

/**
 * In a backend of workers, when `txn.unguarded` is known: a mark for what the worker's program sends to its own site.
 * The worker runtime removes the header from the request, so a worker without it gets no mark. The runtime does not see
 * the headers of a WebSocket.
 */
export const GIVES_MARK: Lines = [
  '# The waiting room may have passed one on.',
  `http-request del-header ${HEADER}`,
  `http-request set-header ${HEADER} ${mark(1)} if !{ var(txn.unguarded) -m bool } !{ req.hdr(Upgrade) -m found }`,
];

/**
 * In the backend of a pool: how many requests of the kind led to this one, for the worker runtime, and the mark for the
 * next pool, if there is one.
 */
export function tellsDepth(depth: number, { pools }: OwnSite, workers: number): Lines {
  const said = whole(depth, 'depth');
  return [
    `http-request set-header ${HEADER} ${said}`,
    when(
      depth < pools.length,
      words(
        `http-request set-header ${HEADER} "${said} ${mark(depth + 1)}"`,
        `if { nbsrv(workers-guarded) ge ${whole(workers, 'workersPerPod')} }`,
      ),
    ),
  ];
}

function mark(depth: number): string {
  return `%[str(${whole(depth, 'depth')}),map(${MAPS}/own-site-marks.map)]`;
}
