/**
 * Stages in front of all others for what nginx has not got: one request of a herd goes on, the others wait for its
 * page. Which herd a request is in, and what becomes of a page, Lua says (sidecar/haproxy/cache.lua).
 */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { given, type Lines, section, when, words } from '../directives.ts';
import type { Cache } from '../model/cache.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { ALONE, CACHE_AGAIN_SOCKET, CACHE_SOCKET, CACHED, SHARED } from '../nginx/cache.ts';
import { ms, whole, word } from '../safe.ts';
import { KEEPS_CLIENTS, KEEPS_SERVERS } from './connections.ts';
import { outlastsSilence } from './event-streams.ts';
import { isExcepted } from './excepted.ts';
import { LEADS_TO_SHELL, NOTES_BROWSER } from './fallback.ts';
import { asksHome, homes, USES_HOME } from './homes.ts';
import { NOTES_OWN_SITE } from './marks.ts';
import { errorReply, NO_REPLY } from './replies.ts';

/** What nginx tells. Of other names in the family a client may have sent any. */
const TOLD = [
  'request',
  'key',
  'ttl',
  'personal',
  'round',
  'told',
  'found',
  'has-stale',
  'fallback',
  'class',
  'untrusted',
];
/** Where pods share their pages: that it is for a peer, and when what is at the path was changed. */
const TOLD_OF_PEERS = ['for-peer', 'changed'];
/** Request headers that every shared render gets: nginx sets them, or they are about the connection. */
const OWN = [
  ...['accept-encoding', 'connection', 'content-length', 'cookie', 'host', 'traceparent', 'x-forwarded-for'],
  ...['x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'x-request-id', 'x-request-start'],
];

/**
 * Before a worker: a shared render sees no client. An application would render for its address (pages for developers on
 * loopback), or limit it. HAProxy itself needs the client in X-Real-IP, for the quarantine. The mark is the whole line:
 * a client may send it as an element of a list (nginx/clients.ts). Without a cache, too: a pod of another revision may
 * have handed the request over.
 */
export const HIDES_CLIENT_OF_SHARED: Lines = ['X-Real-IP', 'X-Forwarded-For'].map(
  (name) => `http-request del-header ${name} if { req.fhdr(X-Forwarded-For) -m str ${SHARED} }`,
);

/** Before the workers: why nginx has this request rendered alone. */
export const NOTES_ALONE = 'http-request set-var(txn.why) req.hdr(X-Corelane-Why)';
/** The render of its herd has failed, and those who wait for it get to know whether this one fails, too. */
export const TELLS_ALONE = 'http-response lua.lone_answered if { var(txn.why) -m str error }';

/** For an entry point that does not hold these sockets yet. */
export const CACHE_ENTRANCES = [
  `presetenv CORELANE_CACHE unix@${CACHE_SOCKET}`,
  `presetenv CORELANE_CACHE_AGAIN unix@${CACHE_AGAIN_SOCKET}`,
];

/** What Lua is told. */
export function cacheSettings(cache: Cache, { compression }: DataPlaneModel): string[] {
  return [
    `herds=${whole(cache.herdsMax, 'herds')}`,
    `tries=${whole(cache.triesMax, 'tries')}`,
    `pass-ms=${whole(cache.passMs, 'pass')}`,
    `kept-bytes=${whole(cache.keptBytesMax, 'page')}`,
    `transforms=${compression ? 1 : 0}`,
    `headers=${OWN.join(',')}`,
    `keyed=${cache.key.headers.map((name) => word(name, 'cache.key.headers').toLowerCase()).join(',') || '-'}`,
    ...(cache.isShared ? ['shared=1'] : []),
  ];
}

function strips({ isShared }: Cache, { classes, ownSite }: DataPlaneModel): Lines {
  const told = [
    ...TOLD,
    ...(isShared ? TOLD_OF_PEERS : []),
    ...(classes ? ['served-as'] : []),
    ...(ownSite ? ['own-site'] : []),
  ];
  return `http-request del-header '^x-corelane-(?!(?:${told.join('|')})$)' -m reg`;
}

const failed = (status: number) =>
  words(
    `http-request return status ${status} content-type application/json lf-string '{"error":"%[var(txn.reason)]"}'`,
    'hdr X-Corelane-Error %[var(txn.reason)] hdr Retry-After 1',
    `if { var(txn.outcome) -m str failed } { var(txn.failed_status) -m int ${status} }`,
  );

/** Lets nginx look for the page again, and note the digit in X-Corelane-Round: 1 if a herd has rendered the page. */
const LOOKS_AGAIN = (round: 0 | 1) => `hdr X-Accel-Redirect ${CACHED} hdr X-Corelane-Step ${round}`;

/** Lets nginx render the page for this client alone, and tell it why. */
const RENDERED_ALONE = `hdr X-Accel-Redirect ${ALONE} hdr X-Corelane-Why %[var(txn.why)]`;

/** What has become of the herd, for those that need not go on. */
const TELLS_OUTCOME: Lines = [
  `http-request return status 200 ${LOOKS_AGAIN(1)} hdr X-Corelane-Herd %[var(txn.herd)] if { var(txn.outcome) -m str filled }`,
  `http-request return status 200 ${RENDERED_ALONE} if { var(txn.outcome) -m str pass }`,
  [502, 503, 504].map(failed),
];

/** All stages. */
export function cacheStages(cache: Cache, model: DataPlaneModel): Lines {
  const { fallback, ownSite, retryAfterSeconds, timeouts } = model;
  const shell = given(fallback, () => LEADS_TO_SHELL);
  // A waiter waits for a render, which itself may wait in the queue.
  const waitMs = ms(timeouts.fillMs, 'timeouts.render');
  // The stage of the worker gives up first.
  const lastsWithEvents = given(timeouts.handler, () => outlastsSilence(timeouts.lineMs));
  return [
    '# Requests for pages that nginx has not got. One of each herd goes on. The others stand in the queue of a server that takes one at a',
    '# time, where nothing is spent on them, and find the page when they come out.',
    section(
      'frontend cache',
      `bind "\${CORELANE_CACHE}" backlog 4096`,
      `bind "\${CORELANE_CACHE_AGAIN}" backlog 4096 name again`,
      KEEPS_CLIENTS,
      `http-error ${errorReply(503, 'queue-timeout', retryAfterSeconds)}`,
      `http-error ${errorReply(504, 'render-timeout')}`,
      NO_REPLY,
      given(fallback, () => NOTES_BROWSER),
      given(ownSite, () => NOTES_OWN_SITE),
      strips(cache, model),
      when(!model.priority, 'http-request del-header X-Corelane-Class'),
      'http-request set-var(txn.is_again) bool(true) if { so_name again }',
      '# No worker could render it: nginx has one that may still be given out.',
      words(
        `http-request return ${errorReply(503, 'no-worker', retryAfterSeconds)}`,
        'if { req.hdr(X-Corelane-Has-Stale) -m found } { nbsrv(workers-up) eq 0 }',
      ),
      isExcepted(model),
      `http-request return status 200 hdr X-Accel-Redirect ${ALONE} hdr X-Corelane-Why replay if excepted`,
      'http-request lua.join_herd',
      TELLS_OUTCOME,
      'http-request set-header X-Corelane-Herd %[var(txn.herd)] if { var(txn.herd) -m found }',
      '# No application has answered: this one comes back, by the other entrance.',
      'http-response deny deny_status 502 if { res.hdr(X-Corelane-No-Answer) -m found }',
      "# A response is nginx' to keep, and its second try would be another one.",
      'http-after-response set-header Connection close if { so_name again }',
      shell,
      'use_backend herds if { var(txn.place) -m found }',
      'default_backend unherded',
    ),
    '',
    section(
      'backend herds',
      'option abortonclose',
      KEEPS_SERVERS,
      `timeout queue ${waitMs}`,
      `timeout server ${waitMs}`,
      lastsWithEvents,
      'use-server %[var(txn.place)] if TRUE',
      `server-template herd- 0-${whole(cache.herdsMax - 1, 'herds')} unix@${RUN_MOUNT_PATH}/herd.sock maxconn 1`,
    ),
    '',
    '# More herds than there are places: no one waits for another.',
    section(
      'backend unherded',
      KEEPS_SERVERS,
      `timeout server ${waitMs}`,
      lastsWithEvents,
      `server herd unix@${RUN_MOUNT_PATH}/herd.sock`,
    ),
    '',
    section(
      'frontend herd',
      `bind unix@${RUN_MOUNT_PATH}/herd.sock mode 600 backlog 4096`,
      KEEPS_CLIENTS,
      `http-error ${errorReply(502, 'worker-died')} hdr X-Corelane-No-Answer 1`,
      `http-error ${errorReply(504, 'render-timeout')}`,
      given(fallback, () => NOTES_BROWSER),
      given(ownSite, () => NOTES_OWN_SITE),
      'http-request lua.herd_turn',
      TELLS_OUTCOME,
      '# Those before it have met workers that died.',
      'http-request lua.wait_until_calm if { var(txn.after_death) -m bool }',
      asksHome(cache),
      '# Lua removes the request headers that a shared render must not see. If it fails, the request is rendered alone.',
      words('http-request lua.show_all_alike', cache.isShared && 'unless { var(txn.home) -m found }'),
      words(
        `http-request return status 200 hdr X-Accel-Redirect ${ALONE} hdr X-Corelane-Why error`,
        'unless { var(txn.is_alike) -m bool }',
        cache.isShared && 'or { var(txn.home) -m found }',
      ),
      words('http-response lua.judge_page', cache.isShared && 'unless { var(txn.home) -m found }'),
      '# Vary names a header that the render did not get. The request comes back, and gets it then.',
      `http-response return status 200 ${LOOKS_AGAIN(0)} if { var(txn.again) -m bool }`,
      `http-response return status 200 ${RENDERED_ALONE} if { var(txn.again_alone) -m bool }`,
      'http-after-response lua.herd_unanswered if { res.hdr(X-Corelane-No-Answer) -m found }',
      shell,
      when(cache.isShared, USES_HOME),
      'default_backend fills',
    ),
    '',
    '# A render goes on when its client has gone: others wait for it. No connection is kept: HAProxy would pass on the end of one that',
    '# was used before without a word, and nobody would know that a render has failed.',
    section(
      'backend fills',
      `timeout server ${waitMs}`,
      lastsWithEvents,
      `server front unix@${RUN_MOUNT_PATH}/front.sock`,
    ),
    when(cache.isShared, '', homes(cache, model)),
  ];
}
