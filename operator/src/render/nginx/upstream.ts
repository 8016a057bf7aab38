/** HAProxy, as nginx sees it: an entrance for requests, and one for those that got no answer. */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { block, type Lines } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { TIMED_SOCKET } from './deadlines.ts';

/** Idle connections to HAProxy. More than that are in use where many wait, and it does not matter then. */
const KEPT_MAX = 64;

/**
 * A request that got no answer is sent again, once. Whether a second worker has it, HAProxy decides, who knows what
 * became of the first.
 */
export const NEXT_UPSTREAM: Lines = [
  "# To HAProxy's entrance for second tries, whatever the method.",
  'proxy_next_upstream error non_idempotent;',
  'proxy_next_upstream_tries 2;',
];

/** Both entrances. */
export const UPSTREAM: Lines = [
  '# The second try has an entrance of its own: HAProxy answers it for those that no second worker may have, and holds the others until',
  '# no more workers die.',
  block(
    'upstream corelane',
    `server unix:${RUN_MOUNT_PATH}/front.sock max_fails=0;`,
    `server unix:${RUN_MOUNT_PATH}/replay.sock max_fails=0 backup;`,
    `keepalive ${KEPT_MAX};`,
  ),
];

/** The same for requests that say how long they are waited for. */
export const TIMED_UPSTREAM: Lines = [
  block(
    'upstream corelane_timed',
    `server unix:${TIMED_SOCKET} max_fails=0;`,
    `server unix:${RUN_MOUNT_PATH}/replay.sock max_fails=0 backup;`,
    `keepalive ${KEPT_MAX};`,
  ),
];

/** Where a request goes. */
export function toHaproxy({ deadlines }: DataPlaneModel): string {
  return `proxy_pass http://${deadlines ? '$corelane_upstream' : 'corelane'};`;
}
