/** The core of `http`: what a client may send, how long it may take, and where temporary files are. */
import type { Lines } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { ms, whole } from '../safe.ts';

/** Directives of `http` itself. */
export function http({ body, heads, limits, timeouts }: DataPlaneModel): Lines {
  return [
    'server_tokens off;',
    'absolute_redirect off;',
    'default_type application/octet-stream;',
    'reset_timedout_connection on;',
    '# nginx takes a buffer when a line does not fit into the one before. Our module looks at the whole head.',
    `large_client_header_buffers ${whole(heads.requestBuffers, 'buffers')} ${whole(heads.lineBytesMax, 'line')};`,
    `corelane_head_max ${whole(heads.bytesMax, 'buffering.maxHeaderSize')};`,
    '# Each line costs memory beside its bytes, and one of them may be three bytes.',
    `max_headers ${whole(limits.headerLines, 'header lines')};`,
    '# Names with "_", "." and the like reach the application. Our module looks at them.',
    'ignore_invalid_headers off;',
    '# What is on disk needs no memory on its way.',
    'sendfile on;',
    '# Our module leaves it to what lies whole in a file.',
    'tcp_nopush on;',
    '',
    '# The root file system is read-only.',
    'client_body_temp_path /tmp/client-body;',
    'proxy_temp_path /tmp/proxy;',
    'fastcgi_temp_path /tmp/fastcgi;',
    'uwsgi_temp_path /tmp/uwsgi;',
    'scgi_temp_path /tmp/scgi;',
    '',
    `client_header_timeout ${ms(timeouts.clientHeaderMs, 'timeouts.clientHeader')};`,
    `client_body_timeout ${ms(timeouts.clientBodyMs, 'timeouts.clientBody')};`,
    `send_timeout ${ms(timeouts.clientSendMs, 'timeouts.clientSend')};`,
    `keepalive_timeout ${ms(timeouts.clientIdleMs, 'keepAlive.idleTimeout')};`,
    'keepalive_requests 100000;',
    `client_max_body_size ${whole(body.sizeBytesMax, 'buffering.request.maxSize')};`,
    `client_body_buffer_size ${whole(body.memoryBytes, 'buffering.request.memory')};`,
  ];
}
