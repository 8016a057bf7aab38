/** haproxy.cfg of one pod: queue, one slot per worker, waiting room, health, statistics. HAProxy 3.0. */
import { PEERS_KEY, PEERS_KEY_MOUNT_PATH } from '../api/names.ts';
import type { DataPlaneModel, WorkerModel } from './model.ts';
import { whole, word } from './safe.ts';

const RUN = '/run/corelane';

/** The key of the RenderService, as the pod mounts it. */
const PEERS_KEY_FILE = `${PEERS_KEY_MOUNT_PATH}/${PEERS_KEY}`;

/**
 * What proxies tell about a client and frameworks believe, beside the headers that nginx sets itself (X-Forwarded-For, -Host, -Proto,
 * X-Real-IP) and Forwarded. docs/edge.md has the list.
 */
const FORWARDING =
  '^(x-forwarded(?!-(for|host|proto)$)|x-original-|x-rewrite-|x-client-ip$|x-cluster-client-ip$|true-client-ip$|cf-connecting-ip|fastly-client-ip$|x-host$|x-scheme$|x-url-scheme$|front-end-https$)';

/** Requests of a worker that Lua remembers, at least: some that have ended may still be asked about. */
const NOTES_MIN = 256;

/** The same for old and new pods of this RenderService. */
const ANY_REVISION = `setenv CORELANE_REVISION "any-\${CORELANE_PEERS}"`;

type Pooling = NonNullable<DataPlaneModel['pooling']>;
type Door = DataPlaneModel['doors']['health'];

/**
 * The whole haproxy.cfg.
 * @throws RangeError when a value of the model cannot stand in the file.
 */
export function renderHaproxy(model: DataPlaneModel): string {
  const entrance = [global(model), defaults(model), front(model), line(model), slots(model)];
  const sections = [
    ...entrance,
    workers(model),
    waitingRoom(model),
    workersUp(model),
    ...workersAlive(model),
    ...workersGuarded(model),
    ...urls(model),
    ...peers(model),
  ];
  return `${[...sections, health(model), stats(model), ...workerRuntimes(model)].join('\n\n')}\n`;
}

function ms(value: number, what: string): string {
  return `${whole(value, what)}ms`;
}

function global(model: DataPlaneModel): string {
  const { doors, drain, limits, pooling, ports, queue } = model;
  const lua = [
    `drain-delay-ms=${whole(drain.delayMs, 'drain.delay')}`,
    `drain-timeout-ms=${whole(drain.timeoutMs, 'drain.timeout')}`,
    `queue-timeout-ms=${whole(queue.timeoutMs, 'queue.timeout')}`,
    `waiters-max=${whole(doors.waitersMax, 'waiters')}`,
    `stranger-waiters-max=${whole(doors.strangerWaitersMax, 'waiters')}`,
  ];
  return `# Made by Corelane; changes are overwritten.
global
  # One thread: before 3.2 maxconn is not strict across threads. Plenty for the workers of one pod.
  nbthread 1
  # HAProxy derives its maxconn (half of this) by itself; where the container may open fewer files it takes those, while
  # a fixed maxconn would keep it from starting. Without a bound it would fill memory where the limit is 10^9.
  fd-hard-limit ${whole(limits.haproxyFiles, 'open files')}
  hard-stop-after ${ms(drain.timeoutMs, 'drain.timeout')}
  log stdout format raw daemon notice
  stats socket ${RUN}/haproxy.sock mode 600 level admin
  # The entry point sets it: addresses from which kubelet may come.
  presetenv CORELANE_NODE 127.0.0.1
  lua-load /usr/share/corelane/haproxy/corelane.lua ${lua.join(' ')}
  lua-load /usr/share/corelane/haproxy/second-tries.lua first-port=${whole(model.workers[0]?.runtimePort ?? 0, 'runtime port')} places=${whole(Math.max(NOTES_MIN, 2 * model.concurrency), 'notes')}${pooling ? `\n${poolingGlobals(pooling, ports, queue)}` : ''}${isSupervised(model) ? `\n${supervisedGlobals(model)}` : ''}${quarantineGlobals(model)}
  # How Lua asks others: a dead one costs no more than this, once.
  httpclient.timeout.connect 200ms
  httpclient.retries 0
  httpclient.resolvers.disabled on`;
}

function supervisedGlobals({ workers }: DataPlaneModel): string {
  const firstPort = workers[0]?.runtimePort ?? 0;
  return `  lua-load /usr/share/corelane/haproxy/worker-metrics.lua workers=${whole(workers.length, 'workersPerPod')} first-port=${whole(firstPort, 'runtime port')}`;
}

function quarantineGlobals({ quarantine, queue, workers }: DataPlaneModel): string {
  if (!quarantine) return '';
  const lua = [
    `kills=${whole(quarantine.killsMin, 'watchdog.quarantine.kills')}`,
    `window-ms=${whole(quarantine.windowMs, 'watchdog.quarantine.window')}`,
    `duration-ms=${whole(quarantine.durationMs, 'watchdog.quarantine.duration')}`,
    `stall-ms=${whole(quarantine.stallMs, 'watchdog.stallTimeout')}`,
    `held-max=${whole(queue.lengthMax, 'queue.maxLength')}`,
    `held-ms-max=${whole(queue.timeoutMs, 'queue.timeout')}`,
    `workers=${whole(workers.length, 'workersPerPod')}`,
    `first-port=${whole(workers[0]?.runtimePort ?? 0, 'runtime port')}`,
  ];
  return `\n  lua-load /usr/share/corelane/haproxy/quarantine.lua ${lua.join(' ')}`;
}

