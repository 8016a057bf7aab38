/**
 * Errors that nginx makes itself, and says so in X-Corelane-Error; those of HAProxy and of applications pass through.
 */
import { block, given, type Lines, when } from '../directives.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { whole } from '../safe.ts';
import { CACHE_PAGE } from './cache.ts';
import { leadsToShell, type Refusal, shellPage } from './fallback.ts';
import { requestLimits } from './limits.ts';

/**
 * Locations for requests that nginx refuses by itself. nginx may not know the URL yet, and a named location needs one.
 * No client can ask for these locations, because nginx merges slashes.
 */
const NOT_READ: Record<Refusal, string> = { 400: '//corelane-400', 431: '//corelane-431' };

const BODY_TOO_LARGE = 'error_page 413 @corelane_413;';
const EVICTED = 'error_page 417 = @corelane_evicted;';
/** What may happen to a body in a location with an error_page of its own: a worker must not get a part of one. */
export const BODY_ERRORS: Lines = [BODY_TOO_LARGE, EVICTED, `error_page 400 = ${NOT_READ[400]};`];
/** 412: If-Match or If-Unmodified-Since does not hold for a file. 416: the range begins behind its end. */
export const FILE_ERRORS: Lines = ['error_page 412 @corelane_412;', 'error_page 416 @corelane_416;'];

/** Which status leads to which location. 417 to 425 are never sent: they stand for what nginx has no status for. */
export function errorPages(model: DataPlaneModel): Lines {
  return [
    '# 408 is missing: nginx closes the connection of a client that is too slow, and logs 408.',
    '# All of them here: a location with an error_page of its own would not have the others.',
    BODY_TOO_LARGE,
    'error_page 502 @corelane_502;',
    'error_page 504 @corelane_504;',
    '# What nginx refuses by itself: it may not know a URL yet, and a named location needs one.',
    `error_page 400 405 501 505 = ${NOT_READ[400]};`,
    `error_page 414 494 = ${NOT_READ[431]};`,
    '# 419 stands for "bad request", 422 for "head too large". With "=" alone nginx would send "100 Continue" first.',
    'error_page 419 =400 @corelane_400;',
    'error_page 422 =431 @corelane_431;',
    block('if ($corelane_bad_request)', 'return 419;'),
    '# 420 stands for "full": clients come back.',
    requestLimits(model),
    'error_page 420 = @corelane_full;',
    '# 417 stands for "evicted": of a request of whose body nginx has waited.',
    EVICTED,
    '# 418 stands for "draining"; an error page keeps method and body.',
    'error_page 418 = @corelane_draining;',
    given(model.fallback, shellPage),
    given(model.cache, () => CACHE_PAGE),
    when(
      model.assets !== undefined,
      '# A file that nginx may not read is none.',
      'error_page 403 = @corelane_page;',
      'error_page 404 = @corelane_404;',
      FILE_ERRORS,
    ),
    'recursive_error_pages on;',
  ];
}

const FILE_REASONS: [status: number, reason: string, ...further: Lines[]][] = [
  [404, 'asset-not-found'],
  // A filter of nginx says so, and nginx closes the connection after that: the answer has to say it, too.
  [412, 'precondition-failed', 'keepalive_timeout 0;'],
  // This answer replaces the one of a pod of another revision, which had the length in this header.
  [416, 'range-not-satisfiable', 'add_header Content-Range $upstream_http_content_range always;'],
];

function fileError(status: number, reason: string, ...further: Lines[]): string[] {
  const notKept = 'add_header Cache-Control no-store always;';
  return errorLocation(String(status), status, reason, notKept, 'corelane_counts requests;', ...further);
}

/** The locations, each of which is a paragraph. */
export function errorLocations({ assets, fallback, retryAfterSeconds }: DataPlaneModel): Lines[] {
  const retry = `add_header Retry-After ${whole(retryAfterSeconds, 'Retry-After')} always;`;
  const shell = (reason: string) => given(fallback, () => leadsToShell(reason));
  const refusal = (status: Refusal, reason: string, code: number) => [
    block(`location = ${NOT_READ[status]}`, `return ${code};`),
    errorLocation(
      String(status),
      status,
      reason,
      given(fallback, () => leadsToShell(reason, status)),
    ),
  ];
  return [
    ...refusal(400, 'bad-request', 419),
    ...refusal(431, 'head-too-large', 422),
    errorLocation(
      'full',
      503,
      '$corelane_full',
      retry,
      // One that has too much itself is told so by the status.
      block('if ($corelane_full = client-limit)', `return 429 '{"error":"client-limit"}';`),
      shell('$corelane_full'),
    ),
    errorLocation('evicted', 503, 'body-too-slow', retry, '# Its place is free at once.', 'lingering_close off;'),
    ...(assets ? FILE_REASONS.map((one) => fileError(...one)) : []),
    errorLocation('413', 413, 'body-too-large'),
    errorLocation('502', 502, '$corelane_bad_gateway', shell('$corelane_bad_gateway')),
    errorLocation('504', 504, 'proxy-timeout', shell('proxy-timeout')),
  ];
}

function errorLocation(name: string, status: number, reason: string, ...further: Lines[]): string[] {
  return block(
    `location @corelane_${name}`,
    'default_type application/json;',
    `add_header X-Corelane-Error ${reason} always;`,
    further,
    `return ${status} '{"error":"${reason}"}';`,
  );
}
