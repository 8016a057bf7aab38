/**
 * Frontend `slots` and backend `workers`, the second stage: slots of a worker, which only the end of a render frees
 * (single flight).
 */
import { SAFE_METHODS } from '../../api/handler-timeout.ts';
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { given, type Lines, section, when, words } from '../directives.ts';
import type { DataPlaneModel, WorkerModel } from '../model/index.ts';
import type { Timeouts } from '../model/timeouts.ts';
import { ms, whole, word } from '../safe.ts';
import { HIDES_CLIENT_OF_SHARED } from './cache.ts';
import { AUTHENTICATES, KEEPS_CLIENTS, KEEPS_SERVERS, KEPT_NEVER, KNOWS_REQUEST, sentTo } from './connections.ts';
import { OBSERVES_DEADLINE } from './deadlines.ts';
import { saysWhoDied } from './deaths.ts';
import { outlastsSilence } from './event-streams.ts';
import { live } from './live.ts';
import { GIVES_MARK } from './marks.ts';
import { purgesAndStrips } from './purge.ts';
import { COUNTS_URLS } from './quarantine.ts';
import { boundsHead, tooLateReplies } from './replies.ts';
import { serverAt } from './servers.ts';

/** Of servers whose places are a live setting: at first one, until Lua (moving-limits.lua) has seen to it. */
export const MOVING_MAXCONN = 'maxconn 1';

/** Names the worker whose response it is, and its time. Whoever stands between has passed on what it got. */
export const NAMES_WORKER = [
  'http-after-response set-header X-Corelane-Render-Ms %Tr if { srv_name -m beg worker- }',
  'http-after-response set-header X-Corelane-Worker %[srv_name] if { srv_name -m beg worker- }',
];

/** The frontend, which knows the worker that a response is from. */
export function slots(model: DataPlaneModel): Lines {
  return section(
    'frontend slots',
    `bind unix@${RUN_MOUNT_PATH}/slots.sock mode 600 backlog 4096`,
    KEEPS_CLIENTS,
    given(model.deadlines, () => OBSERVES_DEADLINE),
    given(model.quarantine, () => COUNTS_URLS),
    tooLateReplies(model),
    saysWhoDied(model),
    '# The waiting room has set its own.',
    'http-after-response set-header X-Corelane-Queue-Ms %Tw if !{ srv_name waiting-room }',
    NAMES_WORKER,
    AUTHENTICATES,
    'default_backend workers',
  );
}

/** The backend, which gives each worker as many requests as it may have. */
export function workers(model: DataPlaneModel): Lines {
  const { balance, cache, connectRetries, isSupervised, webSockets, workers } = model;
  return section(
    'backend workers',
    `balance ${word(balance, 'balance')}`,
    HIDES_CLIENT_OF_SHARED,
    when(isSupervised, KEEPS_SERVERS, KNOWS_REQUEST, keepsIfGuarded(workers)),
    '# All workers may be dead before HAProxy knows it: each refuses one connection and is out, then comes the waiting room.',
    `retries ${whole(connectRetries, 'retries')}`,
    when(webSockets, `http-request set-timeout tunnel ${live('worker-ms')}`),
    limitsWorker(model),
    purgesAndStrips(cache),
    boundsHead(model),
    '# No worker is up: the request waits instead of failing. Stands before default-server, because its health check',
    '# would travel through the waiting room into a worker.',
    `server waiting-room unix@${RUN_MOUNT_PATH}/waiting-room.sock backup ${KEPT_NEVER}`,
    '# A refused connection takes a worker out at once (observe), a dead one is seen again within 100 ms.',
    words(
      `default-server ${MOVING_MAXCONN} check inter 1s fastinter 100ms downinter 100ms fall 2 rise 1`,
      'observe layer4 error-limit 1 on-error mark-down',
    ),
    // Of an agent HAProxy believes nothing but words: one that is not there (an image without Node.js) or late (no CPU)
    // changes nothing. A supervisor answers when there is news, or after 0.9 s.
    when(
      isSupervised,
      '# The worker\'s supervisor says "down" before a kill; where there is none, only the check above counts. It knows how',
      '# many requests its worker may have: the concurrency limiter in the worker holds back any more.',
      'default-server agent-check agent-inter 100ms agent-send "corelane-agent\\n"',
      '# Idle connections are given up after some times this, long before the concurrency limiter lets Node.js close them.',
      'default-server pool-purge-delay 1s',
    ),
    workers.map((worker, index) => workerServer(worker, index, model)),
  );
}