function poolingGlobals(
  { acrossRevisions, asksMax, borrowedMax, keyOverlapMs, shed }: Pooling,
  ports: DataPlaneModel['ports'],
  queue: DataPlaneModel['queue'],
): string {
  const lua = [
    `asks-max=${whole(asksMax, 'pooling.maxAsks')}`,
    `queue-length-max=${whole(queue.lengthMax, 'queue.maxLength')}`,
    `shed=${shed ? 1 : 0}`,
    `port=${whole(ports.peers, 'port')}`,
    `hand-over=${borrowedMax > 0 ? 1 : 0}`,
    `revision="\${CORELANE_REVISION}"`,
  ];
  return `  # The entry point and the pod set these; the defaults let the file be checked elsewhere.
  presetenv CORELANE_NAMESERVER 127.0.0.1
  presetenv CORELANE_PEERS peers.invalid
  ${acrossRevisions ? ANY_REVISION : 'presetenv CORELANE_REVISION none'}
  lua-load /usr/share/corelane/haproxy/peer-key.lua file=${PEERS_KEY_FILE} overlap-ms=${whole(keyOverlapMs, 'overlap of keys')}
  lua-load /usr/share/corelane/haproxy/peer-questions.lua
  lua-load /usr/share/corelane/haproxy/pooling.lua ${lua.join(' ')}`;
}

function tunnel(silentMsMax: number): string {
  return `  # A WebSocket that is silent for so long, both ways, gives its worker back.
  timeout tunnel ${ms(silentMsMax, 'timeouts.render')}
`;
}

function defaults(model: DataPlaneModel): string {
  const { queue, timeouts, webSockets } = model;
  return `defaults
  mode http
  # Also the pause before the same worker is tried again: the smaller of this and 1 s.
  timeout connect 200ms
${isSupervised(model) ? '  # Longer than a supervisor lets the agent check wait for news (0.9 s).\n  timeout check 2s' : '  timeout check 500ms'}
  timeout client ${ms(timeouts.haproxyClientMs, 'timeouts.clientSend')}
  timeout http-request 10s
  timeout queue ${ms(queue.timeoutMs, 'queue.timeout')}
  timeout server ${ms(timeouts.workerMs, 'timeouts.render')}
${webSockets ? tunnel(timeouts.workerMs) : ''}  # One request for each connection, but where it says otherwise.
  option http-server-close
  http-reuse never
  # Clear-text HTTP/2 is nobody's here: one connection of it could carry 100 requests past every limit of connections.
  option disable-h2-upgrade
  # A render goes on when its client has gone; only its end may free the slot (single flight). See backend line.
  no option abortonclose
  retries 3
  option redispatch 1`;
}

/** An error reply; `reason` tells in X-Corelane-Error who made it. */
function errorReply(status: number, reason: string, retryAfterSeconds?: number): string {
  const retry = retryAfterSeconds === undefined ? '' : ` hdr Retry-After ${whole(retryAfterSeconds, 'Retry-After')}`;
  return `status ${status} content-type application/json string '{"error":"${reason}"}' hdr X-Corelane-Error ${reason}${retry}`;
}

function errorReplies({ retryAfterSeconds }: DataPlaneModel, workerDied = WITHOUT_A_WORD): string {
  return `  http-error ${errorReply(503, 'queue-timeout', retryAfterSeconds)}
  http-error ${errorReply(504, 'render-timeout')}
${workerDied}`;
}

const WITHOUT_A_WORD = `  # Closed without a word when a worker dies: nginx then knows that no application answered, replays the request once
  # where that is allowed, and else makes the 502 itself. A 502 of an application is passed on and never replayed.
  errorfile 502 /dev/null`;

/** Whether it matters if a request was begun, and somebody knows. */
function asksWhetherBegun(model: DataPlaneModel): boolean {
  return isSupervised(model) && !model.replay.otherMethods;
}

/** Where the worker's end is seen: the next stage is told who it was. */
function deathReply(model: DataPlaneModel): string {
  return isSupervised(model)
    ? `  http-error ${errorReply(502, 'worker-died')} hdr X-Corelane-Died %[srv_name] hdr X-Corelane-End %ts`
    : WITHOUT_A_WORD;
}

/** Requests that are rendered once, unless nobody has begun them. A WebSocket is not noted. */
function onlyOnce({ replay: { methods, otherMethods } }: DataPlaneModel): string {
  if (otherMethods) return '';
  const replayed = methods.map((method) => word(method, 'replay')).join(' ');
  const isReplayed = replayed ? ` unless { method ${replayed} }` : '';
  return `  http-request set-var(txn.only_once) bool(true)${isReplayed}\n`;
}

/** What is needed to ask why a request has got no answer, and whether it was begun. */
function noteForDeath(model: DataPlaneModel): string {
  if (!isSupervised(model)) return '';
  const came = asksWhetherBegun(model)
    ? `  http-request set-var(txn.asks) bool(true) if { var(txn.only_once) -m bool } !{ req.hdr(Upgrade) -m found }
  http-request set-var(txn.came_ms) date(0,ms) if { var(txn.asks) -m bool } !{ so_name replay }
`
    : '';
  return `  http-request set-var(txn.id) req.hdr(X-Request-ID)\n${onlyOnce(model)}${came}`;
}

const STUCK = `${errorReply(502, 'worker-stuck')} hdr X-Corelane-Stuck "%[var(txn.stuck)]" hdr X-Corelane-Worker %[var(txn.died)]`;
const DIED = `${errorReply(502, 'worker-died')} hdr X-Corelane-Worker %[var(txn.died)]`;

/** HAProxy could not read what the worker has answered (termination state PH), which lives: another one would answer alike. */
const NO_RESPONSE = `  http-response return ${errorReply(502, 'bad-response')} hdr X-Corelane-Worker %[var(txn.died)] if { res.hdr(X-Corelane-End) -m str PH }
`;

/** A worker of this pod has died with it. One that it was stuck in has had enough: no second worker gets it. */
function whyItDied(model: DataPlaneModel): string {
  return `  http-response set-var(txn.died) res.hdr(X-Corelane-Died) if { res.hdr(X-Corelane-Died) -m found } !{ res.hdr(X-Corelane-Pod) -m found }
${NO_RESPONSE}  http-response lua.ask_why_it_died if { var(txn.died) -m found }
  http-response return ${STUCK} if { var(txn.stuck) -m found }
${asksWhetherBegun(model) ? '  http-response lua.ask_whether_begun if { var(txn.died) -m found } { var(txn.came_ms) -m found }\n' : ''}`;
}

