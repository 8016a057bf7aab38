/** Workers that die with a request: what each stage notes for the case, and what it says then. */
import { given, type Lines, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { word } from '../safe.ts';
import { isExcepted } from './excepted.ts';
import { errorReply, NO_REPLY } from './replies.ts';

const WORKER = 'hdr X-Corelane-Worker %[var(txn.died)]';

/** No second worker gets it, because nobody knows whether the first one has begun it. */
export const DIED = `${errorReply(502, 'worker-died')} ${WORKER}`;
/** It was stuck in the request: one worker is enough. */
export const STUCK = `${errorReply(502, 'worker-stuck')} hdr X-Corelane-Stuck "%[var(txn.stuck)]" ${WORKER}`;
/** HAProxy could not read what the worker has answered, which lives: another one would answer alike. */
const BAD_RESPONSE = `${errorReply(502, 'bad-response')} ${WORKER}`;

/** Notes which requests are rendered once, unless nobody has begun them, and what is needed to ask about that. */
export function notesForDeath(model: DataPlaneModel): Lines {
  const { isSupervised, replay } = model;
  return [
    when(isSupervised, 'http-request set-var(txn.id) req.hdr(X-Request-ID)'),
    given(replay.methods, (methods) =>
      words(
        'http-request set-var(txn.only_once) bool(true)',
        methods.length > 0 && `unless { method ${methods.map((method) => word(method, 'replay')).join(' ')} }`,
      ),
    ),
    // With `replay: Never` the rule above holds for every request.
    when(replay.methods?.length !== 0, isExcepted(model), 'http-request set-var(txn.only_once) bool(true) if excepted'),
    when(
      isSupervised,
      // A WebSocket is not noted.
      words(
        'http-request set-var(txn.asks) bool(true)',
        'if { var(txn.only_once) -m bool } !{ req.hdr(Upgrade) -m found }',
      ),
      'http-request set-var(txn.came_ms) date(0,ms) if { var(txn.asks) -m bool } !{ so_name replay }',
    ),
  ];
}

/** Where the worker's end is seen: the stage before is told who it was. */
export function saysWhoDied({ isSupervised }: DataPlaneModel): Lines {
  const died = `http-error ${errorReply(502, 'worker-died')} hdr X-Corelane-Died %[srv_name] hdr X-Corelane-End %ts`;
  return [when(isSupervised, died), when(!isSupervised, NO_REPLY)];
}

/** A worker of this pod has died with it: asks its supervisor why. One that it was stuck in has had enough. */
export const ASKS_WHY_IT_DIED: Lines = [
  words(
    'http-response set-var(txn.died) res.hdr(X-Corelane-Died)',
    'if { res.hdr(X-Corelane-Died) -m found } !{ res.hdr(X-Corelane-Pod) -m found }',
  ),
  // Termination state of a response that HAProxy could not read.
  `http-response return ${BAD_RESPONSE} if { res.hdr(X-Corelane-End) -m str PH }`,
  'http-response lua.ask_why_it_died if { var(txn.died) -m found }',
  `http-response return ${STUCK} if { var(txn.stuck) -m found }`,
  'http-response lua.ask_whether_begun if { var(txn.died) -m found } { var(txn.came_ms) -m found }',
];
