/** What nginx sends to HAProxy, takes from it, and buffers on both ways. */
import { block, given, type Lines, when, words } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { ms, whole, word } from '../safe.ts';
import { TELLS_SERVED_AS } from './classes.ts';
import { TELLS_DEADLINES } from './deadlines.ts';
import { TELLS_BROWSER } from './fallback.ts';
import { TELLS_CLASS } from './priority.ts';
import { TELLS_STATE, TELLS_TRACE } from './tracing.ts';

/** What else nginx would do because a response says so. */
const IGNORED = ['Buffering', 'Charset', 'Expires', 'Limit-Rate'].map((name) => `X-Accel-${name}`);
const REDIRECT = 'X-Accel-Redirect';
/** What HAProxy tells nginx about a response, beside those headers. */
const TOLD = ['Queue-Ms', 'Render-Ms', 'Worker', 'Stuck', 'Pod', 'Connection', 'Stale', 'Vary'];
/** Takes away what is not for clients. In a location with one of its own all are needed. */
export const HIDES = TOLD.map((name) => `proxy_hide_header X-Corelane-${name};`);
/** Where nobody leads nginx anywhere. */
export const IGNORES_REDIRECTS = `${words('proxy_ignore_headers', ...IGNORED, REDIRECT)};`;

/** Connections to HAProxy are kept. Nothing but a WebSocket may leave HTTP. */
const UPGRADES_WEB_SOCKETS: Lines = [
  block('map $http_upgrade $corelane_connection', 'default "";', '~*^websocket$ upgrade;'),
  block('map $http_upgrade $corelane_upgrade', '~*^websocket$ websocket;'),
  'proxy_set_header Connection $corelane_connection;',
  'proxy_set_header Upgrade $corelane_upgrade;',
];

/** Headers, buffers and time limits of `proxy_pass`. */
export function proxy({
  assets,
  classes,
  cache,
  deadlines,
  fallback,
  heads,
  priority,
  response,
  streaming,
  timeouts,
  webSockets,
}: DataPlaneModel): Lines {
  const proxyTime = ms(timeouts.proxyMs, 'timeouts.render');
  return [
    'proxy_http_version 1.1;',
    when(webSockets, UPGRADES_WEB_SOCKETS),
    when(!webSockets, 'proxy_set_header Connection "";'),
    'proxy_set_header Host $corelane_host;',
    'proxy_set_header X-Request-ID $corelane_request_id;',
    TELLS_TRACE,
    TELLS_STATE,
    '# No client chooses this one: it names the request for HAProxy, in both tries.',
    'proxy_set_header X-Corelane-Request $request_id;',
    'proxy_set_header X-Forwarded-For $corelane_forwarded_for;',
    'proxy_set_header X-Forwarded-Proto $corelane_proto;',
    'proxy_set_header X-Forwarded-Host $corelane_forwarded_host;',
    'proxy_set_header X-Real-IP $remote_addr;',
    '# nginx does not read it, so nobody has looked at what it says.',
    'proxy_set_header Forwarded "";',
    '# HAProxy takes away the other headers of the kind.',
    'proxy_set_header X-Corelane-Untrusted $corelane_untrusted;',
    when(
      cache !== undefined,
      '# Why a request is rendered alone; empty for all others.',
      'proxy_set_header X-Corelane-Why $corelane_cache_why;',
    ),
    given(fallback, () => TELLS_BROWSER),
    given(priority, () => TELLS_CLASS),
    given(classes, () => TELLS_SERVED_AS),
    given(deadlines, () => TELLS_DEADLINES),
    when(assets !== undefined, 'proxy_set_header X-Corelane-Missing $corelane_missing;'),
    HIDES,
    '',
    '# Second line: HAProxy lets none of these pass.',
    fallback || cache ? `${words('proxy_ignore_headers', ...IGNORED)};` : IGNORES_REDIRECTS,
    '',
    '# HAProxy sees a request when all of its body is here, and gets rid of a response as fast as it can be written.',
    'proxy_request_buffering on;',
    'proxy_buffering on;',
    '# The largest head. Our module sees to it that nginx reads no more with a smaller one than into any other buffer.',
    `proxy_buffer_size ${whole(heads.bufferBytes, 'head')};`,
    `proxy_buffers ${whole(response.buffers, 'response buffers')} ${whole(response.bufferBytes, 'response buffer')};`,
    `proxy_busy_buffers_size ${whole(response.busyBytes, 'response busy buffers')};`,
    `proxy_temp_file_write_size ${whole(response.busyBytes, 'response file write size')};`,
    `proxy_max_temp_file_size ${whole(response.fileBytesMax, 'buffering.response.maxFileSize')};`,
    '# Our module: which of them go out as they come, and to disk only what a slow client does not take.',
    `corelane_streaming ${word(streaming.mode, 'streaming')};`,
    '',
    'proxy_connect_timeout 1s;',
    '# Longer than any wait in HAProxy: a large body is stuck half-way while its request queues.',
    `proxy_send_timeout ${proxyTime};`,
    `proxy_read_timeout ${proxyTime};`,
  ];
}