/**
 * nginx sends again whatever got no answer. What may be rendered once has a second worker only if nobody has begun it, and there is no third try.
 */
function secondTry(model: DataPlaneModel): string {
  const asks = isSupervised(model) ? '  http-request lua.ask_about_first_try if { so_name replay }\n' : '';
  const stuck = isSupervised(model) ? `  http-request return ${STUCK} if { var(txn.stuck) -m found }\n` : '';
  const refused = `  http-request return ${DIED} if { so_name replay } { var(txn.only_once) -m bool } !{ var(txn.unbegun) -m bool }\n`;
  // From here on they tell of the second try.
  const forget = isSupervised(model)
    ? '  http-request unset-var(txn.died)\n  http-request unset-var(txn.unbegun)\n'
    : '';
  return `${asks}${stuck}${model.replay.otherMethods ? '' : refused}${forget}  http-request set-var(txn.is_second_try) bool(true) if { so_name replay }
  # It has stood in line before.
  http-request lua.wait_until_calm if { so_name replay }
  http-request set-priority-class int(-1) if { so_name replay }
`;
}

/** Without a word if nginx is to send it again: a death, of this pod or of a peer. */
function deathInFront(model: DataPlaneModel): string {
  if (!isSupervised(model)) return '';
  const verdict = `  http-response set-var(txn.unbegun) bool(true) if { res.hdr(X-Corelane-Unbegun) -m found } { var(txn.only_once) -m bool }
  http-response return ${DIED} if { var(txn.died) -m found } { var(txn.only_once) -m bool } !{ var(txn.unbegun) -m bool }
`;
  return `${whyItDied(model)}${asksWhetherBegun(model) ? verdict : ''}  http-response lua.note_verdict if { res.hdr(X-Corelane-Died) -m found }
  http-response deny deny_status 502 if { res.hdr(X-Corelane-Died) -m found }
`;
}

function verdictForPeer(model: DataPlaneModel): string {
  if (!isSupervised(model)) return '';
  return `${whyItDied(model)}  http-response set-header X-Corelane-Unbegun 1 if { var(txn.unbegun) -m bool }
  http-response deny deny_status 502 if { res.hdr(X-Corelane-Died) -m found } !{ var(txn.unbegun) -m bool }
`;
}

/** A connection between the stages ends with the one that opened it, which does not let it be idle for so long. */
const KEEPS_CLIENTS = `  no option http-server-close
  timeout http-keep-alive 1h`;

/**
 * A connection that ends just as it is used again answers nothing, and HAProxy takes for granted that its client sends the request
 * again: nginx does, to replay.sock, where it is decided what may come of that. "safe" keeps connections to requests that came over one themselves: the
 * first of a connection from the stage before, a peer's request or a second try, goes over a new one, whose end HAProxy answers. Those to workers are kept only where
 * the runtime sees to it that a response is as long as it says: what is left of one would be the beginning of the next.
 */
const KEEPS_SERVERS = `  no option http-server-close
  http-reuse safe`;

/** A program that authenticates connections: HAProxy would tie all that come after on this one to that worker. */
const AUTHENTICATES = '  http-after-response set-header Connection close if { status 401 407 }';

/** Type of what a connection to a peer begins with (PROXY protocol 2): the first of those that are free to use. */
const TICKET_TLV = '0xE0';

/** For servers that are another one each time, or whose connections are counted. */
const KEPT_NEVER = 'pool-max-conn 0';

/** Each has some 250 bytes in two tables. */
const URLS_MAX = 20_000;
const POISON_RETRY_AFTER_SECONDS = 30;

function front(model: DataPlaneModel): string {
  return `frontend front
  # front.sock and replay.sock in ${RUN}, which the entry point holds open: requests wait in there while HAProxy is
  # started again.
  bind "\${CORELANE_FRONT}" backlog 4096
  bind "\${CORELANE_REPLAY}" backlog 4096 name replay
  # nginx keeps connections for requests that it would send again.
${KEEPS_CLIENTS}
  http-error ${errorReply(400, 'bad-request')}
${errorReplies(model)}
  # Of somebody who is no trusted proxy.
  http-request del-header '${FORWARDING}' -m reg if { req.hdr(X-Corelane-Untrusted) -m found }
  http-request set-var(txn.token) req.hdr(X-Corelane-Request)
  # Nobody outside speaks for the proxies, nor to those of other pods.
  http-request del-header X-Corelane- -m beg
  http-request set-header X-Corelane-Request %[var(txn.token)] unless { so_name replay }
  # A worker that has promised not to begin the first try may have the second.
  http-request set-header X-Corelane-Request %[var(txn.token)]-again if { so_name replay }
${isSupervised(model) ? noteForDeath(model) : onlyOnce(model)}${quarantined(model)}${secondTry(model)}  # All that wait: in line, for a worker whose last client has gone, and for any worker to come up.
  http-request set-var(txn.waiting) queue(workers)
  http-request set-var(txn.in_waiting_room) fe_conn(waiting-room)
  acl no_slot srv_conn_free(line/slots) le 0
  acl no_slot be_conn_free(workers) le 0
  # It may wait here and in the waiting room, for queue.timeout in all.
  http-request set-header X-Corelane-Came-Ms %[date(0,ms)] if no_slot
  acl queue_full queue(line),add(txn.waiting),add(txn.in_waiting_room) ge ${whole(model.queue.lengthMax, 'queue.maxLength')}
  http-request return ${errorReply(503, 'queue-full', model.retryAfterSeconds)} if no_slot queue_full${notPoison(model)}
${handsOver(model) ? `  http-request lua.ask_peers if no_slot${notPoison(model)}${model.webSockets ? ' !{ req.hdr(Upgrade) -m found }' : ''}\n` : ''}  # Nobody behind this point, neither a worker nor a peer, tells nginx what to do: without buffering a slow client would
  # hold a worker.
  http-response del-header X-Accel- -m beg
${deathInFront(model)}  # For the access log of nginx, which takes it away again: the wait in line, and what came after it.
  http-after-response set-var(txn.in_line_ms) req.timer.queue
  http-after-response set-header X-Corelane-Queue-Ms %[res.hdr(X-Corelane-Queue-Ms),add(txn.in_line_ms)] if { res.hdr(X-Corelane-Queue-Ms) -m found }
  http-after-response set-header X-Corelane-Queue-Ms %Tw if !{ res.hdr(X-Corelane-Queue-Ms) -m found }
  http-after-response add-header Server-Timing queue;dur=%[res.hdr(X-Corelane-Queue-Ms)]
${AUTHENTICATES}
  # A second try over a kept connection might be lost with it: each has one of its own.
  http-after-response set-header Connection close if { so_name replay } !{ status 101 }
  # nginx decides when a request comes whether its connection is kept: this one may have come before the drain.
  http-after-response set-header X-Corelane-Connection close if { lua.corelane_draining -m bool } !{ status 101 }
${usesPoison(model)}  default_backend line`;
}

