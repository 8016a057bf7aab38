/**
 * Pages of other pods: one that is to be rendered is asked for at its home first, a pod that Lua chooses
 * (sidecar/haproxy/cache/homes.lua). In the other direction a peer's request goes to this pod's nginx, which has a
 * server for it.
 */
import { type Lines, section, when, words } from '../directives.ts';
import type { Cache } from '../model/cache.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { CACHED, PAGES_SOCKET } from '../nginx/cache.ts';
import { ms, whole } from '../safe.ts';
import { errorReply } from './replies.ts';
import { ONLY_PROVEN, withTicket } from './tickets.ts';

/** What a home says of its page, beside who it is. */
const VERDICT = ['proof', 'pod', 'expires', 'stale', 'vary', 'alone'];
/** Of peers, at a time; what is beyond they render themselves. */
const PAGES_MAX = 512;

/** In frontend `herd`, when a request has come out of the queue: its home answers, or it is looked for once more. */
export function asksHome({ isShared }: Cache): Lines {
  return when(
    isShared,
    '# One that goes on for all asks the home of its page first.',
    'http-request lua.find_home if { var(txn.herd) -m found }',
    'http-response lua.judge_home if { var(txn.home) -m found }',
    '# It had none: who comes back renders it here. No failure of a render.',
    `http-response return status 200 hdr X-Accel-Redirect ${CACHED} hdr X-Corelane-Step 0 if { var(txn.no_page) -m bool }`,
    'http-after-response lua.leave_home if { res.hdr(X-Corelane-No-Home) -m found }',
    words(`http-after-response set-header X-Accel-Redirect ${CACHED}`, 'if { res.hdr(X-Corelane-No-Home) -m found }'),
    'http-after-response set-header X-Corelane-Step 0 if { res.hdr(X-Corelane-No-Home) -m found }',
    'http-after-response set-status 200 if { res.hdr(X-Corelane-No-Home) -m found }',
  );
}

/** In frontend `herd`, before the backend of those that render. */
export const USES_HOME = 'use_backend home if { var(txn.home) -m found }';

/** To peers, and from them. */
export function homes(cache: Cache, { ports, queue, timeouts }: DataPlaneModel): Lines {
  const noHome = (status: number) => `http-error ${errorReply(status, 'no-home')} hdr X-Corelane-No-Home 1`;
  return when(
    cache.isShared,
    '# The home of a page, which Lua has asked already. Whatever goes wrong, the page is rendered here. Each place of a herd has a server:',
    '# Lua closes those of a peer that gives no sign of life.',
    section(
      'backend home',
      `timeout server ${ms(queue.timeoutMs + timeouts.workerMs, 'timeouts.render')}`,
      'retries 0',
      [502, 503, 504].map(noHome),
      ONLY_PROVEN,
      'http-response del-header X-Accel- -m beg',
      `http-response del-header '^x-corelane-(?!(?:${VERDICT.join('|')})$)' -m reg`,
      "http-request del-header '^x-corelane-(?!(?:changed|personal)$)' -m reg",
      'http-request set-dst var(txn.peer)',
      'use-server %[var(txn.home)] if TRUE',
      words(
        `server-template home- 0-${whole(cache.herdsMax - 1, 'herds')} 0.0.0.0:${whole(ports.peers, 'port')}`,
        withTicket('%[var(txn.ticket)]'),
      ),
    ),
    '',
    '# Pages of this pod, for peers with a ticket. An nginx that does not answer is noticed, and nobody waits for it.',
    section(
      'backend own-pages',
      `timeout server ${ms(timeouts.proxyMs, 'timeouts.render')}`,
      'timeout queue 1s',
      'timeout check 500ms',
      'option httpchk GET /',
      'http-check expect rstatus ^[0-9]',
      'http-request del-header X-Corelane- -m beg',
      'http-request set-header X-Corelane-Page 1',
      'http-request set-header X-Corelane-Personal 1 if { var(txn.personal) -m bool }',
      "http-request set-header X-Corelane-Changed %[var(txn.changed)] if { var(txn.changed) -m reg '^[0-9]{1,15}( [0-9]{1,15})?$' }",
      'http-response set-header X-Corelane-Expires %[res.hdr(X-Accel-Expires)] if { res.hdr(X-Accel-Expires) -m found }',
      'http-response del-header X-Accel- -m beg',
      words(
        `server nginx unix@${PAGES_SOCKET} maxconn ${whole(PAGES_MAX, 'pages')}`,
        'check inter 1s fastinter 250ms fall 3 rise 1 on-marked-down shutdown-sessions',
      ),
    ),
  );
}

/** In frontend `peers`: who comes with a ticket for a page. */
export const ADMITS_FOR_PAGE: Lines = [
  'acl for_page var(txn.for_page) -m bool',
  'http-request reject if for_page !METH_GET !METH_HEAD',
  'http-request reject if for_page { req.hdr_val(Content-Length) gt 0 }',
  'http-request set-var(txn.changed) req.hdr(X-Corelane-Changed) if for_page',
  'http-request set-var(txn.personal) bool(true) if for_page { req.hdr(X-Corelane-Personal) -m str 1 }',
];

/** In frontend `peers`, before requests go to workers. */
export const USES_OWN_PAGES = 'use_backend own-pages if for_page';
