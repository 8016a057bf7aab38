/** Cache purges: what responses changed, and what a program in the pod asks for (sidecar/haproxy/purge.lua). */
import { given, type Lines, section, words } from '../directives.ts';
import type { Cache } from '../model/cache.ts';
import { PURGE_SOCKET } from '../nginx/figures.ts';

/** Stores path and host of a request that may change something, for `lua.purge_changed`. */
const STORES_TARGET: Lines = [
  'http-request set-var(txn.changed_path) path unless METH_GET or METH_OPTIONS or METH_TRACE',
  'http-request set-var(txn.host) req.hdr(Host) if { var(txn.changed_path) -m found }',
];

/**
 * Rules for the backends of workers: purge what a response changed, also if its client has left; then remove the
 * headers that only the proxies may set.
 */
export function purgesAndStrips(cache: Cache | undefined): Lines {
  const byWorker = '!{ srv_name waiting-room }';
  return [
    given(cache, () => [
      STORES_TARGET,
      words(
        `http-response lua.purge_changed if { var(txn.changed_path) -m found } ${byWorker}`,
        `or { res.hdr(X-Corelane-Purge) -m found } ${byWorker}`,
      ),
    ]),
    '# Only the proxies may say who made an error, and that a request has waited.',
    `http-response del-header X-Corelane- -m beg if ${byWorker}`,
    given(cache, () => 'http-response set-header X-Corelane-Purged %[var(txn.purged)] if { var(txn.purged) -m found }'),
  ];
}

/**
 * Rules for `front`: purge what the response of a peer changed. The peer says it, unless it has no cache, or the list
 * is too long.
 */
export function purgesChangesOfPeers(cache: Cache | undefined): Lines {
  return [
    given(cache, () => [
      STORES_TARGET,
      'acl by_peer res.hdr(X-Corelane-Pod) -m found',
      'acl purged_by_peer res.hdr(X-Corelane-Purged) -m found',
      'http-response lua.purge_changed_by_peer if by_peer purged_by_peer',
      'http-response lua.purge_changed if by_peer !purged_by_peer { var(txn.changed_path) -m found }',
    ]),
    'http-response del-header X-Corelane-Purged',
  ];
}

/** The frontend for a program in the pod. nginx forwards its `POST /purge`. */
export const PURGES: Lines = section(
  'frontend purge',
  `bind unix@${PURGE_SOCKET} mode 600`,
  'maxconn 64',
  'http-request lua.purge',
  [200, 400, 503].map((status) =>
    words(
      `http-request return status ${status} content-type text/plain lf-string "%[var(txn.said)]\\n"`,
      `if { var(txn.status) -m int ${status} }`,
    ),
  ),
  'http-request return status 500',
);