/**
 * What a request asks for. SHA-256, so that nobody makes a URL that is taken for another one. Not what has a body: nobody has it whole here, and
 * without it the URL does not tell what is rendered.
 */
const URL_DIGEST = `  http-request set-var(txn.url) baseq,sha2(256),bytes(0,16),hex if METH_GET !{ req.hdr(Upgrade) -m found } !{ req.hdr_val(Content-Length) gt 0 }
  http-request set-var(txn.client) req.hdr_ip(X-Real-IP),ipmask(32,64)
`;

const POISON = `  acl poison var(txn.url) -m str -f virt@refused
  acl poison var(txn.url),concat(" ",txn.client) -m str -f virt@refused
`;

/** A URL whose requests have got workers stuck is refused; one that may be about to do so gets no more workers than that takes. */
function quarantined({ quarantine, retryAfterSeconds }: DataPlaneModel): string {
  if (!quarantine) return '';
  return `${URL_DIGEST}  acl asked var(txn.url),table_conn_cur(urls-asked) gt 0
  acl asked var(txn.url),table_conn_cur(urls) gt 0
  acl suspect var(txn.url),table_gpc0(urls) eq 0
  acl suspect var(txn.url) -m str -f virt@suspects
  http-request lua.hold_if_suspect if { var(txn.url) -m found } asked suspect !{ so_name replay }
${POISON}  acl poison var(txn.held) -m str poison
  http-request return ${errorReply(503, 'queue-timeout', retryAfterSeconds)} if { var(txn.held) -m str too-long } !poison
  http-request return ${errorReply(503, 'queue-full', retryAfterSeconds)} if { var(txn.held) -m str queue-full } !poison
  http-request track-sc2 var(txn.url) table urls-asked if { var(txn.url) -m found } !poison
`;
}

function notPoison({ quarantine }: DataPlaneModel): string {
  return quarantine ? ' !poison' : '';
}

function usesPoison({ quarantine }: DataPlaneModel): string {
  return quarantine ? '  use_backend poison if poison\n' : '';
}

/** What becomes of the requests for each URL, seen where no client that goes ends a request. */
function countsUrls({ quarantine }: DataPlaneModel): string {
  if (!quarantine) return '';
  return `${URL_DIGEST}  http-request track-sc2 var(txn.url) table urls if { var(txn.url) -m found }
  http-request set-var(txn.id) req.hdr(X-Request-ID)
  # Over a connection to a worker that nobody has used: the end of one that was used before is told to nobody.
  http-request set-var(txn.fresh) uuid if { sc2_get_gpc0 eq 0 } { sc2_conn_cnt gt 1 } or { var(txn.url) -m str -f virt@suspects }
  http-response sc-inc-gpc0(2) unless { res.hdr(X-Corelane-Error) -m found }
  http-after-response set-var(txn.died) res.hdr(X-Corelane-Died) if { status 502 } { res.hdr(X-Corelane-Died) -m found }
  http-after-response lua.note_death if { var(txn.died) -m found } { var(txn.url) -m found }
`;
}

function urls({ quarantine }: DataPlaneModel): string[] {
  if (!quarantine) return [];
  const table = `type string len 32 size ${URLS_MAX} expire ${ms(quarantine.durationMs, 'watchdog.quarantine.duration')} store conn_cur`;
  return [
    `# Never used for traffic: requests for each URL that have been let through and are not answered; and those that are rendered, with
# answers (gpc0). Of more URLs than there is room for, those are forgotten that nobody has asked for the longest.
backend urls-asked
  stick-table ${table}

backend urls
  stick-table ${table},conn_cnt,gpc0,gpc0_rate(${ms(quarantine.stallMs, 'watchdog.stallTimeout')})

# Its requests are counted here, and not as those that a full queue refuses.
backend poison
  http-request return ${errorReply(503, 'poison', POISON_RETRY_AFTER_SECONDS)}`,
  ];
}

/** First stage: the queue. A client that goes leaves it, or gives back its place among those that are served. */
function line(model: DataPlaneModel): string {
  const places = model.workers.length * model.concurrency;
  return `# As many are let through as there are slots, so that hardly anybody waits in the second stage, where a client that goes
# cannot be noticed. Here it is: aborts free a place in front of the workers, never a worker.
backend line
  option abortonclose
${KEEPS_SERVERS}
  timeout server ${ms(model.timeouts.lineMs, 'timeouts.render')}
${model.webSockets ? STAYS_AT_HOME : ''}${borrowed(model)}  server slots unix@${RUN}/slots.sock maxconn ${whole(places, 'slots')}${borrowedServers(model)}`;
}

/** The limit of WebSockets is this pod's own: another one could not say no any more. */
const STAYS_AT_HOME = '  use-server slots if { req.hdr(Upgrade) -m found }\n';

function handsOver({ pooling }: DataPlaneModel): boolean {
  return pooling !== undefined && pooling.borrowedMax > 0;
}

