/** Purges of the cache: what a response says was changed, and what a program of the pod asks for (purge.lua). */
import { given, type Lines, section, words } from '../directives.ts';
import type { Cache } from '../model/cache.ts';
import { PURGE_SOCKET } from '../nginx/figures.ts';

/** Of a request: what it may change. */
const NOTES_TARGET: Lines = [
  'http-request set-var(txn.changed_path) path unless METH_GET or METH_OPTIONS or METH_TRACE',
  'http-request set-var(txn.host) req.hdr(Host) if { var(txn.changed_path) -m found }',
];

/** In backends of workers: what a response says was changed. Of the rest only the proxies say anything. */
export function strips(cache: Cache | undefined): Lines {
  return [
    given(cache, () => [
      '# What was changed is purged whoever still waits for the response.',
      'acl waited srv_name waiting-room',
      NOTES_TARGET,
      words(
        'http-response lua.note_change',
        'if !waited { var(txn.changed_path) -m found } or !waited { res.hdr(X-Corelane-Purge) -m found }',
      ),
    ]),
    '# Only the proxies may say who made an error, and that a request has waited.',
    'http-response del-header X-Corelane- -m beg if !{ srv_name waiting-room }',
    given(cache, () => 'http-response set-header X-Corelane-Purged %[var(txn.purged)] if { var(txn.purged) -m found }'),
  ];
}

/** In frontend `front`: the same of a worker in another pod, which may have no cache. */
export function notesChangeElsewhere(cache: Cache | undefined): Lines {
  return [
    given(cache, () => [
      NOTES_TARGET,
      'acl elsewhere_answered res.hdr(X-Corelane-Pod) -m found',
      'acl elsewhere_purged res.hdr(X-Corelane-Purged) -m found',
      'http-response lua.note_change_elsewhere if elsewhere_answered elsewhere_purged',
      'http-response lua.note_change if elsewhere_answered !elsewhere_purged { var(txn.changed_path) -m found }',
    ]),
    'http-response del-header X-Corelane-Purged',
  ];
}

/** nginx passes purges on that are for the whole fleet. */
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
