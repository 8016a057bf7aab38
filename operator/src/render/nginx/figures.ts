/** The `server` on loopback: figures of requests, and the way to have pages rendered anew. */
import { block, type Lines, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { whole } from '../safe.ts';

const PURGES = ['= /purge', '^~ /purge/'];

/** The block. For HAProxy, which asks for the figures; purges are for a port-forward, and the application. */
export function figures({ cache, ports }: DataPlaneModel): Lines {
  return block(
    'server',
    `listen 127.0.0.1:${whole(ports.figures, 'port')} reuseport;`,
    'server_name _;',
    'access_log off;',
    'corelane_counts nothing;',
    'default_type text/plain;',
    block('location = /metrics', 'return 200 "$corelane_metrics";'),
    when(cache !== undefined, purges()),
    block('location /', 'return 404;'),
  );
}

function purges(): Lines {
  return [
    '# A header that no URL, and no form of a web page, can have sent.',
    PURGES.map((location) =>
      block(
        `location ${location}`,
        block('if ($http_x_corelane_purge = "")', 'return 403 "X-Corelane-Purge is missing\\n";'),
        block('if ($request_method != POST)', 'return 405;'),
        'return 200 "$corelane_cache_purge";',
      ),
    ),
  ];
}
