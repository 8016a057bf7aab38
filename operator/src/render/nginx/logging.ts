/** One line per request, of bounded length; `escape=json` makes every value of a client harmless that is ASCII. */
import { block, given, type Lines, section, when } from '../directives.ts';
import type { Cache } from '../model/cache.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { LOGS_SERVED_AS } from './classes.ts';
import { LOGS_CLASS } from './priority.ts';

/** Directive for what is to be logged. */
export const ACCESS_LOG = 'access_log /dev/stdout corelane buffer=32k flush=100ms;';

/** Maps that bound what a client can put into a line. */
const BOUNDS: Lines = [
  '# Bytes beyond ASCII are encoded by now, but for those of a request that is none. A terminal obeys some of them.',
  block('map $request_uri $corelane_log_uri', '"~^(?<corelane_uri_head>[ -~]{0,512})" $corelane_uri_head;'),
];

/** @param isKept whether it may stand in a page that was rendered for another request */
function ofHaproxy(isKept: boolean): Lines {
  return [
    said('worker', 'worker-[0-9]+', isKept),
    '# Empty: this one. Else the peer whose worker it was.',
    said('pod', '[a-z0-9.-]{1,253}', isKept),
    said('queue_ms', '[0-9]+', isKept, 'default null;'),
    said('render_ms', '[0-9]+', isKept, 'default null;'),
  ];
}

function said(what: string, pattern: string, isKept: boolean, unknown?: string): Lines {
  const header = `$upstream_http_x_corelane_${what}`;
  return block(
    `map ${isKept ? `"$upstream_cache_status|${header}"` : header} $corelane_log_${what}`,
    unknown,
    `"~^${isKept ? `(?:(?!HIT|STALE|UPDATING)[A-Z]*)\\|` : ''}${pattern}$" ${header};`,
  );
}

/** What the cache had to do with it; empty: nothing. */
function cacheResult({ isShared }: Cache): Lines {
  const found = `$upstream_cache_status${isShared ? '$upstream_http_x_corelane_shared' : ''}`;
  const kept = isShared ? '1?' : '';
  return block(
    `map "$corelane_cacheable$corelane_cache_alone|$corelane_bypass|$corelane_cache_round|${found}" $corelane_cache_result`,
    '"~^1?pass" pass;',
    `"~^1\\|\\|[01]*1[01]*\\|HIT${kept}$" waited;`,
    `"~^1\\|\\|0*\\|HIT${kept}$" hit;`,
    when(isShared, '"~^1\\|\\|[01]*\\|(?:MISS|EXPIRED)1$" shared;'),
    '"~^1\\|\\|[01]*\\|MISS$" miss;',
    '"~^1\\|\\|[01]*\\|EXPIRED$" expired;',
    `"~^1\\|\\|[01]*\\|STALE${kept}$" stale;`,
    `"~^1\\|\\|[01]*\\|UPDATING${kept}$" stale;`,
    '"~^\\|[a-z]" bypass;',
  );
}

/** The maps, and the line. */
export function logging({ cache, classes, priority }: DataPlaneModel): Lines {
  return [
    BOUNDS,
    ofHaproxy(cache !== undefined),
    given(cache, cacheResult),
    section(
      `log_format corelane escape=json '{"time":"$time_iso8601",'`,
      `'"requestId":"$corelane_request_id",'`,
      `'"client":"$remote_addr",'`,
      `'"proxy":"$realip_remote_addr",'`,
      `'"method":"$request_method",'`,
      `'"uri":"$corelane_log_uri",'`,
      `'"status":$status,'`,
      `'"error":"$sent_http_x_corelane_error",'`,
      `'"stuckIn":"$upstream_http_x_corelane_stuck",'`,
      given(priority, () => LOGS_CLASS),
      given(classes, () => LOGS_SERVED_AS),
      given(cache, () => `'"cache":"$corelane_cache_result",'`),
      `'"worker":"$corelane_log_worker",'`,
      `'"pod":"$corelane_log_pod",'`,
      `'"queueMs":$corelane_log_queue_ms,'`,
      `'"renderMs":$corelane_log_render_ms,'`,
      `'"firstByteMs":$corelane_first_byte_ms,'`,
      `'"totalSeconds":$corelane_total_seconds,'`,
      `'"bytesReceived":$request_length,'`,
      `'"bytesSent":$bytes_sent,'`,
      `'"tries":"$upstream_status",'`,
      `'"traceparent":"$corelane_traceparent",'`,
      // Named as OpenTelemetry has it for logs in JSON, so that collectors find it.
      `'"trace_id":"$corelane_trace_id"}';`,
    ),
    '# Lines go out together: one at a time costs the container runtime (Docker) as much CPU as nginx takes for the request.',
    '# A stop writes what is there; a kill -9 loses the lines of the last 0.1 s.',
    ACCESS_LOG,
  ];
}
