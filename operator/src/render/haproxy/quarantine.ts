/** URLs whose requests have got workers stuck: what is counted of them, and who gets no worker (docs/runtime.md). */
import { given, type Lines, paragraphs, section, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import type { Quarantine } from '../model/quarantine.ts';
import { ms, whole } from '../safe.ts';
import { CLIENT_NETWORK } from './client-network.ts';
import { errorReply } from './replies.ts';
import { NOT_SUSPECT } from './served-as.ts';

/**
 * What a request asks for. SHA-256, so that nobody makes a URL that is taken for another one. Not what has a body:
 * nobody has it whole here, and without it the URL does not tell what is rendered.
 */
const URL_DIGEST = [
  words(
    'http-request set-var(txn.url) baseq,sha2(256),bytes(0,16),hex',
    'if METH_GET !{ req.hdr(Upgrade) -m found } !{ req.hdr_val(Content-Length) gt 0 }',
  ),
  `http-request set-var(txn.client) ${CLIENT_NETWORK}`,
];

/** Refused for all, or for this client. */
const IS_REFUSED = [
  'acl poison var(txn.url) -m str -f virt@refused',
  'acl poison var(txn.url),concat(" ",txn.client) -m str -f virt@refused',
];

/** For a request of a peer: this pod knows what its own workers got stuck in. */
export const KNOWS_POISON: Lines = [URL_DIGEST, IS_REFUSED];

/** Refused requests have a backend of their own, where they are counted. */
export const USES_POISON = 'use_backend poison if poison';

/** In front: a URL is refused, or, if it may be about to get workers stuck, gets no more of them than that takes. */
export function holdsSuspects({ classes, retryAfterSeconds }: DataPlaneModel): Lines {
  const refusal = (reason: string) => `http-request return ${errorReply(503, reason, retryAfterSeconds)}`;
  return [
    URL_DIGEST,
    given(classes, () => NOT_SUSPECT),
    'acl asked var(txn.url),table_conn_cur(urls-asked) gt 0',
    'acl asked var(txn.url),table_conn_cur(urls) gt 0',
    'acl suspect var(txn.url),table_gpc0(urls) eq 0',
    'acl suspect var(txn.url) -m str -f virt@suspects',
    'http-request lua.hold_if_suspect if { var(txn.url) -m found } asked suspect !{ so_name replay }',
    IS_REFUSED,
    ['queue-timeout', 'queue-full'].map((reason) => `${refusal(reason)} if { var(txn.held) -m str ${reason} } !poison`),
    'http-request track-sc2 var(txn.url) table urls-asked if { var(txn.url) -m found } !poison',
  ];
}

/**
 * In front of the workers: what becomes of the requests for each URL, seen where no client that goes ends a request.
 */
export const COUNTS_URLS: Lines = [
  URL_DIGEST,
  'http-request track-sc2 var(txn.url) table urls if { var(txn.url) -m found }',
  'http-request set-var(txn.id) req.hdr(X-Request-ID)',
  '# Over a connection to a worker that nobody has used: the end of one that was used before is told to nobody.',
  words(
    'http-request set-var(txn.fresh) uuid',
    'if { sc2_get_gpc0 eq 0 } { sc2_conn_cnt gt 1 } or { var(txn.url) -m str -f virt@suspects }',
  ),
  'http-response sc-inc-gpc0(2) unless { res.hdr(X-Corelane-Error) -m found }',
  words(
    'http-after-response set-var(txn.died) res.hdr(X-Corelane-Died)',
    'if { status 502 } { res.hdr(X-Corelane-Died) -m found }',
  ),
  'http-after-response lua.note_death if { var(txn.died) -m found } { var(txn.url) -m found }',
];

/**
 * In a backend that requests reach without the stage above: a URL that is answered there has an answer. Without it
 * `holdsSuspects` would hold the third request at once, each time. `front` has the other two counters of the request
 * (COUNTS_CLIENT, `holdsSuspects`), and HAProxy takes no notice of a second use.
 */
export const COUNTS_ANSWERS: Lines = [
  'http-request track-sc0 var(txn.url) table urls if { var(txn.url) -m found }',
  'http-response sc-inc-gpc0(0) unless { res.hdr(X-Corelane-Error) -m found }',
];

/** Tables of URLs, and the backend that refuses. */
export function quarantineBackends({ durationMs, retryAfterSeconds, stallMs, urlsMax }: Quarantine): Lines {
  const expire = ms(durationMs, 'watchdog.quarantine.duration');
  const table = `stick-table type string len 32 size ${whole(urlsMax, 'URLs')} expire ${expire} store conn_cur`;
  return paragraphs(
    [
      '# Never used for traffic: requests for each URL that have been let through and are not answered; and those that are rendered, with',
      '# answers (gpc0). Of more URLs than there is room for, those are forgotten that nobody has asked for the longest.',
      section('backend urls-asked', table),
    ],
    section('backend urls', `${table},conn_cnt,gpc0,gpc0_rate(${ms(stallMs, 'watchdog.stallTimeout')})`),
    [
      '# Its requests are counted here, and not as those that a full queue refuses.',
      section('backend poison', `http-request return ${errorReply(503, 'poison', retryAfterSeconds)}`),
    ],
  );
}
