/**
 * A canary: every pod decides for each request which side it is on, and gives it to a pod of that side
 * (docs/canary.md). What decides is Lua, because it follows a file (sidecar/haproxy/canary); while there is no canary
 * it is not asked.
 */
import { type Lines, section, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import type { Pooling } from '../model/pooling.ts';
import { ms, whole, word } from '../safe.ts';
import { CLIENT_SITE } from './client-network.ts';
import { REQUEST } from './connections.ts';
import { live } from './live.ts';
import { errorReply } from './replies.ts';
import { IS_RENDER } from './served-as.ts';
import { keepsRevision, NOTES_REVISION } from './stickiness.ts';
import { setsCookies, TAKES_COOKIES_OUT } from './sticky-cookies.ts';
import { ONLY_PROVEN, withTicket } from './tickets.ts';

/** For rules about the slots of this pod and their queue. */
export const STAYS_HERE = '!elsewhere';

/**
 * HAProxy takes 64 words in a line. A line for each of 128 ranges would make the configuration kilobytes larger
 * (size.test.ts).
 */
const RANGES_IN_LINE = 32;

function inLines(values: string[]): string[] {
  return Array.from({ length: Math.ceil(values.length / RANGES_IN_LINE) }, (_unused, line) =>
    values.slice(line * RANGES_IN_LINE, (line + 1) * RANGES_IN_LINE).join(' '),
  );
}

/** In frontend `front`, when it is known that the request may be rendered: by whom. */
export function choosesSide(model: DataPlaneModel): Lines {
  const { cache, classes, quarantine, trusted } = model;
  // Pages that nginx keeps would be of any revision, for all.
  const keeps = cache === undefined;
  return [
    when(keeps, keepsRevision(model)),
    '# While there is a canary: the side that the request is on, and a pod of that side if this one is not.',
    '# The address of a proxy is nobody in particular.',
    inLines(trusted.map((range) => word(range, 'forwarded.trust'))).map(
      (ranges) => `acl by_proxy req.hdr_ip(X-Real-IP) ${ranges}`,
    ),
    words(
      `http-request set-var(txn.canary_client) ${CLIENT_SITE} if { ${live('canary-revision')} -m found }`,
      trusted.length > 0 && '!by_proxy',
    ),
    words(
      `http-request lua.choose_side if { ${live('canary-revision')} -m found }`,
      keeps && '!kept',
      classes && IS_RENDER,
      quarantine && '!poison',
      '!{ req.hdr(Upgrade) -m found }',
    ),
    'acl elsewhere var(txn.side_server) -m found',
    when(keeps, NOTES_REVISION),
    TAKES_COOKIES_OUT,
    setsCookies(keeps),
    '# Of a second try that may not be rendered, it has not been asked on which side its first has been.',
    'http-after-response lua.count_lost_answer if { so_name replay } { var(txn.token) -m found }',
    'http-after-response lua.count_side_answer if { var(txn.judged) -m found } { status ge 200 }',
  ];
}

/** In frontend `front`, before the backends of requests that stay. */
export const USES_OTHER_SIDE = 'use_backend other-side if elsewhere';

/** In frontend `peers`: one that waits here because it is on this side, within the bounds of this queue. */
export function takesSide({ retryAfterSeconds }: DataPlaneModel): Lines {
  return [
    'acl for_side var(txn.for_side) -m bool',
    words(
      `http-request return ${errorReply(503, 'queue-full', retryAfterSeconds)}`,
      'if for_side !{ var(txn.slot_kept) -m bool } { queue(line),sub(txn.queue_max) ge 0 }',
    ),
  ];
}

/** In frontend `peers`. */
export const USES_LINE_FOR_SIDE = 'use_backend line if for_side';

/** In backend `line`: it must not travel on. */
export const STAYS_ON_SIDE = 'use-server slots if { var(txn.for_side) -m bool }';

/** The way to pods of the other side. */
export function otherSide({ sidePodsMax }: Pooling, { isSupervised, ports, timeouts }: DataPlaneModel): Lines {
  return [
    '# A pod of another revision has promised to take it. Each such pod has a server, so that Lua can close those of one that gives no sign',
    '# of life. What could not be connected is closed without a word: nginx sends it again, and nobody has begun it.',
    section(
      'backend other-side',
      'option abortonclose',
      '# A connection that is tried again stays with the server of its pod: by it Lua knows what to close.',
      'no option redispatch',
      `timeout server ${ms(timeouts.lineMs, 'timeouts.render')}`,
      'errorfile 503 /dev/null',
      ONLY_PROVEN,
      when(isSupervised, 'http-request lua.note_unbegun if { var(txn.only_once) -m bool }'),
      'http-request set-dst var(txn.peer)',
      'use-server %[var(txn.side_server)] if TRUE',
      words(
        `server-template side- 0-${whole(sidePodsMax - 1, 'pods')} 0.0.0.0:${whole(ports.peers, 'port')}`,
        withTicket(isSupervised ? '%[lua.corelane_side_ticket]' : '%[var(txn.ticket)]'),
        isSupervised && `pool-conn-name ${REQUEST},lua.corelane_sent_away`,
      ),
    ),
  ];
}