function borrowed(model: DataPlaneModel): string {
  if (!handsOver(model)) return '';
  return `  # Home first; then whom pooling.lua has opened for one request, each the slot of a peer. Weight 0 is closed.
  balance first
${onlyProven('srv_name -m beg borrowed-')}
`;
}

/** A response of another pod counts if it is of the one that has promised the slot; anybody else's is as good as none. */
function onlyProven(condition = ''): string {
  const unproven = `${condition ? `if { ${condition} } !` : 'unless '}{ res.hdr(X-Corelane-Proof),secure_memcmp(txn.proof) }`;
  return `  http-response lua.distrust_peer ${unproven}
  http-response deny deny_status 502 ${unproven}
  http-response del-header X-Corelane-Proof`;
}

/** A request that is handed over shows its ticket in the head of its connection: only there it is known which server takes it. */
function withTicket(ticket: string): string {
  return `send-proxy-v2 set-proxy-v2-tlv-fmt(${TICKET_TLV}) ${ticket} ${KEPT_NEVER}`;
}

function borrowedServers({ pooling }: DataPlaneModel): string {
  const count = whole(pooling?.borrowedMax ?? 0, 'borrowed slots');
  return Array.from(
    { length: Number(count) },
    (_unused, index) =>
      `\n  server borrowed-${index} 127.0.0.1:9 maxconn 1 weight 0 ${withTicket(`%[lua.corelane_ticket(${index})]`)}`,
  ).join('');
}

/** The entrance for requests and questions of other pods, and the list of those. */
function peers(model: DataPlaneModel): string[] {
  const { pooling, ports, workers, concurrency } = model;
  if (!pooling) return [];
  const list = `# Never used for traffic: the addresses of the headless Service, for pooling.lua. Over TCP, because 500 of them do not fit
# into a datagram; an answer that is missing (DNS restarts) does not empty the list.
resolvers cluster
  nameserver dns "tcp@\${CORELANE_NAMESERVER}:53"
  accepted_payload_size 65535
  timeout resolve 1s
  timeout retry 1s
  hold valid 1s
  hold obsolete 0s
  hold nx 0s
  hold timeout 60s
  hold refused 60s
  hold other 60s

backend peers
  server-template peer- ${whole(pooling.peersMax, 'pooling.maxPeers')} "\${CORELANE_PEERS}:${whole(ports.peers, 'port')}" resolvers cluster resolve-prefer ipv4 init-addr none`;
  if (!handsOver(model)) return [list, `${peersEntrance(model)}\n  http-request reject`];
  return [
    list,
    `${peersEntrance(model)}
${handedOver(model)}`,
    `# No worker of this pod is up, and a peer keeps a slot for the request in the waiting room.
backend elsewhere
  timeout server ${ms(model.timeouts.lineMs, 'timeouts.render')}
${onlyProven()}
  http-request set-dst var(txn.peer)
  server peer 0.0.0.0:${whole(ports.peers, 'port')} ${withTicket('%[var(txn.ticket)]')}${isSupervised(model) ? ` pool-conn-name ${REQUEST},lua.corelane_sent_away` : ''}`,
    `# The slot that was kept has gone to somebody else in the last millisecond. The request waits for the next worker here:
# it must not travel on.
backend late
  option abortonclose
  timeout server ${ms(model.timeouts.lineMs, 'timeouts.render')}
  server slots unix@${RUN}/slots.sock maxconn ${whole(workers.length * concurrency, 'slots')}`,
  ];
}

/** What HAProxy would say by itself to whoever sends nonsense, or nothing. */
const SILENT_STATUSES = [400, 405, 408, 413, 422, 500, 501];

/** Whoever has not shown that he has the key is answered with the end of his connection, and nothing else. */
function peersEntrance(model: DataPlaneModel): string {
  const { peers, ports } = model;
  return `# Peers keep connections for their questions, and make one for each request that they hand over. Strangers must not take
# so many that requests at nginx would notice: what is beyond waits in the kernel, and one address gets a part only.
frontend peers
  ${bindAny(ports.peers)} accept-proxy backlog 256
  maxconn ${whole(peers.connectionsMax, 'connections of peers')}
  stick-table type ipv6 size 4k expire 1m store conn_cur
  tcp-request connection track-sc0 src
  tcp-request connection reject if { sc0_conn_cur gt ${whole(peers.perSourceMax, 'connections of a peer')} }
  option disable-h2-upgrade
  timeout client-hs 2s
  timeout http-request 2s
  timeout http-keep-alive 10s
${SILENT_STATUSES.map((status) => `  errorfile ${status} /dev/null`).join('\n')}
  http-request set-var(txn.question) req.hdr(X-Corelane-Ask)
  acl question var(txn.question) -m found
  http-request reject if { req.hdr(Transfer-Encoding) -m found } or METH_CONNECT or METH_TRACE
  # A question has its token, and so has its answer.
  http-request reject if question !METH_GET or question { req.hdr(Content-Length) -m found } or question { req.hdr(Upgrade) -m found }
  http-request lua.answer_peer if question
  http-request reject if question !{ var(txn.token) -m found }
  http-after-response set-header X-Corelane-Token %[var(txn.token)] if { var(txn.token) -m found }
  http-after-response set-header X-Corelane-From %[var(txn.identity)] if { var(txn.identity) -m found }
  http-after-response set-header X-Corelane-Promise %[var(txn.promise)] if { var(txn.promise) -m found }
  http-request return status 200 content-type text/plain lf-string %[var(txn.answer)] if question { var(txn.answer) -m found }`;
}

