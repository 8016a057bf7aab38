/** The `server` on loopback: figures of requests, and purges of the cache. */
import { RUN_MOUNT_PATH } from '../../api/names.ts';
import { block, type Lines, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { whole } from '../safe.ts';

/** Socket of HAProxy for purges in all pods. */
export const PURGE_SOCKET = `${RUN_MOUNT_PATH}/purge.sock`;

const FORWARDS_PURGE: Lines = [
  'proxy_set_header Connection "";',
  'proxy_set_header X-Corelane-Purge $http_x_corelane_purge;',
  `proxy_pass http://unix:${PURGE_SOCKET};`,
];

/** The block. HAProxy reads the figures. HAProxy, the application and `corelane cache purge` purge. */
export function figures({ cache, ports }: DataPlaneModel): Lines {
  return block(
    'server',
    `listen 127.0.0.1:${whole(ports.figures, 'port')};`,
    'server_name _;',
    'access_log off;',
    'corelane_counts inside;',
    'default_type text/plain;',
    block('location = /metrics', 'return 200 "$corelane_metrics";'),
    when(
      cache !== undefined,
      '# All pods: HAProxy purges the pages of this pod, and sends the purge to the others.',
      purges('= /purge', FORWARDS_PURGE),
      '# This pod only.',
      purges('= /purge-pod', 'return 200 "$corelane_cache_purge";'),
    ),
    block('location /', 'return 404;'),
  );
}

function purges(location: string, action: Lines): Lines {
  return block(
    `location ${location}`,
    '# A URL or an HTML form cannot send this header.',
    block('if ($http_x_corelane_purge = "")', 'return 403 "X-Corelane-Purge is missing\\n";'),
    block('if ($request_method != POST)', 'return 405;'),
    action,
  );
}
