/**
 * One line per request, of bounded length. `escape=json` makes the values of a client harmless; our module leaves out
 * what nobody may read (docs/access-log.md).
 */
import { block, given, type Lines, section, when, words } from '../directives.ts';
import type { AccessLog } from '../model/access-log.ts';
import type { Cache } from '../model/cache.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { percent, word } from '../safe.ts';
import { LOGS_SERVED_AS } from './classes.ts';
import { LOGS_CLASS } from './priority.ts';

/** Directive for what is to be logged; a location with another log needs it as well. */
export function writesLines({ hasLines, sampledPercent }: AccessLog): Lines {
  const isSampled = sampledPercent !== undefined;
  return (
    hasLines &&
    `${words('access_log /dev/stdout corelane buffer=32k flush=100ms', isSampled && 'if=$corelane_logged')};`
  );
}

/** $corelane_log_percent, by which a line counts, and $corelane_logged. */
function sampled(share: number): Lines {
  const some = share > 0 ? percent(share, 'accessLog.samplingPercent') : undefined;
  return [
    given(some, (percentage) => [
      "# By nginx' own id: with one of its choice a client could keep its requests out of the log.",
      block('split_clients $request_id $corelane_sampled', `${percentage} 1;`, '* 0;'),
    ]),
    '# What has failed is always logged.',
    block(
      'map "$sent_http_x_corelane_error|$status" $corelane_log_percent',
      `default ${some?.replace('%', '') ?? 0};`,
      '"~^[^|]|[|]5" 100;',
    ),
    block(`map "${some ? '$corelane_sampled' : ''}|$corelane_log_percent" $corelane_logged`, '"~^1|[|]100$" 1;'),
  ];
}

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

/** What both logs have of a request, the maps, and the line. */
export function logging(model: DataPlaneModel): Lines {
  const { accessLog, cache } = model;
  return [
    '# Our module: how much the logs have of queries and addresses.',
    `corelane_log_query ${word(accessLog.query, 'accessLog.query')};`,
    `corelane_log_client ${word(accessLog.client, 'accessLog.clientAddress')};`,
    '# For the metrics and spans, too.',
    given(cache, cacheResult),
    accessLog.hasLines ? lines(model) : 'access_log off;',
  ];
}

function lines({ accessLog, cache, classes, priority }: DataPlaneModel): Lines {
  return [
    ofHaproxy(cache !== undefined),
    given(accessLog.sampledPercent, sampled),
    section(
      `log_format corelane escape=json '{"time":"$time_iso8601",'`,
      `'"requestId":"$corelane_request_id",'`,
      given(accessLog.sampledPercent, () => `'"samplingPercent":$corelane_log_percent,'`),
      `'"client":"$corelane_log_client",'`,
      `'"proxy":"$corelane_log_proxy",'`,
      `'"method":"$corelane_method",'`,
      `'"uri":"$corelane_log_uri",'`,
      `'"status":$status,'`,
      `'"error":"$sent_http_x_corelane_error",'`,
      `'"stuckIn":"$upstream_http_x_corelane_stuck",'`,
      `'"removedHeaders":"$corelane_removed_headers",'`,
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
    writesLines(accessLog),
  ];
}