/** Requests of peers, as nginx has made them: what it would not send is not from it. */
function handedOver(model: DataPlaneModel): string {
  const { body, queue, retryAfterSeconds } = model;
  return `  http-request reject if question
  http-request reject if { req.hdr_val(Content-Length) gt ${whole(body.sizeBytesMax, 'buffering.request.maxSize')} }
  http-request reject if { req.hdr(Upgrade) -m found }
  http-request reject unless { req.fhdr_cnt(X-Request-ID) eq 1 } { req.fhdr(X-Request-ID) -m reg ^(?!\\.\\.?$)[A-Za-z0-9._-]{1,128}$ }
  http-request reject unless { req.fhdr_cnt(X-Forwarded-For) eq 1 } { req.fhdr_cnt(X-Forwarded-Proto) eq 1 } { req.fhdr(X-Forwarded-Proto) -m str http https }
  http-request set-var(txn.ticket) fc_pp_tlv(${TICKET_TLV})
  http-request lua.admit_hand_over
  http-request reject unless { var(txn.proof) -m found }
  http-after-response set-header X-Corelane-Proof %[var(txn.proof)] if { var(txn.proof) -m found }
  # X-Corelane-Came-Ms, for one, is by another pod's clock.
  http-request del-header X-Corelane- -m beg
  http-request set-header X-Corelane-Handed-Over 1
${model.quarantine ? URL_DIGEST + POISON : ''}${noteForDeath(model)}${verdictForPeer(model)}  http-after-response set-header X-Corelane-Pod "\${HOSTNAME}"
${errorReplies(model)}
  http-request return ${errorReply(503, 'queue-full', retryAfterSeconds)} if { queue(late) ge ${whole(queue.lengthMax, 'queue.maxLength')} } { queue(late) gt 0 }
${usesPoison(model)}  # Check and assignment are one step: one thread, and nothing between them waits.
  use_backend line if { var(txn.slot_kept) -m bool }
  default_backend late`;
}

/** Second stage: one slot per worker, which only the end of its render frees (single flight). */
function slots(model: DataPlaneModel): string {
  return `frontend slots
  bind unix@${RUN}/slots.sock mode 600 backlog 4096
${KEEPS_CLIENTS}
${countsUrls(model)}${errorReplies(model, deathReply(model))}
  # The waiting room has set its own.
  http-after-response set-header X-Corelane-Queue-Ms %Tw if !{ srv_name waiting-room }
${aboutWorker()}
${AUTHENTICATES}
  default_backend workers`;
}

function workers(model: DataPlaneModel): string {
  const slots = `maxconn ${whole(model.concurrency, 'concurrency')}`;
  const afterWaiting = ms(model.timeouts.workerAfterWaitingMs, 'timeouts.render');
  return `backend workers
  balance ${word(model.balance, 'balance')}
${isSupervised(model) ? `${KEEPS_SERVERS}\n${keepsIfGuarded(model)}` : ''}  # All workers may be dead before HAProxy knows it: each refuses one connection and is out, then comes the waiting room.
  retries ${whole(model.workers.length + 3, 'retries')}
  http-request set-timeout server ${afterWaiting} if { nbsrv(workers-up) eq 0 }
  # Only the proxies may say who made an error, and that a request has waited.
  http-response del-header X-Corelane- -m beg if !{ srv_name waiting-room }
  # No worker is up: the request waits instead of failing. Stands before default-server, because its health check
  # would travel through the waiting room into a worker.
  server waiting-room unix@${RUN}/waiting-room.sock backup ${KEPT_NEVER}
  # A refused connection takes a worker out at once (observe), a dead one is seen again within 100 ms.
  default-server ${slots} check inter 1s fastinter 100ms downinter 100ms fall 2 rise 1 observe layer4 error-limit 1 on-error mark-down
${supervised(model)}${model.workers.map((worker, index) => noted(model, worker, index)).join('\n')}`;
}

/**
 * HAProxy keeps connections by backend, and not by server. A request cannot know which worker it will get, so none is kept as long as
 * one is up that may not have it. What became another protocol (101) is kept by nobody, whatever it says.
 */
function keepsIfGuarded({ workers }: DataPlaneModel): string {
  const rules = workers.map(({ name }) => {
    const server = word(name, 'worker name');
    return `  http-request set-var(txn.unguarded) bool(true) if !all_guarded { srv_is_up(workers-up/${server}) } !{ srv_is_up(workers-guarded/${server}) }`;
  });
  return `  acl all_guarded nbsrv(workers-guarded) ge ${whole(workers.length, 'workersPerPod')}
${rules.join('\n')}
  http-request set-var(txn.unguarded) bool(true) if { var(txn.fresh) -m found }
  http-request set-header Connection close if { var(txn.unguarded) -m bool } !{ req.hdr(Upgrade) -m found }
  http-request set-header Connection "upgrade, close" if { var(txn.unguarded) -m bool } { req.hdr(Upgrade) -m found }
`;
}

function isSupervised({ workers }: DataPlaneModel): boolean {
  return workers.some(({ runtimePort }) => runtimePort !== undefined);
}

/**
 * The supervisor tells through an agent check that a worker is stuck, has ended or is about to stop. Of an agent HAProxy
 * believes nothing but words: one that is not there (an image without Node.js) or late (no CPU) changes nothing. A
 * supervisor answers when there is news, or after 0.9 s.
 */
function supervised(model: DataPlaneModel): string {
  if (!isSupervised(model)) return '';
  return `  # The worker's supervisor says "down" before a kill; where there is none, only the check above counts. It is told how
  # many requests its worker may have: the gate in the worker holds back any more.
  default-server agent-check agent-inter 100ms agent-send "corelane-agent ${whole(model.concurrency, 'concurrency')}\\n"
  # Idle connections are given up after some times this, long before the gate lets Node.js close them.
  default-server pool-purge-delay 1s
`;
}

function serverLine({ name, port, runtimePort }: WorkerModel): string {
  const agent = runtimePort === undefined ? '' : ` agent-port ${whole(runtimePort, 'runtime port')}`;
  return `  server ${word(name, 'worker name')} 127.0.0.1:${whole(port, 'worker port')}${agent}`;
}

/** The name of a request that nginx has given it. */
const REQUEST = 'req.hdr(X-Corelane-Request)';

/**
 * Notes whom HAProxy gives a request to, in the moment in which it does: a kept connection that ends without an answer leaves no other trace.
 * The name of the connection, for which this is meant, is always the same, or one that no idle connection has: then the request gets a new one.
 * Not in default-server, from which HAProxy 3.0 does not copy it.
 */
