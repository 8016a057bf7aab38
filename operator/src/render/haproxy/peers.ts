/** Peers: the list of the other pods, the entrance for their requests and questions, and two ways out. */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { given, type Lines, section, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import type { Pooling } from '../model/pooling.ts';
import { ms, whole } from '../safe.ts';
import { ADMITS_FOR_ASSET, ALLOWS_FILE_QUESTION, USES_HAS_FILE } from './assets.ts';
import { takesSide, USES_LINE_FOR_SIDE } from './canary.ts';
import { COUNTS_CLIENT } from './clients.ts';
import { REQUEST } from './connections.ts';
import { ASKS_WHY_IT_DIED, notesForDeath } from './deaths.ts';
import { MOVING_MAXCONN } from './dispatch.ts';
import { bindAny } from './door.ts';
import { ADMITS_FOR_PAGE, USES_OWN_PAGES } from './homes.ts';
import { live } from './live.ts';
import { KNOWS_POISON, USES_POISON } from './quarantine.ts';
import { errorReply, NO_REPLY, tooLateReplies } from './replies.ts';
import { ONLY_PROVEN, TICKET_TLV, withTicket } from './tickets.ts';

/** What HAProxy would say by itself to whoever sends nonsense, or nothing. */
const SILENT_STATUSES = [400, 405, 408, 413, 422, 500, 501];

/** How the addresses of the other pods are found. */
export const RESOLVERS: Lines = [
  '# Never used for traffic: the addresses of the headless Service, for pooling.lua. Over TCP, because 500 of them do not fit',
  '# into a datagram; an answer that is missing (DNS restarts) does not empty the list.',
  section(
    'resolvers cluster',
    `nameserver dns "tcp@\${CORELANE_NAMESERVER}:53"`,
    'accepted_payload_size 65535',
    'timeout resolve 1s',
    'timeout retry 1s',
    'hold valid 1s',
    'hold obsolete 0s',
    'hold nx 0s',
    'hold timeout 60s',
    'hold refused 60s',
    'hold other 60s',
  ),
];

/** The other pods themselves. */
export function peersList({ peersMax }: Pooling, { ports }: DataPlaneModel): Lines {
  return section(
    'backend peers',
    words(
      `server-template peer- ${whole(peersMax, 'pooling.maxPeers')} "\${CORELANE_PEERS}:${whole(ports.peers, 'port')}"`,
      'resolvers cluster resolve-prefer ipv4 init-addr none',
    ),
  );
}

/** Whoever has not shown that he has the key is answered with the end of his connection, and nothing else. */
export function peersEntrance(pooling: Pooling, model: DataPlaneModel): Lines {
  const places = `${live('concurrency-max')},mul(${whole(model.workers.length, 'workersPerPod')})`;
  const spare = whole(pooling.perSourceSpare, 'connections of a peer');
  const half = whole(Math.floor(pooling.connectionsMax / 2), 'connections of peers');
  return [
    '# Peers keep connections for their questions, and make one for each request that they hand over. Strangers must not take',
    '# so many that requests at nginx would notice: what is beyond waits in the kernel, and one address gets a part only.',
    section(
      'frontend peers',
      `${bindAny(model.ports.peers)} accept-proxy backlog 256`,
      `maxconn ${whole(pooling.connectionsMax, 'connections of peers')}`,
      'stick-table type ipv6 size 4k expire 1m store conn_cur',
      'tcp-request connection track-sc0 src',
      '# Beside what its workers may have, in a canary what waits here for its side.',
      'tcp-request connection set-var(sess.waiting) int(0)',
      `tcp-request connection set-var(sess.waiting) ${live('queue-length-max')} if { ${live('canary-revision')} -m found }`,
      '# However long its queue may be: half is left for others.',
      `tcp-request connection set-var(sess.waiting) int(${half}) if { var(sess.waiting),sub(${half}) gt 0 }`,
      `tcp-request connection set-var(sess.most) ${places},add(sess.waiting),add(${spare})`,
      'tcp-request connection reject if { sc0_conn_cur,sub(sess.most) gt 0 }',
      'option disable-h2-upgrade',
      when(
        model.streaming.sendsToPeersAtOnce,
        '# HAProxy tells the kernel that more is to come, and that waits for it: 200 ms for a small piece of a stream.',
        'option http-no-delay',
      ),
      'timeout client-hs 2s',
      'timeout http-request 2s',
      'timeout http-keep-alive 10s',
      '# A peer whose node has gone says nothing more, and a client may be silent for a day here: the kernel asks for it.',
      'option clitcpka',
      'clitcpka-idle 30s',
      'clitcpka-intvl 10s',
      'clitcpka-cnt 3',
      SILENT_STATUSES.map((status) => `errorfile ${status} /dev/null`),
      'http-request set-var(txn.question) req.hdr(X-Corelane-Ask)',
      'acl question var(txn.question) -m found',
      'http-request reject if { req.hdr(Transfer-Encoding) -m found } or METH_CONNECT or METH_TRACE',
      '# A question has its token, and so has its answer.',
      words(
        'http-request reject if question !METH_GET',
        'or question { req.hdr(Content-Length) -m found } or question { req.hdr(Upgrade) -m found }',
      ),
      'http-request lua.answer_peer if question',
      'http-request reject if question !{ var(txn.token) -m found }',
      'http-after-response set-header X-Corelane-Token %[var(txn.token)] if { var(txn.token) -m found }',
      'http-after-response set-header X-Corelane-From %[var(txn.identity)] if { var(txn.identity) -m found }',
      'http-after-response set-header X-Corelane-Reservation %[var(txn.reservation)] if { var(txn.reservation) -m found }',
      'http-after-response set-header X-Corelane-Revision %[var(txn.revision)] if { var(txn.revision) -m found }',
      'http-after-response set-header X-Corelane-Deployment %[var(txn.deployment)] if { var(txn.deployment) -m found }',
      words(
        'http-request return status 200 content-type text/plain lf-string %[var(txn.answer)]',
        'if question { var(txn.answer) -m found }',
      ),
      when(pooling.handsOver, handedOver(model)),
      when(!pooling.handsOver, 'http-request reject'),
    ),
  ];
}

const ONE = (name: string, pattern: string) =>
  `unless { req.fhdr_cnt(${name}) eq 1 } { req.fhdr(${name}) -m reg ${pattern} }`;

/** What nginx makes of these headers: a pod whose nginx is of another version may not have looked at them. */
const TRACE_OF_PEER: Lines = [
  '# No request is worth less for its trace: what is none goes.',
  `http-request del-header traceparent ${ONE('traceparent', '^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[01]$')}`,
  `http-request del-header tracestate ${ONE('tracestate', "'^[ -~]{1,512}$'")} { req.hdr(traceparent) -m found }`,
  `http-request del-header X-Request-Start ${ONE('X-Request-Start', '^t=[0-9]{10}[.][0-9]{3}$')}`,
];

/** Requests of peers, as nginx has made them: what it would not send is not from it. */
function handedOver(model: DataPlaneModel): Lines {
  const { assets, body, cache, isSupervised, quarantine, retryAfterSeconds } = model;
  const [servesAssets, servesPages] = [assets?.asksOtherRevisions, cache?.isShared];
  const bodyMax = whole(body.sizeBytesMax, 'buffering.request.maxSize');
  return [
    when(servesAssets, ALLOWS_FILE_QUESTION),
    'http-request reject if question',
    `http-request reject if { req.hdr_val(Content-Length) gt ${bodyMax} }`,
    'http-request reject if { req.hdr(Upgrade) -m found }',
    words(
      'http-request reject unless { req.fhdr_cnt(X-Request-ID) eq 1 }',
      '{ req.fhdr(X-Request-ID) -m reg ^(?!\\.\\.?$)[A-Za-z0-9._-]{1,128}$ }',
    ),
    words(
      'http-request reject unless { req.fhdr_cnt(X-Forwarded-For) eq 1 }',
      '{ req.fhdr_cnt(X-Forwarded-Proto) eq 1 } { req.fhdr(X-Forwarded-Proto) -m str http https }',
    ),
    TRACE_OF_PEER,
    `http-request set-var(txn.ticket) fc_pp_tlv(${TICKET_TLV})`,
    'http-request lua.admit_hand_over',
    'http-request reject unless { var(txn.proof) -m found }',
    'http-after-response set-header X-Corelane-Proof %[var(txn.proof)] if { var(txn.proof) -m found }',
    when(servesAssets, ADMITS_FOR_ASSET),
    when(servesPages, ADMITS_FOR_PAGE),
    "# X-Corelane-Came-Ms, for one, is by another pod's clock.",
    'http-request del-header X-Corelane- -m beg',
    'http-request set-header X-Corelane-Handed-Over 1',
    given(quarantine, () => KNOWS_POISON),
    when(isSupervised, COUNTS_CLIENT, notesForDeath(model), VERDICT_FOR_PEER),
    `http-after-response set-header X-Corelane-Pod "\${HOSTNAME}"`,
    tooLateReplies(model),
    NO_REPLY,
    `http-request set-var(txn.queue_max) ${live('queue-length-max')}`,
    words(
      `http-request return ${errorReply(503, 'queue-full', retryAfterSeconds)}`,
      'if { queue(late),sub(txn.queue_max) ge 0 } { queue(late) gt 0 }',
      servesAssets && '!for_asset',
      servesPages && '!for_page',
    ),
    takesSide(model),
    when(servesPages, '# It goes through the entrance of this pod, and its rules.', USES_OWN_PAGES),
    given(quarantine, () => USES_POISON),
    when(servesAssets, USES_HAS_FILE, 'use_backend own-assets if for_asset'),
    '# Check and assignment are one step: one thread, and nothing between them waits.',
    'use_backend line if { var(txn.slot_kept) -m bool }',
    USES_LINE_FOR_SIDE,
    'default_backend late',
  ];
}

/** The peer may have the request rendered again if nobody has begun it here. */
const VERDICT_FOR_PEER: Lines = [
  ASKS_WHY_IT_DIED,
  'http-response set-header X-Corelane-Unbegun 1 if { var(txn.unbegun) -m bool }',
  'http-response deny deny_status 502 if { res.hdr(X-Corelane-Died) -m found } !{ var(txn.unbegun) -m bool }',
];

/** From the waiting room to a peer. */
export function elsewhere({ isSupervised, ports, timeouts }: DataPlaneModel): Lines {
  return [
    '# No worker of this pod is up, and a peer keeps a slot for the request in the waiting room.',
    section(
      'backend elsewhere',
      `timeout server ${ms(timeouts.lineMs, 'timeouts.render')}`,
      ONLY_PROVEN,
      'http-request set-dst var(txn.peer)',
      words(
        `server peer 0.0.0.0:${whole(ports.peers, 'port')}`,
        withTicket('%[var(txn.ticket)]'),
        isSupervised && `pool-conn-name ${REQUEST},lua.corelane_sent_away`,
      ),
    ),
  ];
}

/** From a peer to the queue. */
export function late({ timeouts }: DataPlaneModel): Lines {
  return [
    '# The slot that was kept has gone to somebody else in the last millisecond. The request waits for the next worker here:',
    '# it must not travel on.',
    section(
      'backend late',
      'option abortonclose',
      `timeout server ${ms(timeouts.lineMs, 'timeouts.render')}`,
      `server slots unix@${RUN_MOUNT_PATH}/slots.sock ${MOVING_MAXCONN}`,
    ),
  ];
}
