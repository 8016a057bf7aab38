/** Frontend `front`: what nginx sends is refused, held back, handed to a peer, or waits in the queue. */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { given, type Lines, section, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { KEEPS_NO_404 } from './assets.ts';
import { NOTES_ALONE, TELLS_ALONE } from './cache.ts';
import { choosesSide, STAYS_HERE, USES_OTHER_SIDE } from './canary.ts';
import { usesClasses } from './classes.ts';
import { COUNTS_CLIENT } from './clients.ts';
import { AUTHENTICATES, KEEPS_CLIENTS } from './connections.ts';
import { notesDeadline, PASSES_DEADLINE } from './deadlines.ts';
import { ASKS_WHY_IT_DIED, DIED, notesForDeath, STUCK } from './deaths.ts';
import { LEADS_TO_SHELL, NOTES_BROWSER } from './fallback.ts';
import { live } from './live.ts';
import { NOTES_OWN_SITE } from './marks.ts';
import { keepsOwnSite, USES_OWN_SITE, WAITS_FOR_SLOT } from './own-site.ts';
import { NOTES_CLASS, ranks, usesRefused } from './priority.ts';
import { purgesChangesOfPeers } from './purge.ts';
import { holdsSuspects, USES_POISON } from './quarantine.ts';
import { errorReply, NO_REPLY, tooLateReplies } from './replies.ts';
import { IS_RENDER, NOT_RANKED, NOTES_SERVED_AS, rendersOnce, TELLS_CLASS } from './served-as.ts';

/**
 * What proxies tell about a client and frameworks believe, beside the headers that nginx sets itself (X-Forwarded-For,
 * -Host, -Proto, X-Real-IP) and Forwarded. docs/edge.md has the list. Each text is the beginning of a name; a text that
 * ends with $ is a whole name. sidecar/nginx/names.c must have all of them.
 */
export const FORWARDING = [
  'x-forwarded(?!-(for|host|proto)$)',
  ...['x-original-', 'x-rewrite-', 'x-client-ip$', 'x-cluster-client-ip$', 'true-client-ip$', 'cf-connecting-ip'],
  ...['fastly-client-ip$', 'x-host$', 'x-scheme$', 'x-url-scheme$', 'front-end-https$'],
];

/** The frontend: rules for requests in the order in which they are met, then those for responses. */
export function entrance(model: DataPlaneModel): Lines {
  const { assets, cache, classes, deadlines, fallback, ownSite, priority, quarantine } = model;
  return section(
    'frontend front',
    `# front.sock and replay.sock in ${RUN_MOUNT_PATH}, which the entry point holds open: requests wait in there while HAProxy is`,
    '# started again.',
    `bind "\${CORELANE_FRONT}" backlog 4096`,
    `bind "\${CORELANE_REPLAY}" backlog 4096 name replay`,
    '# nginx keeps connections for requests that it would send again.',
    KEEPS_CLIENTS,
    `http-error ${errorReply(400, 'bad-request')}`,
    tooLateReplies(model),
    NO_REPLY,
    '# Of somebody who is no trusted proxy.',
    `http-request del-header '^(${FORWARDING.join('|')})' -m reg if { req.hdr(X-Corelane-Untrusted) -m found }`,
    'http-request set-var(txn.token) req.hdr(X-Corelane-Request)',
    given(cache, () => NOTES_ALONE),
    given(fallback, () => NOTES_BROWSER),
    given(priority, () => NOTES_CLASS),
    given(classes, () => NOTES_SERVED_AS),
    given(classes, rendersOnce),
    when(classes !== undefined && priority !== undefined, NOT_RANKED),
    given(deadlines, notesDeadline),
    when(assets !== undefined, 'http-request set-var(txn.missing_asset) req.hdr(X-Corelane-Missing)'),
    given(ownSite, () => NOTES_OWN_SITE),
    '# Nobody outside speaks for the proxies, nor to those of other pods.',
    'http-request del-header X-Corelane- -m beg',
    'http-request set-header X-Corelane-Request %[var(txn.token)] unless { so_name replay }',
    given(classes, () => TELLS_CLASS),
    given(deadlines, () => PASSES_DEADLINE),
    '# A worker that has promised not to begin the first try may have the second.',
    'http-request set-header X-Corelane-Request %[var(txn.token)]-again if { so_name replay }',
    when(model.isSupervised, COUNTS_CLIENT),
    notesForDeath(model),
    given(quarantine, () => holdsSuspects(model)),
    secondTries(model),
    when(model.pooling?.handsOver, choosesSide(model)),
    fullQueue(model),
    '# Nobody behind this point, neither a worker nor a peer, tells nginx what to do: without buffering a slow client would',
    '# hold a worker.',
    'http-response del-header X-Accel- -m beg',
    purgesChangesOfPeers(cache),
    given(cache, () => TELLS_ALONE),
    when(assets !== undefined, KEEPS_NO_404),
    when(model.isSupervised, REPLIES_OF_THE_DEAD),
    '# For the access log of nginx, which takes it away again: the wait in the queue, and what came after it.',
    'http-after-response set-var(txn.in_line_ms) req.timer.queue',
    words(
      'http-after-response set-header X-Corelane-Queue-Ms %[res.hdr(X-Corelane-Queue-Ms),add(txn.in_line_ms)]',
      'if { res.hdr(X-Corelane-Queue-Ms) -m found }',
    ),
    'http-after-response set-header X-Corelane-Queue-Ms %Tw if !{ res.hdr(X-Corelane-Queue-Ms) -m found }',
    'http-after-response add-header Server-Timing queue;dur=%[res.hdr(X-Corelane-Queue-Ms)]',
    AUTHENTICATES,
    '# A second try over a kept connection might be lost with it: each has one of its own.',
    'http-after-response set-header Connection close if { so_name replay } !{ status 101 }',
    '# nginx decides when a request comes whether its connection is kept: this one may have come before the drain.',
    'http-after-response set-header X-Corelane-Connection close if { lua.corelane_draining -m bool } !{ status 101 }',
    '# The next connection leads to a pod of the revision that is asked for.',
    'http-after-response set-header X-Corelane-Connection close if { lua.corelane_resting -m bool } !{ status 101 }',
    given(fallback, () => LEADS_TO_SHELL),
    given(quarantine, () => USES_POISON),
    when(model.pooling?.handsOver, USES_OTHER_SIDE),
    given(ownSite, () => USES_OWN_SITE),
    given(classes, usesClasses),
    given(priority, usesRefused),
    'default_backend line',
  );
}

/**
 * nginx sends again whatever got no answer. What may be rendered once has a second worker only if nobody has begun
 * it, and there is no third try.
 */
function secondTries({ isSupervised }: DataPlaneModel): Lines {
  return [
    when(
      isSupervised,
      'http-request lua.ask_about_first_try if { so_name replay }',
      `http-request return ${STUCK} if { var(txn.stuck) -m found }`,
    ),
    words(
      `http-request return ${DIED}`,
      'if { so_name replay } { var(txn.only_once) -m bool } !{ var(txn.unbegun) -m bool }',
    ),
    when(
      isSupervised,
      // From here on they tell of the second try.
      'http-request unset-var(txn.died)',
      'http-request unset-var(txn.unbegun)',
    ),
    'http-request set-var(txn.is_second_try) bool(true) if { so_name replay }',
    '# It has waited in the queue before.',
    'http-request lua.wait_until_calm if { so_name replay }',
    'http-request set-priority-class int(-1) if { so_name replay }',
  ];
}

/**
 * Without a free slot: the queue has room, or a peer has a slot. A URL in quarantine is answered, and does not wait.
 */
function fullQueue(model: DataPlaneModel): Lines {
  const { classes, ownSite, pooling, priority, quarantine, retryAfterSeconds, webSockets } = model;
  const waiting = 'queue(line),add(txn.waiting),add(txn.in_waiting_room)';
  const render = classes && IS_RENDER;
  const notPoison = quarantine && '!poison';
  const notRefused = priority && '!{ var(txn.refused) -m bool }';
  const staysHere = pooling?.handsOver && STAYS_HERE;
  const waits = ownSite && WAITS_FOR_SLOT;
  return [
    '# All that wait: in the queue, for a worker whose last client has gone, and for any worker to come up.',
    'http-request set-var(txn.waiting) queue(workers)',
    'http-request set-var(txn.in_waiting_room) fe_conn(waiting-room)',
    'acl no_slot srv_conn_free(line/slots) le 0',
    'acl no_slot be_conn_free(workers) le 0',
    '# It may wait here and in the waiting room, for queue.timeout in all.',
    'http-request set-header X-Corelane-Came-Ms %[date(0,ms)] if no_slot',
    given(priority, () => ranks(waiting)),
    `http-request set-var(txn.queue_max) ${live('queue-length-max')} if no_slot`,
    given(ownSite, (ownSite) => keepsOwnSite(ownSite, model)),
    `acl queue_full ${waiting},sub(txn.queue_max) ge 0`,
    words(
      `http-request return ${errorReply(503, 'queue-full', retryAfterSeconds)} if no_slot queue_full`,
      render,
      notPoison,
      notRefused,
      staysHere,
      waits,
    ),
    when(
      pooling?.handsOver,
      words(
        'http-request lua.ask_peers if no_slot',
        render,
        notPoison,
        notRefused,
        staysHere,
        waits,
        // The limit of WebSockets is this pod's own.
        webSockets && '!{ req.hdr(Upgrade) -m found }',
      ),
    ),
  ];
}

/** Without a word if nginx is to send it again: a death, of this pod or of a peer. */
const REPLIES_OF_THE_DEAD: Lines = [
  ASKS_WHY_IT_DIED,
  words(
    'http-response set-var(txn.unbegun) bool(true)',
    'if { res.hdr(X-Corelane-Unbegun) -m found } { var(txn.only_once) -m bool }',
  ),
  words(
    `http-response return ${DIED}`,
    'if { var(txn.died) -m found } { var(txn.only_once) -m bool } !{ var(txn.unbegun) -m bool }',
  ),
  'http-response lua.note_verdict if { res.hdr(X-Corelane-Died) -m found }',
  'http-response deny deny_status 502 if { res.hdr(X-Corelane-Died) -m found }',
];
