/**
 * Classes: requests that are no renders have places of their own in the workers, in a backend for each class whose
 * servers are the same workers. One stage is enough: who goes leaves the queue, or ends what the worker does for it,
 * and the worker itself counts what it goes on with.
 */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { type Lines, paragraphs, section, when, words } from '../directives.ts';
import type { RequestClass } from '../model/classes.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { ms, whole, word } from '../safe.ts';
import { HIDES_CLIENT_OF_SHARED } from './cache.ts';
import { KEEPS_SERVERS, KEPT_NEVER, KNOWS_REQUEST, sentTo } from './connections.ts';
import { saysWhoDied } from './deaths.ts';
import { keepsIfGuarded, NAMES_WORKER } from './dispatch.ts';
import { purgesAndStrips } from './purge.ts';
import { boundsHead, errorReply, tooLateReplies } from './replies.ts';
import { serverAt } from './servers.ts';

const WAITING_ROOM = `${RUN_MOUNT_PATH}/class-waiting-room.sock`;

/** The backend of a class. */
export function classBackend({ name }: RequestClass): string {
  return `class-${word(name, 'classes.name')}`;
}

/** Of a request that waits in a waiting room, or comes to a worker: the class, as HAProxy itself has written it. */
const isOf = ({ name }: RequestClass) => `{ req.hdr(X-Corelane-Class) -m str ${word(name, 'classes.name')} }`;

/** Where requests of classes go. */
export function usesClasses(classes: RequestClass[]): Lines {
  return classes.map((one) => [
    words(
      `use_backend ${fullBackend(one)} if ${isOf(one)}`,
      `{ queue(${classBackend(one)}) ge ${whole(one.queue.lengthMax, 'classes.queue.maxLength')} }`,
      `{ be_conn_free(${classBackend(one)}) le 0 }`,
    ),
    `use_backend ${classBackend(one)} if ${isOf(one)}`,
  ]);
}

function fullBackend({ name }: RequestClass): string {
  return `full-${word(name, 'classes.name')}`;
}

/** Backends, and the waiting room of all classes: in that of renders it counts who is there. */
export function classBackends(classes: RequestClass[], model: DataPlaneModel): Lines {
  return paragraphs(
    [
      '# Requests that are no renders. The same workers, with places of their own: one that is busy with nothing is found by Lua.',
      backend(classes[0] as RequestClass, model),
    ],
    ...classes.slice(1).map((one) => backend(one, model)),
    [
      '# Refused requests are counted here, and not as those that a full queue of renders refuses: they are no reason for more pods.',
      ...paragraphs(
        ...classes.map((one) =>
          section(
            `backend ${fullBackend(one)}`,
            `http-request return ${errorReply(503, 'class-full', model.retryAfterSeconds)}`,
          ),
        ),
      ),
    ],
    waitingRoom(classes, model),
  );
}

function backend(one: RequestClass, model: DataPlaneModel): Lines {
  const { cache, connectRetries, isSupervised, retryAfterSeconds, webSockets, workers } = model;
  const places = whole(one.places, 'places');
  return section(
    `backend ${classBackend(one)}`,
    'balance leastconn',
    'option abortonclose',
    HIDES_CLIENT_OF_SHARED,
    when(isSupervised, KEEPS_SERVERS, KNOWS_REQUEST, keepsIfGuarded(workers)),
    `retries ${whole(connectRetries, 'retries')}`,
    `timeout queue ${ms(one.queue.timeoutMs, 'classes.queue.timeout')}`,
    `timeout server ${ms(one.idleMs, 'classes.timeouts.idle')}`,
    when(webSockets, `timeout tunnel ${ms(one.idleMs, 'classes.timeouts.idle')}`),
    words(
      `http-request set-timeout server ${ms(one.idleAfterWaitingMs, 'classes.timeouts.idle')}`,
      'if { nbsrv(workers-up) eq 0 }',
    ),
    `http-error ${errorReply(503, 'class-queue-timeout', retryAfterSeconds)}`,
    `http-error ${errorReply(504, 'class-timeout')}`,
    purgesAndStrips(cache),
    boundsHead(model),
    `http-request lua.find_idle_worker ${classBackend(one)}`,
    'use-server %[var(txn.idle_worker)] if { var(txn.idle_worker) -m found }',
    NAMES_WORKER,
    `server waiting-room unix@${WAITING_ROOM} backup maxconn ${places} ${KEPT_NEVER}`,
    '# Checks of its own, because a worker that dies must be out with the first connection that it refuses, and a queue that is',
    '# full would else be given to it until somebody else has noticed.',
    words(
      `default-server maxconn ${whole(one.concurrency, 'classes.concurrency')}`,
      'check inter 1s fastinter 100ms downinter 100ms fall 2 rise 1 observe layer4 error-limit 1 on-error mark-down',
    ),
    when(
      isSupervised,
      `default-server agent-check agent-inter 100ms agent-send "corelane-class ${word(one.name, 'classes.name')}\\n"`,
      'default-server pool-purge-delay 1s',
    ),
    workers.map((worker, index) =>
      words(
        serverAt(worker, worker.port),
        isSupervised && `agent-port ${whole(worker.runtimePort, 'runtime port')}`,
        isSupervised && sentTo(index),
      ),
    ),
  );
}

function waitingRoom(classes: RequestClass[], model: DataPlaneModel): Lines {
  const { isSupervised, retryAfterSeconds } = model;
  return [
    '# No worker is up. No other pod takes these.',
    section(
      'frontend class-waiting-room',
      `bind unix@${WAITING_ROOM} mode 600 backlog 4096`,
      'http-request set-header X-Corelane-Came-Ms %[date(0,ms)] if !{ req.hdr(X-Corelane-Came-Ms) -m found }',
      'http-request set-var(txn.waited_ms) int(0)',
      'http-request lua.wait_for_class unless { req.hdr_cnt(X-Corelane-Waits) ge 8 }',
      'http-request add-header X-Corelane-Waits 1',
      'acl in_vain var(txn.in_vain) -m found',
      'acl in_vain req.hdr_cnt(X-Corelane-Waits) gt 8',
      when(
        isSupervised,
        words(
          `http-request return ${errorReply(503, 'class-queue-timeout', retryAfterSeconds)}`,
          'if in_vain { nbsrv(workers-alive) gt 0 }',
        ),
      ),
      `http-request return ${errorReply(503, 'no-worker', retryAfterSeconds)} if in_vain`,
      tooLateReplies(model),
      saysWhoDied(model),
      words(
        'http-after-response set-header X-Corelane-Queue-Ms %[req.timer.queue,add(txn.waited_ms)]',
        'if !{ srv_name waiting-room }',
      ),
      NAMES_WORKER,
      classes.map((one) => `use_backend ${classBackend(one)} if ${isOf(one)}`),
    ),
  ];
}
