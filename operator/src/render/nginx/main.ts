/** Main context and `events`: limits of the process. */
import { block, type Lines, MADE_BY_CORELANE, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { ms, whole } from '../safe.ts';
import { BROTLI_MODULE } from './assets.ts';

/** The main context. */
export function main({ assets, drain }: DataPlaneModel): Lines {
  return [
    MADE_BY_CORELANE,
    '# One is enough, and our module counts for one.',
    'worker_processes 1;',
    'load_module /usr/share/corelane/nginx/ngx_http_corelane_module.so;',
    when(assets !== undefined, BROTLI_MODULE),
    `worker_shutdown_timeout ${ms(drain.timeoutMs, 'drain.timeout')};`,
    '# Maps are regular expressions. Where no memory may be made executable, nginx interprets them.',
    'pcre_jit on;',
    'pid /tmp/nginx.pid;',
    'error_log stderr warn;',
  ];
}

/** The block of connections. */
export function events({ limits }: DataPlaneModel): Lines {
  return block(
    'events',
    `worker_connections ${whole(limits.nginxConnections, 'connections')};`,
    '# Of a round: then our module looks how many half heads there are.',
    `epoll_events ${whole(limits.eventsAtOnce, 'events')};`,
  );
}
