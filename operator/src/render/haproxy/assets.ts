/**
 * Files that another revision has: a pod of a rollout asks one for what its own image lacks. In the other direction a
 * peer's request goes to this pod's nginx, which has a server for it.
 */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { type Lines, section, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { whole } from '../safe.ts';
import { ONLY_PROVEN, withTicket } from './tickets.ts';

/** Fetched at a time, a few of a thousand connections that a peer takes. What has to wait for long goes to a worker. */
const FETCHED_MAX = 64;

/** Frontend and backend for nginx, and the backend for peers. */
export function otherRevisions({ assets, ports }: DataPlaneModel): Lines {
  return when(
    assets?.asksOtherRevisions,
    '# What nginx has not got may be there in a pod of another revision. 404 if there is none: nginx goes on.',
    section(
      'frontend other-revision',
      `bind unix@${RUN_MOUNT_PATH}/other-revision.sock mode 600 backlog 4096`,
      'http-request del-header X-Corelane- -m beg',
      'http-request lua.find_other_revision',
      'http-request return status 404 unless { var(txn.peer) -m found }',
      'http-response del-header X-Accel- -m beg',
      'default_backend other-revision',
    ),
    '',
    section(
      'backend other-revision',
      'option abortonclose',
      'timeout connect 200ms',
      'timeout queue 3s',
      'timeout server 3s',
      ONLY_PROVEN,
      'http-request set-dst var(txn.peer)',
      words(
        `server peer 0.0.0.0:${whole(ports.peers, 'port')} maxconn ${whole(FETCHED_MAX, 'files')}`,
        withTicket('%[var(txn.ticket)]'),
      ),
    ),
    '',
    section(
      'backend own-assets',
      'timeout server 3s',
      'http-request del-header X-Corelane- -m beg',
      // Counted by nginx.
      `server nginx 127.0.0.1:${whole(ports.assets, 'port')}`,
    ),
  );
}

/** In frontend `peers`: who comes with a ticket for a file. */
export const ADMITS_FOR_ASSET: Lines = [
  'acl for_asset var(txn.for_asset) -m bool',
  'http-request reject if for_asset !METH_GET !METH_HEAD',
];

/** In frontend `front`: nobody keeps a 404 of a file that another pod may have. */
export const KEEPS_NO_404: Lines = [
  '# A file with a hash in its name that is missing here: a bug, or a rollout.',
  'http-response set-header Cache-Control no-store if { status 404 } { var(txn.missing_asset) -m found }',
];
