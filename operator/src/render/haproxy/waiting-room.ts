/**
 * Frontend `waiting-room`: requests for which no worker is up. They travel on when one has come up, here or in a
 * peer.
 */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { given, type Lines, section, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { SHARED } from '../nginx/cache.ts';
import { OBSERVES_DEADLINE } from './deadlines.ts';
import { saysWhoDied } from './deaths.ts';
import { NAMES_WORKER } from './dispatch.ts';
import { errorReply, tooLateReplies } from './replies.ts';

/** The frontend, a server of backend `workers` when no worker is up. */
export function waitingRoom(model: DataPlaneModel): Lines {
  const { cache, deadlines, isSupervised, pooling, retryAfterSeconds } = model;
  const inVain = words('if in_vain', pooling?.handsOver && '!{ var(txn.peer) -m found }');
  return section(
    'frontend waiting-room',
    `bind unix@${RUN_MOUNT_PATH}/waiting-room.sock mode 600 backlog 4096`,
    'http-request set-header X-Corelane-Came-Ms %[date(0,ms)] if !{ req.hdr(X-Corelane-Came-Ms) -m found }',
    given(cache, () => [
      '# Backend `workers` has removed X-Forwarded-For of a shared render. A peer refuses a request without it.',
      `http-request set-header X-Forwarded-For ${SHARED} unless { req.hdr(X-Forwarded-For) -m found }`,
    ]),
    'http-request set-var(txn.waited_ms) int(0)',
    'http-request lua.wait_for_worker unless { req.hdr_cnt(X-Corelane-Waits) ge 8 }',
    given(deadlines, () => OBSERVES_DEADLINE),
    'http-request add-header X-Corelane-Waits 1',
    'acl in_vain nbsrv(workers-up) eq 0',
    'acl in_vain req.hdr_cnt(X-Corelane-Waits) gt 8',
    when(
      isSupervised,
      '# Workers that are busy with renders that were given up are not down.',
      words(
        `http-request return ${errorReply(503, 'queue-timeout', retryAfterSeconds)}`,
        `${inVain} { nbsrv(workers-alive) gt 0 }`,
      ),
    ),
    `http-request return ${errorReply(503, 'no-worker', retryAfterSeconds)} ${inVain}`,
    tooLateReplies(model),
    saysWhoDied(model),
    words(
      'http-after-response set-header X-Corelane-Queue-Ms %[req.timer.queue,add(txn.waited_ms)]',
      'if !{ srv_name waiting-room }',
    ),
    NAMES_WORKER,
    when(pooling?.handsOver, 'use_backend elsewhere if { var(txn.peer) -m found }'),
    'default_backend workers',
  );
}