function noted({ quarantine }: DataPlaneModel, worker: WorkerModel, index: number): string {
  if (worker.runtimePort === undefined) return serverLine(worker);
  const fresh = quarantine ? ',concat(/,txn.fresh)' : '';
  return `${serverLine(worker)} pool-conn-name ${REQUEST}${fresh},lua.corelane_sent(${index})`;
}

/** Names the worker whose response it is, and its time. Whoever stands between has passed on what it got. */
function aboutWorker(): string {
  return `  http-after-response set-header X-Corelane-Render-Ms %Tr if { srv_name -m beg worker- }
  http-after-response set-header X-Corelane-Worker %[srv_name] if { srv_name -m beg worker- }`;
}

function waitingRoom(model: DataPlaneModel): string {
  const leaves = handsOver(model);
  const supervised = isSupervised(model);
  const stays = leaves ? ' !{ var(txn.peer) -m found }' : '';
  const tooLate = supervised
    ? `  # Workers that are busy with renders that were given up are not down.
  http-request return ${errorReply(503, 'queue-timeout', 1)} if in_vain${stays} { nbsrv(workers-alive) gt 0 }
`
    : '';
  return `frontend waiting-room
  bind unix@${RUN}/waiting-room.sock mode 600 backlog 4096
  http-request set-header X-Corelane-Came-Ms %[date(0,ms)] if !{ req.hdr(X-Corelane-Came-Ms) -m found }
  http-request set-var(txn.waited_ms) int(0)
  http-request lua.wait_for_worker unless { req.hdr_cnt(X-Corelane-Waits) ge 8 }
  http-request add-header X-Corelane-Waits 1
  acl in_vain nbsrv(workers-up) eq 0
  acl in_vain req.hdr_cnt(X-Corelane-Waits) gt 8
${tooLate}  http-request return ${errorReply(503, 'no-worker', 1)} if in_vain${stays}
  http-error ${errorReply(503, 'queue-timeout', 1)}
  http-error ${errorReply(504, 'render-timeout')}
${deathReply(model)}
  http-after-response set-header X-Corelane-Queue-Ms %[req.timer.queue,add(txn.waited_ms)] if !{ srv_name waiting-room }
${aboutWorker()}
${leaves ? '  use_backend elsewhere if { var(txn.peer) -m found }\n' : ''}  default_backend workers`;
}

function workersUp(model: DataPlaneModel): string {
  const servers = model.workers.map(
    ({ name, port }) =>
      `  server ${word(name, 'worker name')} 127.0.0.1:${whole(port, 'worker port')} track workers/${name}`,
  );
  return `# Never used for traffic: the waiting room counts as a server of "workers" when no worker is up; here nbsrv is honest.
backend workers-up
${servers.join('\n')}`;
}

/**
 * A worker whose places are all taken by renders that were given up takes no requests, which "workers" must know, but it is
 * not down: a pod that left the Service for it would leave it with all its like, for all wait for the same dependency.
 */
function workersAlive(model: DataPlaneModel): string[] {
  if (!isSupervised(model)) return [];
  const why = 'Never used for traffic: workers that are there, though busy, as their supervisors say.';
  return [askedBackend('workers-alive', 'corelane-alive', why, model)];
}

/** A backend whose servers are the supervisors: up is one that is there and answers "up" to `question`, after 9 s or when there is news. */
function askedBackend(name: string, question: string, why: string, { workers }: DataPlaneModel): string {
  const servers = workers.flatMap(({ name: worker, runtimePort }) =>
    runtimePort === undefined ? [] : [`  ${serverLine({ name: worker, port: runtimePort, runtimePort }).trim()}`],
  );
  return `# ${why}
backend ${name}
  timeout check 10s
  default-server check inter 1s fastinter 100ms downinter 100ms fall 2 rise 1 agent-check agent-inter 100ms agent-send "${question}\\n"
${servers.join('\n')}`;
}

/**
 * Whether a worker's connections may be kept: its supervisor says so, in its own words, after 9 s or when there is news. A check and no agent:
 * where nobody answers (no Node.js, no NODE_OPTIONS, a supervisor that has ended) the answer is no.
 */
function workersGuarded(model: DataPlaneModel): string[] {
  const servers = model.workers.flatMap(({ name, runtimePort }) =>
    runtimePort === undefined
      ? []
      : [`  server ${word(name, 'worker name')} 127.0.0.1:${whole(runtimePort, 'runtime port')}`],
  );
  if (servers.length === 0) return [];
  return [
    `# Never used for traffic: up are the workers whose runtime sees to the length of responses.
backend workers-guarded
  timeout check 10s
  option tcp-check
  tcp-check connect
  tcp-check send "corelane-guarded\\n"
  tcp-check expect rstring ^up
  default-server check inter 100ms fastinter 100ms downinter 100ms fall 1 rise 1
${servers.join('\n')}`,
  ];
}

/** CORELANE_ANY_ADDRESS is set by the entry point: `::` for both families, or `*` where there is no IPv6. */
function bindAny(port: number): string {
  return `bind "\${CORELANE_ANY_ADDRESS}:${whole(port, 'port')}" v4v6`;
}

/**
 * Limits of a port that only kubelet, the operator and monitoring have business with, but that the whole cluster may reach.
 * Who is turned away at once is a stranger that has more connections than anybody needs. Everybody else waits in the
 * kernel's queue, first come, first served, for the short time that an idle or slow connection gets: a limit that
 * refused connections would refuse kubelet's probes, too, where they come from the address of an attacker.
 */