/** How long a worker may take for a request. */
export function limitsWorker({ timeouts }: DataPlaneModel): Lines {
  return [
    `http-request set-timeout server ${live('worker-ms')}`,
    `http-request set-timeout server ${live('worker-after-waiting-ms')} if { nbsrv(workers-up) eq 0 }`,
    given(timeouts.handler, handlerTimeouts),
  ];
}

/**
 * Limits of requests that may change something replace those above, if they are longer: live settings may have made
 * those of renders the longer ones.
 */
function handlerTimeouts({ workerMs, workerAfterWaitingMs }: NonNullable<Timeouts['handler']>): Lines {
  const longer = (limitMs: number, setting: string, condition?: string) =>
    words(
      `http-request set-timeout server ${ms(limitMs, 'timeouts.handler')}`,
      `if !safe_method { ${live(setting)} lt ${whole(limitMs, 'timeouts.handler')} }`,
      condition,
    );
  return [
    '# Requests that may change something have longer (timeouts.handler).',
    `acl safe_method method ${SAFE_METHODS.join(' ')}`,
    longer(workerMs, 'worker-ms'),
    longer(workerAfterWaitingMs, 'worker-after-waiting-ms', '{ nbsrv(workers-up) eq 0 }'),
    '# Between two events an event stream may be silent for as long.',
    outlastsSilence(workerMs, `{ ${live('worker-ms')} lt ${whole(workerMs, 'timeouts.handler')} }`),
  ];
}

/**
 * HAProxy keeps connections by backend, and not by server. A request cannot know which worker it will get, so none is
 * kept as long as one is up that may not have it. What became another protocol (101) is kept by nobody, whatever it
 * says. A mark (marks.ts) needs guarded workers as well, but no kept connection: the quarantine's "fresh" comes after
 * it.
 */
export function keepsIfGuarded(workers: WorkerModel[]): Lines {
  const upgrade = '{ req.hdr(Upgrade) -m found }';
  return [
    `acl all_guarded nbsrv(workers-guarded) ge ${whole(workers.length, 'workersPerPod')}`,
    workers.map(({ name }) => {
      const server = word(name, 'worker name');
      return words(
        'http-request set-var(txn.unguarded) bool(true)',
        `if !all_guarded { srv_is_up(workers-up/${server}) } !{ srv_is_up(workers-guarded/${server}) }`,
      );
    }),
    GIVES_MARK,
    'http-request set-var(txn.unguarded) bool(true) if { var(txn.fresh) -m found }',
    `http-request set-header Connection close if { var(txn.unguarded) -m bool } !${upgrade}`,
    `http-request set-header Connection "upgrade, close" if { var(txn.unguarded) -m bool } ${upgrade}`,
  ];
}

/**
 * Notes whom HAProxy gives a request to, in the moment in which it does: a kept connection that ends without an
 * answer leaves no other trace. The name of the connection (pool-conn-name), for which this is meant, is always the
 * same, or one that no idle connection has: then the request gets a new one. Not in default-server, from which
 * HAProxy 3.0 does not copy it.
 */
function workerServer(worker: WorkerModel, index: number, { isSupervised, quarantine }: DataPlaneModel): string {
  return words(
    serverAt(worker, worker.port),
    isSupervised && `agent-port ${whole(worker.runtimePort, 'runtime port')}`,
    isSupervised && sentTo(index, quarantine ? 'txn.fresh' : undefined),
  );
}
