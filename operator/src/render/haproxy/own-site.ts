/**
 * Requests that a render has sent to its own site, as their mark shows. Without a free slot such a request would wait
 * for slots whose renders wait for such requests, so it has places of its own in the workers.
 */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { given, type Lines, paragraphs, section, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import type { OwnSite } from '../model/own-site.ts';
import { whole, word } from '../safe.ts';
import { HIDES_CLIENT_OF_SHARED } from './cache.ts';
import { KNOWS_REQUEST, sentTo } from './connections.ts';
import { limitsWorker, NAMES_WORKER } from './dispatch.ts';
import { tellsDepth } from './marks.ts';
import { purgesAndStrips } from './purge.ts';
import { COUNTS_ANSWERS } from './quarantine.ts';
import { boundsHead, errorReply } from './replies.ts';
import { serverAt } from './servers.ts';

/** For rules about requests that wait for a slot. */
export const WAITS_FOR_SLOT = '!own_site';
/** In frontend `front`. */
export const USES_OWN_SITE = 'use_backend %[var(txn.own_site)] if own_site';

/** In frontend `front`, when it is known whether a slot is free (`no_slot`). All others are requests like any. */
export function keepsOwnSite({ pools, waitingMax }: OwnSite, model: DataPlaneModel): Lines {
  const { classes, pooling, quarantine, retryAfterSeconds } = model;
  const isLikeAny = (...condition: string[]) => words('http-request unset-var(txn.own_site) if', ...condition);
  return [
    "# A render's own request waits apart unless a slot is free, or no worker is up:",
    isLikeAny('!no_slot'),
    isLikeAny('{ nbsrv(workers-up) eq 0 }'),
    when(classes !== undefined, isLikeAny('in_class')),
    when(pooling?.handsOver, isLikeAny('elsewhere')),
    'acl own_site var(txn.own_site) -m found',
    '# among renders it would wait for its own.',
    'http-request set-var(txn.own_waiting) int(0) if own_site',
    pools.map((name) =>
      words(`http-request set-var(txn.own_waiting) queue(${word(name, 'pool')}),add(txn.own_waiting)`, 'if own_site'),
    ),
    pools.map((name) =>
      words(
        `http-request return ${errorReply(503, 'queue-full', retryAfterSeconds)} if own_site`,
        quarantine && '!poison',
        `{ var(txn.own_site) -m str ${word(name, 'pool')} } { be_conn_free(${word(name, 'pool')}) le 0 }`,
        `{ var(txn.own_waiting) -m int ge ${whole(waitingMax, 'requests')} }`,
      ),
    ),
  ];
}

/** The backends. */
export function ownSiteBackends(ownSite: OwnSite, model: DataPlaneModel): Lines {
  return [
    '# Requests that renders have sent to their own site: places of their own, beside the slots. What such a request sends has the next',
    '# ones, so that nothing in here waits for its like.',
    ...paragraphs(...ownSite.pools.map((name, index) => backend(name, index + 1, ownSite, model))),
  ];
}

function backend(name: string, depth: number, ownSite: OwnSite, model: DataPlaneModel): Lines {
  const { cache, connectRetries, quarantine, workers } = model;
  const places = whole(ownSite.placesPerWorker, 'places');
  return section(
    `backend ${word(name, 'pool')}`,
    'balance leastconn',
    'option abortonclose',
    HIDES_CLIENT_OF_SHARED,
    KNOWS_REQUEST,
    tellsDepth(depth, ownSite, workers.length),
    `retries ${whole(connectRetries, 'retries')}`,
    limitsWorker(model),
    purgesAndStrips(cache),
    boundsHead(model),
    given(quarantine, () => COUNTS_ANSWERS),
    NAMES_WORKER,
    '# Its workers are away: it waits for them as others do.',
    `server waiting-room unix@${RUN_MOUNT_PATH}/waiting-room.sock backup`,
    workers.map((worker, index) =>
      words(
        serverAt(worker, worker.port),
        `maxconn ${places} track workers/${word(worker.name, 'worker name')}`,
        sentTo(index),
      ),
    ),
  );
}
