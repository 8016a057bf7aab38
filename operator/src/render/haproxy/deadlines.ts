/** Requests that say how long they are waited for: a stage in front of all others, which gives up for them. */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { given, type Lines, section, words } from '../directives.ts';
import type { Deadlines } from '../model/deadlines.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { TIMED_SOCKET } from '../nginx/deadlines.ts';
import { ms, whole } from '../safe.ts';
import { KEEPS_CLIENTS, KEEPS_SERVERS } from './connections.ts';
import { LEADS_TO_SHELL, NOTES_BROWSER } from './fallback.ts';
import { errorReply, NO_REPLY } from './replies.ts';

const TOO_LATE = errorReply(504, 'deadline');
const WHO_SAYS = [1, 2, 3].map((number) => `req.hdr_val(X-Corelane-Deadlines,${number})`);

/** Until when, by the clock of this machine. Before the headers of nginx are taken away. */
export function notesDeadline({ msMax }: Deadlines): Lines {
  return [
    `http-request set-var(txn.wait_ms) int(${whole(msMax, 'deadline')})`,
    WHO_SAYS.map(
      (one) => `http-request set-var(txn.wait_ms) ${one} if { ${one} gt 0 } { ${one},sub(txn.wait_ms) lt 0 }`,
    ),
    '# From the first byte of the head on. nginx has both times with a dot before the milliseconds.',
    'http-request set-var(txn.took_ms) req.hdr(X-Corelane-Times,2),regsub([.],),add(0)',
    words(
      'http-request set-var(txn.until_ms) req.hdr(X-Corelane-Times,1),regsub([.],),sub(txn.took_ms),add(txn.wait_ms)',
      'if { req.hdr(X-Corelane-Deadlines) -m found }',
    ),
  ];
}

/**
 * For those that do not come by way of the stage (second tries, large bodies), or whose end nobody behind it notices.
 */
export const PASSES_DEADLINE =
  'http-request set-header X-Corelane-Until-Ms %[var(txn.until_ms)] if { var(txn.until_ms) -m found }';

/** Where the turn of a request comes: nobody waits for what would be rendered. */
export const OBSERVES_DEADLINE: Lines = [
  '# (hdr_val would keep 32 bits of it.)',
  words(
    'http-request set-var(txn.until_ms) req.hdr(X-Corelane-Until-Ms),add(0)',
    'if { req.hdr(X-Corelane-Until-Ms) -m found }',
  ),
  `http-request return ${TOO_LATE} if { var(txn.until_ms) -m found } { date(0,ms),sub(txn.until_ms) ge 0 }`,
];

/** For an entry point that does not hold this socket yet. */
export const TIMED_ENTRANCE = `presetenv CORELANE_TIMED unix@${TIMED_SOCKET}`;

/** The stage. To those behind it who gives up is a client that has gone. */
export function timedStage(deadlines: Deadlines, { fallback }: DataPlaneModel): Lines {
  return [
    '# Requests that say how long they are waited for. To the stages behind, one that gives up is a client that goes: it leaves the',
    '# queue, or its render goes on to its end.',
    section(
      'frontend timed',
      `bind "\${CORELANE_TIMED}" backlog 4096`,
      KEEPS_CLIENTS,
      `http-error ${TOO_LATE}`,
      NO_REPLY,
      notesDeadline(deadlines),
      'http-request set-var(txn.left_ms) date(0,ms),neg,add(txn.until_ms)',
      given(fallback, () => NOTES_BROWSER),
      `http-request return ${TOO_LATE} if { var(txn.left_ms) -m int lt ${whole(deadlines.msMin, 'deadline')} }`,
      given(fallback, () => LEADS_TO_SHELL),
      'default_backend timed',
    ),
    '',
    section(
      'backend timed',
      'option abortonclose',
      KEEPS_SERVERS,
      'http-request set-timeout server var(txn.left_ms)',
      '# What has begun in time may take its time.',
      `http-response set-timeout server ${ms(deadlines.msMax, 'deadline')}`,
      `server front unix@${RUN_MOUNT_PATH}/front.sock`,
    ),
  ];
}
