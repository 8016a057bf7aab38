/**
 * Marks for requests that a render sends to its own site. HAProxy gives one to the worker runtime with each request, and
 * knows it again when such a request comes. Lua keeps both in maps (sidecar/haproxy/own-site.lua).
 */
import { type Lines, when, words } from '../directives.ts';
import type { OwnSite } from '../model/own-site.ts';
import { ALONE } from '../nginx/cache.ts';
import { whole } from '../safe.ts';

const MAPS = '/usr/share/corelane/haproxy';
const HEADER = 'X-Corelane-Own-Site';

/** A request has a mark that counts; a sample of the backend that the mark leads to. */
export const MARKED_FOR = `req.fhdr(${HEADER}),map(${MAPS}/own-site.map)`;
export const HAS_MARK = `{ ${MARKED_FOR} -m found }`;

/** In a frontend: acl `no_slot`, of a request that would wait for one. */
export const KNOWS_SLOTS: Lines = [
  'acl no_slot srv_conn_free(line/slots) le 0',
  'acl no_slot be_conn_free(workers) le 0',
];

/** In frontend `cache`: such a request does not wait for a page whose render may wait for a slot. */
export const LEAVES_HERD: Lines = [
  KNOWS_SLOTS,
  '# What a render has sent to its own site must not wait for a page that waits for the slot of that render.',
  `http-request return status 200 hdr X-Accel-Redirect ${ALONE} hdr X-Corelane-Why own-site if no_slot ${HAS_MARK}`,
];

/**
 * In a backend of workers, behind `keepsIfGuarded`: a mark for what the worker's program sends to its own site. The
 * worker runtime takes the header away from the program, so a worker that may have none gets no mark; nor does a
 * WebSocket, whose headers the runtime does not see.
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
