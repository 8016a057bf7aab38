/**
 * Files that another revision has: a pod of a rollout asks one for what its own image lacks. In the other direction a
 * peer's request goes to this pod's nginx, which has a server for it.
 */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { type Lines, section, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { ASSETS_SOCKET } from '../nginx/assets.ts';
import { whole } from '../safe.ts';
import { CLIENT_NETWORK } from './client-network.ts';
import { ONLY_PROVEN, withTicket } from './tickets.ts';

/** Looked for by peers at a time. */
const LOOKED_FOR_MAX = 128;

/** Frontend and backend for nginx, and the backend for peers. */
export function otherRevisions({ assets, pooling, ports }: DataPlaneModel): Lines {
  return when(
    assets?.asksOtherRevisions,
    '# What nginx has not got may be there in a pod of another revision. 404 if there is none: nginx goes on.',
    section(
      'frontend other-revision',
      `bind unix@${RUN_MOUNT_PATH}/other-revision.sock mode 600 backlog 4096`,
      'http-request del-header X-Corelane- -m beg',
      `http-request set-var(txn.client) ${CLIENT_NETWORK}`,
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
        `server peer 0.0.0.0:${whole(ports.peers, 'port')} maxconn ${whole(pooling?.filesMax ?? 0, 'files')}`,
        withTicket('%[var(txn.ticket)]'),
      ),
    ),
    '',
    section(
      'backend own-assets',
      'timeout server 3s',
      'http-request del-header X-Corelane- -m beg',
      // Counted by nginx.
      `server nginx unix@${ASSETS_SOCKET}`,
    ),
    '',
    "# Whether a file is there, for a peer's question: nginx is asked for its first byte.",
    section(
      'backend has-file',
      'timeout connect 200ms',
      'timeout server 500ms',
      'retries 0',
      'http-request del-header X-Corelane- -m beg',
      'http-request set-header Range bytes=0-0',
      'http-response lua.answer_file',
      'http-response return status 200 content-type text/plain lf-string %[var(txn.answer)]',
      `server nginx unix@${ASSETS_SOCKET} maxconn ${whole(LOOKED_FOR_MAX, 'files')}`,
    ),
  );
}

/** In frontend `peers`: a question that nginx has to answer. No other rule of this frontend is about it. */
export const ALLOWS_FILE_QUESTION = 'http-request allow if { var(txn.wants_file) -m bool }';
export const USES_HAS_FILE = 'use_backend has-file if { var(txn.wants_file) -m bool }';

/** In frontend `peers`: who comes with a ticket for a file. */
export const ADMITS_FOR_ASSET: Lines = [
  'acl for_asset var(txn.for_asset) -m bool',
  'http-request reject if for_asset !METH_GET !METH_HEAD',
];

/** In frontend `front`: nobody keeps a 404 of a file that another pod may have. */
export const KEEPS_NO_404: Lines = [
  '# A file with a hash in its name that is missing here: a bug, or a rollout. Some applications answer 200 with a page.',
  words(
    'http-response set-header Cache-Control no-store if { var(txn.missing_asset) -m found }',
    '{ res.hdr(Content-Type) -m beg -i text/html }',
  ),
  'http-response set-header Cache-Control no-store if { status 404 } { var(txn.missing_asset) -m found }',
];