function door({ connectionsMax, perSecondMax, strangers }: Door): string {
  return `  maxconn ${whole(connectionsMax, 'connections')}
  rate-limit sessions ${whole(perSecondMax, 'connections per second')}
  # A request for each connection, all of it while kubelet waits for its probe (2 s), which on a node without CPU may send it late;
  # nobody waits for a client that does not close.
  option httpclose
  timeout http-request 2s
  timeout client 5s
  timeout client-fin 1s
  acl from_node src "\${CORELANE_NODE[*]}"
  stick-table type ipv6 size 4k expire 10s store conn_cur,conn_rate(1s)
  tcp-request connection track-sc0 src unless from_node
  tcp-request connection reject if { sc0_conn_cur gt ${whole(strangers.eachMax, 'connections')} }
  tcp-request connection reject if { sc0_conn_rate gt ${whole(strangers.eachPerSecondMax, 'connections per second')} }
  tcp-request connection reject if !from_node { fe_conn gt ${whole(strangers.allMax, 'connections')} }
  # HEAD is a GET to HAProxy.
  http-request return status 405 unless METH_GET`;
}

function health(model: DataPlaneModel): string {
  const { doors, pooling, ports } = model;
  const noWorker = `{ nbsrv(workers-up) eq 0 }${isSupervised(model) ? ' { nbsrv(workers-alive) eq 0 }' : ''}`;
  const text = (status: number, body: string) =>
    `http-request return status ${status} content-type text/plain string ${body}`;
  return `frontend health
  # The entry point holds this port open: kubelet's probes wait in there while HAProxy is started again.
  # corelane: health-port=${whole(ports.health, 'port')}
  bind "\${CORELANE_HEALTH}"
${door(doors.health)}
  ${text(200, 'ok')} if { path /livez }
  ${text(503, 'draining')} if { path /readyz } { lua.corelane_draining -m bool }
  http-request lua.wait_for_first_worker if { path /readyz } ${noWorker}
  ${text(503, 'no-worker')} if { path /readyz } ${noWorker}
${pooling?.shed ? `  ${text(503, 'queue-full')} if { path /readyz } { lua.corelane_shed -m bool }\n` : ''}  ${text(200, 'ok')} if { path /readyz }
  # A preStop hook waits here for as long as the drain takes.
  http-request set-var(txn.is_stranger) bool(true) if { path /wait-for-drain } !from_node
  http-request set-timeout client 24h if { path /wait-for-drain }
  http-request lua.wait_for_drain if { path /wait-for-drain }
  ${text(503, 'too-many hdr Retry-After 1')} if { var(txn.crowded) -m bool }
  ${text(503, 'not-draining')} if { path /wait-for-drain } !{ lua.corelane_draining -m bool }
  ${text(200, 'drained')} if { path /wait-for-drain }
  ${text(404, '"not found"')}`;
}

function stats(model: DataPlaneModel): string {
  const { eachMax, allMax, seconds } = model.doors.wholePages;
  const tooMany = `http-request return status 429 content-type text/plain string "too many whole pages" hdr Retry-After ${whole(seconds, 'Retry-After')} if { var(txn.is_whole) -m bool }`;
  return `frontend stats
  ${bindAny(model.ports.stats)} backlog 4096
${door(model.doors.stats)}
  acl statistics path_reg ^/(;[A-Za-z0-9;=_-]*)?$
  # Pages of hundreds of kB, each some milliseconds of this process; less with metrics= (the operator's question, or one name).
  acl narrow query -m reg ^(no-maint&metrics=[a-z_,]{1,400}|metrics=[a-z_]{1,64})$
  http-request set-var(txn.is_whole) bool(true) if statistics or { path /metrics } !narrow
  http-request track-sc1 src table whole-pages if { var(txn.is_whole) -m bool }
  http-request track-sc2 str(all) table whole-pages if { var(txn.is_whole) -m bool }
  ${tooMany} { sc1_gpc0_rate ge ${whole(eachMax, 'pages')} }
  ${tooMany} { sc2_gpc0_rate ge ${whole(allMax, 'pages')} }
  http-request sc-inc-gpc0(1) if { var(txn.is_whole) -m bool }
  http-request sc-inc-gpc0(2) if { var(txn.is_whole) -m bool }
  http-request use-service prometheus-exporter if { path /metrics }
${workerMetrics(model)}
${isSupervised(model) ? '  acl one_worker path_reg ^/workers/[0-9]+/(metrics|stalls)$\n' : ''}  http-request return status 404 content-type text/plain string "not found" unless statistics${isSupervised(model) ? ' or one_worker\n  use_backend worker-runtimes if one_worker' : ''}
  default_backend stats-page

# Never used for traffic: who has had how many whole pages.
backend whole-pages
  stick-table type string len 40 size 4k expire ${whole(seconds, 'seconds')}s store gpc0,gpc0_rate(${whole(seconds, 'seconds')}s)

# Of its own, because the page answers whatever begins with its path.
backend stats-page
  stats enable
  stats uri /
  stats show-legends
  stats refresh 5s`;
}

/** All workers on one page, for Prometheus. Without runtime it is an empty one: a target that answers 404 raises alarms. */
function workerMetrics(model: DataPlaneModel): string {
  const page = 'if { path /workers/metrics }';
  return isSupervised(model)
    ? `  http-request use-service lua.worker_metrics ${page}`
    : `  http-request return status 200 content-type text/plain string "# runtime.instrument is false\\n" ${page}`;
}

/** The supervisors listen on loopback; this is how Prometheus reaches them. */
function workerRuntimes({ workers }: DataPlaneModel): string[] {
  const servers = workers.flatMap(({ name, runtimePort }, index) =>
    runtimePort === undefined
      ? []
      : [
          `  use-server ${word(name, 'worker name')} if { var(txn.worker) -m int ${index} }`,
          `  server ${word(name, 'worker name')} 127.0.0.1:${whole(runtimePort, 'runtime port')}`,
        ],
  );
  if (servers.length === 0) return [];
  return [
    `backend worker-runtimes
  timeout server 5s
  retries 0
  http-request set-var(txn.worker) path,field(3,/)
  http-request return status 404 if { var(txn.worker) -m int ge ${whole(workers.length, 'workersPerPod')} }
  http-request set-path /stalls/summary if { path_end /stalls }
  http-request set-path /metrics if { path_end /metrics }
${servers.join('\n')}`,
  ];
}
