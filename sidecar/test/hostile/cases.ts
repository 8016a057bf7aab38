/**
 * Hostile bytes, and what must come of them. Each case says to whom it goes, from where, and how it may be answered;
 * what must hold after all of them (nobody's request is mistaken for another one's, no worker has two, nothing ends) is
 * `HostileFleet.broken` (fleet.ts).
 *
 * In a target the id says what it is: `outer-...` may be rendered, `smuggled-...` never.
 */
import { PORTS } from '../../../operator/src/api/names.ts';

export interface HostileCase {
  /** Unique, and a file name. */
  name: string;
  /** What is tried. */
  group: string;
  port: number;
  /**
   * A neighbour is another pod of the network; inside is a process of the same pod, as an SSRF of the application would
   * be.
   */
  from: 'neighbour' | 'inside';
  /** Bytes as Latin-1, and pauses between them in milliseconds. */
  parts: (string | number)[];
  /**
   * The statuses of all answers, separated by blanks; '' is a connection that ends or stays silent without an answer.
   */
  answers: RegExp;
  /** What no answer may contain. */
  never?: RegExp;
}

/** No answer, or errors only, and the first one ends it. */
const REFUSED = /^([45]\d\d)?$/;
/** Served once. What follows, if anything, is not taken for a request. */
const ONCE = /^200$/;
const TWICE = /^200 200$/;
/** Served; what follows on the connection is no request: no method begins with its first byte, or no target does. */
const SERVED_THEN_REFUSED = /^200 400$/;
/** nginx sees the head as a bad request. */
const BAD_REQUEST = /^400$/;
/** A rule of ours: ports that are not for clients answer GET and HEAD only (render/haproxy/door.ts). */
const REFUSED_BY_RULE = /^405$/;
/** The head takes longer than `timeout http-request` of the same file, or its rest never comes. */
const TOO_LATE = /^408$/;
/** nginx sends 100 before it reads a body, and also where there is none to read. */
const CONTINUED = /^100 200$/;
/** It must be said that it is refused. */
const TOLD = /^[45]\d\d$/;
/** Port 9001 says nothing without the key of the peers; the supervisor's ends what is no head of a request. */
const SILENCE = /^$/;

const CRLF = '\r\n';
const lines = (...all: string[]) => all.join(CRLF);
/** A head: request line, Host, and what else. */
const head = (line: string, ...more: string[]) => `${lines(line, 'Host: shop.example', ...more)}${CRLF}${CRLF}`;
export const get = (id: string, ...more: string[]) => head(`GET /?id=${id} HTTP/1.1`, ...more);
const post = (id: string, ...more: string[]) => head(`POST /?id=${id} HTTP/1.1`, ...more);
const smuggled = (id: string) => get(`smuggled-${id}`);

type Row = [name: string, answers: RegExp, ...parts: (string | number)[]];

export function group(name: string, port: number, rows: Row[], from: HostileCase['from'] = 'neighbour'): HostileCase[] {
  return rows.map(([what, answers, ...parts]) => ({ name: what, group: name, port, from, parts, answers }));
}

const CHUNKED = 'Transfer-Encoding: chunked';
const CLOSE = 'Connection: close';
const LAST = `0${CRLF}${CRLF}`;

/** A body of which one stage would see an end that the other one does not. */
const lengths = group('lengths of a body', PORTS.http, [
  ['cl-te', REFUSED, `${post('outer-cl-te', 'Content-Length: 6', CHUNKED)}${LAST}G`, smuggled('cl-te')],
  ['cl-te-with-request', REFUSED, post('outer-cl-te-2', 'Content-Length: 60', CHUNKED) + LAST + smuggled('cl-te-2')],
  ['te-cl', REFUSED, `${post('outer-te-cl', CHUNKED, 'Content-Length: 4')}5c${CRLF}${smuggled('te-cl')}${LAST}`],
  [
    'te-te-identity',
    REFUSED,
    post('outer-te-te-1', CHUNKED, 'Transfer-Encoding: identity') + LAST + smuggled('te-te-1'),
  ],
  ['te-te-cow', REFUSED, post('outer-te-te-2', CHUNKED, 'Transfer-Encoding: cow') + LAST + smuggled('te-te-2')],
  ['te-twice', REFUSED, post('outer-te-te-3', CHUNKED, CHUNKED) + LAST + smuggled('te-te-3')],
  ['te-xchunked', REFUSED, post('outer-te-4', 'Transfer-Encoding: xchunked') + LAST + smuggled('te-4')],
  [
    'te-space-before-colon',
    REFUSED,
    post('outer-te-5', 'Transfer-Encoding : chunked', 'Content-Length: 5') + LAST + smuggled('te-5'),
  ],
  ['te-tab', TOLD, `${post('outer-te-6', 'Transfer-Encoding:\tchunked', CLOSE)}${LAST}`],
  ['te-vertical-tab', REFUSED, post('outer-te-7', 'Transfer-Encoding:\x0bchunked') + LAST + smuggled('te-7')],
  ['te-quoted', REFUSED, post('outer-te-8', 'Transfer-Encoding: "chunked"') + LAST + smuggled('te-8')],
  ['te-list', REFUSED, post('outer-te-9', 'Transfer-Encoding: gzip, chunked') + LAST],
  [
    'te-chunked-then-identity',
    REFUSED,
    post('outer-te-10', 'Transfer-Encoding: chunked, identity') + LAST + smuggled('te-10'),
  ],
  ['te-upper-case', ONCE, post('outer-te-11', 'TRANSFER-ENCODING: CHUNKED', CLOSE) + LAST],
  [
    'te-obs-fold',
    REFUSED,
    post('outer-te-12', 'Transfer-Encoding:', ' chunked', 'Content-Length: 5') + LAST + smuggled('te-12'),
  ],
  [
    'te-in-value-of-other',
    TOLD,
    post('outer-te-13', 'X: a\nTransfer-Encoding: chunked', 'Content-Length: 5', CLOSE) + LAST,
  ],
  [
    'te-after-cr',
    REFUSED,
    post('outer-te-14', 'X: a\rTransfer-Encoding: chunked', 'Content-Length: 5') + LAST + smuggled('te-14'),
  ],
  ['te-after-nul', REFUSED, post('outer-te-15', 'X: a\0', CHUNKED, 'Content-Length: 5') + LAST + smuggled('te-15')],
  ['te-http-1.0', REFUSED, head('POST /?id=outer-te-16 HTTP/1.0', CHUNKED) + LAST + smuggled('te-16')],
  ['te-on-get', ONCE, get('outer-te-17', CHUNKED, CLOSE) + LAST],
  ['te-empty', REFUSED, post('outer-te-18', 'Transfer-Encoding:', 'Content-Length: 5') + LAST + smuggled('te-18')],
  ['cl-twice-different', REFUSED, post('outer-cl-1', 'Content-Length: 0', 'Content-Length: 44') + smuggled('cl-1')],
  ['cl-twice-same', REFUSED, `${post('outer-cl-2', 'Content-Length: 1', 'Content-Length: 1')}x`],
  ['cl-list', REFUSED, `${post('outer-cl-3', 'Content-Length: 1, 1')}x`],
  ['cl-negative', REFUSED, post('outer-cl-4', 'Content-Length: -1') + smuggled('cl-4')],
  ['cl-plus', REFUSED, `${post('outer-cl-5', 'Content-Length: +1')}x`],
  ['cl-hex', REFUSED, `${post('outer-cl-6', 'Content-Length: 0x1')}x`],
  ['cl-huge', REFUSED, post('outer-cl-7', `Content-Length: ${'9'.repeat(40)}`)],
  ['cl-2^64', REFUSED, post('outer-cl-8', 'Content-Length: 18446744073709551616') + smuggled('cl-8')],
  ['cl-2^63', REFUSED, post('outer-cl-9', 'Content-Length: 9223372036854775808') + smuggled('cl-9')],
  ['cl-2^32', REFUSED, post('outer-cl-10', 'Content-Length: 4294967296') + smuggled('cl-10')],
  ['cl-empty', REFUSED, post('outer-cl-11', 'Content-Length:') + smuggled('cl-11')],
  ['cl-space-inside', REFUSED, `${post('outer-cl-12', 'Content-Length: 1 1')}x`],
  ['cl-space-before-colon', REFUSED, post('outer-cl-13', 'Content-Length : 44') + smuggled('cl-13')],
  ['cl-leading-zeros', ONCE, `${post('outer-cl-14', 'Content-Length: 0000000001', CLOSE)}x`],
  ['cl-obs-fold', REFUSED, post('outer-cl-15', 'Content-Length: 0', ' 44') + smuggled('cl-15')],
  ['cl-underscore', ONCE, post('outer-cl-16', 'Content_Length: 44', 'Content-Length: 0', CLOSE)],
  ['cl-dot', ONCE, post('outer-cl-25', 'Content.Length: 44', 'Content-Length: 0', CLOSE)],
  ['te-underscore', ONCE, post('outer-cl-26', 'Transfer_Encoding: chunked', 'Content-Length: 0', CLOSE)],
  ['cl-on-get', ONCE, `${get('outer-cl-17', 'Content-Length: 5', CLOSE)}hello`],
  ['cl-body-missing', SILENCE, post('outer-cl-18', 'Content-Length: 10')],
  ['cl-body-half-then-end', REFUSED, `${post('outer-cl-19', 'Content-Length: 10')}12345`],
  ['cl-float', REFUSED, `${post('outer-cl-20', 'Content-Length: 1.0')}x`],
  ['cl-0-with-body', SERVED_THEN_REFUSED, `${post('outer-cl-21', 'Content-Length: 0')}x=1${CRLF}`],
  ['no-length-with-body', SERVED_THEN_REFUSED, `${post('outer-cl-22')}x=1&y=2${CRLF}`],
  ['cl-nul', REFUSED, post('outer-cl-23', 'Content-Length: 5\0') + LAST],
  ['cl-tab-inside', REFUSED, post('outer-cl-24', 'Content-Length: 1\t0') + smuggled('cl-24')],
]);

const chunk = (size: string, data: string) => `${size}${CRLF}${data}${CRLF}`;
/**
 * nginx 1.26 takes some of these: then all that follows is a request of the same client, which nobody else is harmed
 * by.
 */
const chunks = group('chunks', PORTS.http, [
  ['chunk-valid', ONCE, post('outer-ch-1', CHUNKED, CLOSE) + chunk('5', 'hello') + LAST],
  ['chunk-extension', ONCE, post('outer-ch-2', CHUNKED, CLOSE) + chunk('5;a=b', 'hello') + LAST],
  ['chunk-extension-quoted', TOLD, post('outer-ch-3', CHUNKED, CLOSE) + chunk('5;a="\r\n0\r\n\r\n"', 'hello') + LAST],
  ['chunk-extension-bare-lf', ONCE, `${post('outer-ch-4', CHUNKED, CLOSE)}0;\n\r\n${LAST}`],
  ['chunk-extension-long', ONCE, post('outer-ch-5', CHUNKED, CLOSE) + chunk(`5;${'a'.repeat(20_000)}`, 'hello') + LAST],
  ['chunk-bare-lf', ONCE, `${post('outer-ch-6', CHUNKED, CLOSE)}5\nhello\n0\n\n`],
  ['chunk-bare-cr', REFUSED, `${post('outer-ch-7', CHUNKED)}5\rhello\r0\r\r`],
  ['chunk-size-negative', REFUSED, post('outer-ch-8', CHUNKED) + chunk('-5', 'hello') + LAST],
  ['chunk-size-hex-prefix', REFUSED, post('outer-ch-9', CHUNKED) + chunk('0x5', 'hello') + LAST],
  ['chunk-size-plus', REFUSED, post('outer-ch-10', CHUNKED) + chunk('+5', 'hello') + LAST],
  ['chunk-size-huge', REFUSED, post('outer-ch-11', CHUNKED) + chunk('f'.repeat(17), 'hello') + LAST],
  ['chunk-size-2^64-wraps', REFUSED, post('outer-ch-12', CHUNKED) + chunk('10000000000000005', 'hello') + LAST],
  ['chunk-size-2^63', REFUSED, post('outer-ch-13', CHUNKED) + chunk('7fffffffffffffff', 'hello') + LAST],
  ['chunk-size-spaces', ONCE, post('outer-ch-14', CHUNKED, CLOSE) + chunk('5 ', 'hello') + LAST],
  ['chunk-size-empty', REFUSED, post('outer-ch-15', CHUNKED) + chunk('', 'hello') + LAST],
  ['chunk-size-letters', REFUSED, post('outer-ch-16', CHUNKED) + chunk('zz', 'hello') + LAST],
  ['chunk-size-underscore', REFUSED, post('outer-ch-17', CHUNKED) + chunk('1_0', 'hello') + LAST],
  ['chunk-longer-than-size', REFUSED, post('outer-ch-18', CHUNKED) + chunk('3', 'hello') + LAST + smuggled('ch-18')],
  ['chunk-no-end', SILENCE, post('outer-ch-19', CHUNKED) + chunk('5', 'hello')],
  ['chunk-leading-zeros', ONCE, post('outer-ch-20', CHUNKED, CLOSE) + chunk('0000000000005', 'hello') + LAST],
  ['chunk-many-zeros', ONCE, post('outer-ch-21', CHUNKED, CLOSE) + chunk(`${'0'.repeat(20_000)}5`, 'hello') + LAST],
  ['chunk-of-one-byte', ONCE, post('outer-ch-22', CHUNKED, CLOSE) + chunk('1', 'x').repeat(500) + LAST],
  ['chunk-beyond-limit', /^413/, post('outer-ch-23', CHUNKED) + chunk('a00000', 'x'.repeat(1000))],
  ['trailers', ONCE, `${post('outer-ch-24', CHUNKED, CLOSE)}0${CRLF}X-Trailer: a${CRLF}${CRLF}`],
  ['trailer-content-length', ONCE, `${post('outer-ch-25', CHUNKED, CLOSE)}0${CRLF}Content-Length: 50${CRLF}${CRLF}`],
  ['trailer-transfer-encoding', ONCE, `${post('outer-ch-26', CHUNKED, CLOSE)}0${CRLF}${CHUNKED}${CRLF}${CRLF}`],
  ['trailer-host', ONCE, `${post('outer-ch-27', CHUNKED, CLOSE)}0${CRLF}Host: evil${CRLF}${CRLF}`],
  ['trailer-without-end', SILENCE, `${post('outer-ch-28', CHUNKED)}0${CRLF}X: ${'a'.repeat(100)}`],
  ['trailer-long', ONCE, `${post('outer-ch-29', CHUNKED, CLOSE)}0${CRLF}X: ${'a'.repeat(70_000)}${CRLF}${CRLF}`],
  ['trailer-corelane', ONCE, `${post('outer-ch-30', CHUNKED, CLOSE)}0${CRLF}X-Corelane-Waits: 9${CRLF}${CRLF}`],
  ['chunk-nul-in-size', REFUSED, post('outer-ch-31', CHUNKED) + chunk('5\0', 'hello') + LAST],
  [
    'chunk-pause-in-size',
    ONCE,
    post('outer-ch-32', CHUNKED, CLOSE),
    '0',
    100,
    '5',
    100,
    `${CRLF}hello${CRLF}`,
    100,
    LAST,
  ],
  ['chunk-lf-then-request', ONCE, `${post('outer-ch-33', CHUNKED)}0\n\n`],
]);

/** Where a line, a header or a head ends, and what may stand in it. */
const heads = group('heads', PORTS.http, [
  ['bare-lf', ONCE, `GET /?id=outer-h-1 HTTP/1.1\nHost: a\nConnection: close\n\n`],
  ['bare-cr', REFUSED, `GET /?id=outer-h-2 HTTP/1.1\rHost: a\r\r`],
  ['obs-fold', TOLD, get('outer-h-3', 'X-Folded: a', ' b', CLOSE)],
  ['obs-fold-host', REFUSED, lines('GET /?id=outer-h-4 HTTP/1.1', ' Host: a', '', '')],
  ['nul-in-name', REFUSED, get('outer-h-5', 'X-\0: a')],
  ['nul-in-value', REFUSED, get('outer-h-6', 'X: a\0b')],
  ['nul-in-target', REFUSED, head('GET /?id=outer-h-7\0 HTTP/1.1')],
  ['space-before-colon', TOLD, get('outer-h-8', 'X-Space : a', CLOSE)],
  ['no-colon', ONCE, get('outer-h-9', 'XNoColon', CLOSE)],
  ['empty-name', TOLD, get('outer-h-10', ': a', CLOSE)],
  ['name-with-blank', TOLD, get('outer-h-11', 'X Y: a', CLOSE)],
  ['non-ascii-name', TOLD, get('smuggled-h-12', 'X-\xe4: a', CLOSE)],
  ['name-that-is-no-token', TOLD, get('smuggled-h-45', 'X(Y): a', CLOSE)],
  ['name-255', ONCE, get('outer-h-46', `${'a'.repeat(255)}: a`, CLOSE)],
  ['name-256', TOLD, get('smuggled-h-47', `${'a'.repeat(256)}: a`, CLOSE)],
  ['names-of-all-tokens', ONCE, get('outer-h-48', "a!#$%&'*+.^_`|~9: a", '_: a', '.: a', CLOSE)],
  ['names-odd-200', ONCE, get('outer-h-49', ...Array.from({ length: 200 }, (_unused, n) => `X_${n}: a`), CLOSE)],
  ['non-ascii-value', ONCE, get('outer-h-13', 'X: \xe4\xff', CLOSE)],
  ['control-in-value', TOLD, get('outer-h-14', 'X: \x01\x1b[31m', CLOSE)],
  ['101-headers', ONCE, get('outer-h-15', ...Array.from({ length: 101 }, (_unused, n) => `X-${n}: a`), CLOSE)],
  ['200-headers', ONCE, get('outer-h-43', ...Array.from({ length: 200 }, (_unused, n) => `X-${n}: a`), CLOSE)],
  ['5000-headers-of-one-byte', REFUSED, get('outer-h-44', ...Array.from({ length: 5_000 }, () => 'a:'))],
  ['300-headers', REFUSED, get('outer-h-16', ...Array.from({ length: 300 }, (_unused, n) => `X-${n}: a`), CLOSE)],
  ['header-32k', ONCE, get('outer-h-17', `X: ${'a'.repeat(32_000)}`, CLOSE)],
  ['header-40k', REFUSED, get('outer-h-18', `X: ${'a'.repeat(40_000)}`)],
  [
    'headers-60k',
    ONCE,
    get('outer-h-19', ...Array.from({ length: 12 }, (_unused, n) => `X-${n}: ${'a'.repeat(5_000)}`), CLOSE),
  ],
  [
    'headers-70k',
    REFUSED,
    get('outer-h-50', ...Array.from({ length: 14 }, (_unused, n) => `X-${n}: ${'a'.repeat(5_000)}`)),
  ],
  ['name-8k', REFUSED, get('outer-h-20', `${'a'.repeat(9_000)}: a`)],
  ['target-40k', REFUSED, head(`GET /?id=outer-h-21&q=${'a'.repeat(40_000)} HTTP/1.1`)],
  ['target-30k', ONCE, head(`GET /?id=outer-h-22&q=${'a'.repeat(30_000)} HTTP/1.1`, CLOSE)],
  ['empty-lines-before', ONCE, CRLF + CRLF + get('outer-h-23', CLOSE)],
  ['empty-lines-10k', ONCE, CRLF.repeat(10_000) + get('outer-h-24', CLOSE)],
  ['binary', REFUSED, `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${'\0'.repeat(50)}`],
  ['nothing-but-lf', REFUSED, '\n'.repeat(100)],
  ['html', REFUSED, '<html></html>\r\n\r\n'],
  ['line-without-version', REFUSED, 'GET /?id=outer-h-28\r\n'],
  ['referer-of-a-terminal', REFUSED, get('outer-h-40', 'Referer: \x1b[2J\x1b]0;x\x07')],
  ['referer-of-a-terminal-8-bit', ONCE, get('outer-h-41', 'Referer: \xc2\x9b2J', CLOSE)],
  ['referer-utf8', ONCE, get('outer-h-42', `Referer: http://a/\xc3\xa4${CRLF}${CLOSE}`)],
  ['connection-of-upper-case', ONCE, get('outer-h-29', 'CONNECTION: CLOSE')],
  ['range-flood', ONCE, get('outer-h-30', `Range: bytes=${'0-,'.repeat(1_300)}0-`, CLOSE)],
  [
    'cookie-flood',
    ONCE,
    get('outer-h-31', ...Array.from({ length: 90 }, (_unused, n) => `Cookie: c${n}=${'x'.repeat(40)}`), CLOSE),
  ],
  ['accept-encoding-odd', ONCE, get('outer-h-32', 'Accept-Encoding: ,,,;q=,*;q=-1', CLOSE)],
  [
    'slow-head',
    ONCE,
    'GET /?id=outer-h-33 ',
    200,
    'HTTP/1.1\r',
    200,
    '\nHost: a\r\n',
    200,
    `Connection: close${CRLF}`,
    200,
    CRLF,
  ],
  ['half-head', SILENCE, 'GET /?id=smuggled-h-34 HTTP/1.1\r\nHost: a\r\nX: '],
  ['cr-cr-lf', TOLD, `GET /?id=outer-h-35 HTTP/1.1\r\r\nHost: a\r\r\nConnection: close\r\r\n\r\r\n`],
]);

/** Request lines. */
const requestLines = group('request lines', PORTS.http, [
  ['http-0.9', REFUSED, `GET /?id=outer-l-1${CRLF}`],
  ['http-1.0', ONCE, `GET /?id=outer-l-2 HTTP/1.0${CRLF}${CRLF}`],
  [
    // Its length is not known at its head, so the end of the connection is the end of the body.
    'http-1.0-keep-alive',
    ONCE,
    head('GET /?id=outer-l-3 HTTP/1.0', 'Connection: keep-alive'),
    400,
    head('GET /?id=outer-l-3b HTTP/1.0'),
  ],
  ['http-1.2', ONCE, head('GET /?id=outer-l-4 HTTP/1.2', CLOSE)],
  ['http-2.0', REFUSED, head('GET /?id=smuggled-l-5 HTTP/2.0')],
  ['http-9.9', REFUSED, head('GET /?id=smuggled-l-6 HTTP/9.9')],
  ['http-1.100', ONCE, head('GET /?id=outer-l-7 HTTP/1.100')],
  ['http-lower-case', REFUSED, head('GET /?id=smuggled-l-8 http/1.1')],
  ['h2-preface', REFUSED, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  [
    'h2-preface-then-headers',
    REFUSED,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x04\x01\x05\0\0\0\x01\x82\x86\x84A',
  ],
  [
    'absolute-form',
    ONCE,
    lines('GET http://shop.example/?id=outer-l-11 HTTP/1.1', 'Host: shop.example', CLOSE, '', ''),
  ],
  ['absolute-form-other-host', TOLD, lines('GET http://a/?id=outer-l-12 HTTP/1.1', 'Host: b', CLOSE, '', '')],
  [
    'absolute-form-https',
    ONCE,
    lines('GET https://shop.example/?id=outer-l-13 HTTP/1.1', 'Host: shop.example', CLOSE, '', ''),
  ],
  [
    'absolute-form-user',
    TOLD,
    lines('GET http://user:pw@shop.example/?id=outer-l-14 HTTP/1.1', 'Host: shop.example', CLOSE, '', ''),
  ],
  [
    'absolute-form-inside',
    ONCE,
    lines('GET http://127.0.0.1:9102/heap HTTP/1.1', 'Host: 127.0.0.1:9102', CLOSE, '', ''),
  ],
  ['authority-form', REFUSED, lines('GET shop.example:80 HTTP/1.1', 'Host: shop.example', '', '')],
  ['asterisk-form-get', REFUSED, head('GET * HTTP/1.1')],
  ['asterisk-form-options', TOLD, head('OPTIONS * HTTP/1.1', CLOSE)],
  ['connect', REFUSED, lines('CONNECT 127.0.0.1:9102 HTTP/1.1', 'Host: 127.0.0.1:9102', '', ''), smuggled('l-19')],
  ['trace', REFUSED, head('TRACE /?id=smuggled-l-20 HTTP/1.1', 'Cookie: secret=1')],
  ['track', TOLD, head('TRACK /?id=outer-l-21 HTTP/1.1', CLOSE)],
  ['method-lower-case', TOLD, head('get /?id=outer-l-22 HTTP/1.1', CLOSE)],
  ['method-unknown', TOLD, head('BREW /?id=outer-l-23 HTTP/1.1', CLOSE)],
  ['method-long', TOLD, head(`${'A'.repeat(5_000)} /?id=outer-l-24 HTTP/1.1`, CLOSE)],
  ['method-non-ascii', REFUSED, head('G\xcbT /?id=smuggled-l-25 HTTP/1.1')],
  ['method-with-colon', REFUSED, head('GET: /?id=smuggled-l-26 HTTP/1.1')],
  ['two-blanks', ONCE, head('GET  /?id=outer-l-27 HTTP/1.1', CLOSE)],
  ['tab-between', REFUSED, head('GET\t/?id=smuggled-l-28\tHTTP/1.1')],
  ['blank-in-target', TOLD, head('GET /?id=outer-l-29 b HTTP/1.1', CLOSE)],
  ['blank-at-end', ONCE, head('GET /?id=outer-l-30 HTTP/1.1 ', CLOSE)],
  ['backslash', TOLD, head('GET \\?id=outer-l-31 HTTP/1.1', CLOSE)],
  ['no-slash', REFUSED, head('GET ?id=smuggled-l-32 HTTP/1.1')],
  ['non-ascii-target', ONCE, head('GET /\xe4\xff?id=outer-l-33 HTTP/1.1', CLOSE)],
  ['non-ascii-blank', ONCE, head('GET /\xa0\xc2\x85?id=outer-l-44 HTTP/1.1', CLOSE)],
  ['non-ascii-overlong-crlf', ONCE, head('GET /\xc0\x8d\xc0\x8a?id=outer-l-45 HTTP/1.1', CLOSE)],
  ['non-ascii-overlong-slash', ONCE, head('GET /\xc0\xaf..\xc0\xaf?id=outer-l-46 HTTP/1.1', CLOSE)],
  ['non-ascii-then-nul', REFUSED, head('GET /\xe4\0?id=smuggled-l-47 HTTP/1.1')],
  ['non-ascii-30k', REFUSED, head(`GET /?id=smuggled-l-48&q=${'\xe4'.repeat(30_000)} HTTP/1.1`)],
  ['percent-wrong', TOLD, head('GET /%zz%?id=outer-l-34 HTTP/1.1', CLOSE)],
  ['percent-nul', TOLD, head('GET /%00?id=outer-l-35 HTTP/1.1', CLOSE)],
  ['percent-crlf', ONCE, head('GET /%0d%0aX:%20y?id=outer-l-36 HTTP/1.1', CLOSE)],
  ['dots', TOLD, head('GET /../../../etc/passwd?id=outer-l-37 HTTP/1.1', CLOSE)],
  ['dots-encoded', TOLD, head('GET /%2e%2e/%2e%2e/etc/passwd?id=outer-l-38 HTTP/1.1', CLOSE)],
  ['fragment', TOLD, head('GET /?id=smuggled-l-39#smuggled HTTP/1.1', CLOSE)],
  ['place-of-refusals', ONCE, head('GET //corelane-400?id=outer-l-49 HTTP/1.1', CLOSE)],
  ['place-of-refusals-encoded', ONCE, head('GET /%2fcorelane-431?id=outer-l-50 HTTP/1.1', CLOSE)],
  ['trace-with-body', REFUSED, `${head('TRACE /?id=smuggled-l-51 HTTP/1.1', 'Content-Length: 5')}hello`],
  ['named-location', ONCE, head('GET /@corelane_again?id=outer-l-40 HTTP/1.1', CLOSE)],
  ['named-location-bare', REFUSED, head('GET @corelane_again HTTP/1.1')],
  ['delete-with-body', ONCE, `${head('DELETE /?id=outer-l-42 HTTP/1.1', 'Content-Length: 1', CLOSE)}x`],
  ['head-with-body', ONCE, `${head('HEAD /?id=outer-l-43 HTTP/1.1', 'Content-Length: 1', CLOSE)}x`],
]);

const hosts = group('hosts', PORTS.http, [
  ['no-host', REFUSED, lines('GET /?id=smuggled-o-1 HTTP/1.1', '', '')],
  ['two-hosts', REFUSED, get('smuggled-o-2', 'Host: evil.example')],
  ['host-empty', TOLD, lines('GET /?id=outer-o-3 HTTP/1.1', 'Host:', CLOSE, '', '')],
  ['host-blank', REFUSED, lines('GET /?id=smuggled-o-4 HTTP/1.1', 'Host: a b', '', '')],
  ['host-slash', REFUSED, lines('GET /?id=smuggled-o-5 HTTP/1.1', 'Host: a/b', '', '')],
  ['host-comma', TOLD, lines('GET /?id=outer-o-6 HTTP/1.1', 'Host: a, b', CLOSE, '', '')],
  ['host-at', TOLD, lines('GET /?id=outer-o-7 HTTP/1.1', 'Host: user@a', CLOSE, '', '')],
  ['host-port-empty', ONCE, lines('GET /?id=outer-o-13 HTTP/1.1', 'Host: a:', CLOSE, '', '')],
  ['host-port-odd', TOLD, lines('GET /?id=outer-o-8 HTTP/1.1', 'Host: a:99999999', CLOSE, '', '')],
  ['host-ipv6-open', REFUSED, lines('GET /?id=smuggled-o-9 HTTP/1.1', 'Host: [::1', '', '')],
  ['host-nul', REFUSED, lines('GET /?id=smuggled-o-10 HTTP/1.1', 'Host: a\0', '', '')],
  ['host-8k', REFUSED, lines('GET /?id=smuggled-o-11 HTTP/1.1', `Host: ${'a'.repeat(9_000)}`, '', '')],
  ['host-dots', REFUSED, lines('GET /?id=smuggled-o-12 HTTP/1.1', 'Host: ..', '', '')],
]);

/** What only the proxies may say to each other, and headers that other stages would take away. */
const forged = group('forged headers', PORTS.http, [
  ['corelane-ask', ONCE, get('outer-f-1', 'X-Corelane-Ask: why', CLOSE)],
  ['corelane-revision', ONCE, get('outer-f-2', 'X-Corelane-Revision: r1', 'X-Corelane-Handed-Over: 1', CLOSE)],
  ['corelane-waits', ONCE, get('outer-f-3', ...Array.from({ length: 9 }, () => 'X-Corelane-Waits: 1'), CLOSE)],
  ['corelane-died', ONCE, get('outer-f-4', 'X-Corelane-Died: worker-0', 'X-Corelane-Unbegun: 1', CLOSE)],
  ['corelane-underscore', ONCE, get('outer-f-5', 'X_Corelane_Ask: why', 'X-Corelane_Ask: why', CLOSE)],
  ['corelane-dots', ONCE, get('outer-f-31', 'X.Corelane.Ask: why', 'x~corelane+untrusted: 1', CLOSE)],
  ['forwarded-odd', ONCE, get('outer-f-32', 'X_Forwarded_For: 127.0.0.1', 'X.Real.IP: 127.0.0.1', CLOSE)],
  ['corelane-runtime', ONCE, get('outer-f-6', 'X-Corelane-Runtime: true', CLOSE)],
  ['corelane-odd-case', ONCE, get('outer-f-7', 'x-cOrElAnE-aSk: why', CLOSE)],
  ['accel-redirect', ONCE, get('outer-f-8', 'X-Accel-Redirect: @corelane_again', 'X-Accel-Buffering: no', CLOSE)],
  ['hop-request-id', ONCE, get('outer-f-9', 'X-Request-ID: mine', 'Connection: close, X-Request-ID')],
  ['hop-forwarded-for', ONCE, get('outer-f-10', 'Connection: close, X-Forwarded-For, X-Forwarded-Proto')],
  ['hop-corelane', ONCE, get('outer-f-11', 'Connection: close, X-Corelane-Handed-Over, X-Corelane-Queue-Ms')],
  ['hop-content-length', ONCE, `${post('outer-f-12', 'Connection: close, Content-Length', 'Content-Length: 5')}hello`],
  ['hop-transfer-encoding', ONCE, `${post('outer-f-13', 'Connection: close, Transfer-Encoding', CHUNKED)}${LAST}`],
  ['hop-host', ONCE, get('outer-f-14', 'Connection: close, Host')],
  ['connection-many', ONCE, get('outer-f-15', `Connection: ${'keep-alive, '.repeat(200)}close`)],
  [
    'connection-4k-names',
    ONCE,
    get('outer-f-16', `Connection: close, ${Array.from({ length: 500 }, (_unused, n) => `x${n}`).join(', ')}`),
  ],
  ['keep-alive-header', ONCE, get('outer-f-17', 'Keep-Alive: timeout=99999, max=99999', CLOSE)],
  ['proxy-connection', ONCE, get('outer-f-18', 'Proxy-Connection: keep-alive', CLOSE)],
  ['proxy-header', ONCE, get('outer-f-19', 'Proxy: http://evil.example', CLOSE)],
  ['proxy-authorization', ONCE, get('outer-f-20', 'Proxy-Authorization: Basic eDp5', CLOSE)],
  [
    'forwarded',
    ONCE,
    get(
      'outer-f-21',
      'Forwarded: for=127.0.0.1;host=evil',
      'X-Forwarded-For: 127.0.0.1',
      'X-Real-IP: 127.0.0.1',
      CLOSE,
    ),
  ],
  ['forwarded-for-long', ONCE, get('outer-f-22', `X-Forwarded-For: ${'10.0.0.1, '.repeat(300)}10.0.0.1`, CLOSE)],
  ['request-id-twice', ONCE, get('outer-f-23', 'X-Request-ID: one', 'X-Request-ID: two', CLOSE)],
  ['request-id-odd', ONCE, get('outer-f-24', 'X-Request-ID: ../../etc', CLOSE)],
  ['proxy-protocol-1', REFUSED, `PROXY TCP4 127.0.0.1 127.0.0.1 1 2${CRLF}${get('smuggled-f-25')}`],
  [
    'proxy-protocol-2',
    REFUSED,
    `\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\0\x01\0\x02${get('smuggled-f-26')}`,
  ],
  [
    'host-override',
    ONCE,
    get(
      'outer-f-27',
      'X-Forwarded-Host: evil',
      'X-Host: evil',
      'X-Original-URL: /admin',
      'X-Rewrite-URL: /admin',
      CLOSE,
    ),
  ],
  ['method-override', ONCE, get('outer-f-28', 'X-HTTP-Method-Override: DELETE', CLOSE)],
  ['traceparent-odd', ONCE, get('outer-f-29', `traceparent: ${'0'.repeat(2_000)}`, 'tracestate: a=b,c', CLOSE)],
  [
    'own-site-twice',
    ONCE,
    get('outer-f-31', 'X-Corelane-Own-Site: own-site-1', `X-Corelane-Own-Site: ${'a'.repeat(32)}`, CLOSE),
  ],
  ['te-trailers', ONCE, get('outer-f-30', 'TE: trailers', 'Connection: close, TE')],
]);

/** Upgrades, expectations, and connections that carry several requests or end early. */
const connections = group('connections', PORTS.http, [
  [
    'upgrade-h2c',
    ONCE,
    get('outer-c-1', 'Connection: Upgrade, HTTP2-Settings, close', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
  ],
  [
    'upgrade-h2c-then-preface',
    SERVED_THEN_REFUSED,
    get('outer-c-2', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
    300,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ],
  [
    'upgrade-websocket',
    ONCE,
    get(
      'outer-c-3',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ),
  ],
  [
    // WebSockets are off, so nginx takes the header away: for the worker it is a GET.
    'upgrade-websocket-wrong',
    TWICE,
    get('outer-c-4', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 777'),
    300,
    get('outer-c-4b'),
  ],
  ['upgrade-tls', ONCE, get('outer-c-5', 'Connection: Upgrade, close', 'Upgrade: TLS/1.0')],
  ['upgrade-with-body', ONCE, `${post('outer-c-6', 'Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 5')}hello`],
  ['expect-continue', CONTINUED, post('outer-c-7', 'Expect: 100-continue', 'Content-Length: 5', CLOSE), 200, 'hello'],
  ['expect-continue-no-body', /^100$/, post('outer-c-8', 'Expect: 100-continue', 'Content-Length: 5')],
  [
    'expect-continue-http-1.0',
    ONCE,
    `${head('POST /?id=outer-c-9 HTTP/1.0', 'Expect: 100-continue', 'Content-Length: 5')}hello`,
  ],
  ['expect-unknown', ONCE, `${post('outer-c-10', 'Expect: 200-maybe', 'Content-Length: 5', CLOSE)}hello`],
  [
    // A header that nginx takes once only.
    'expect-twice',
    BAD_REQUEST,
    post('outer-c-11', 'Expect: 100-continue', 'Expect: 100-continue', 'Content-Length: 5', CLOSE),
    200,
    'hello',
  ],
  ['expect-on-get', CONTINUED, get('outer-c-12', 'Expect: 100-continue', CLOSE)],
  [
    // Another word than 100-continue: nginx neither obeys it nor passes it on.
    'expect-obfuscated',
    ONCE,
    post('outer-c-13', 'Expect: y 100-continue', 'Content-Length: 5', CLOSE),
    200,
    'hello',
  ],
  ['expect-beyond-limit', /^413/, post('outer-c-14', 'Expect: 100-continue', 'Content-Length: 999999999')],
  ['pipelined', TWICE, get('outer-c-15') + get('outer-c-15b', CLOSE)],
  ['pipelined-20', /^(200 ){19}200$/, get('outer-c-16').repeat(19) + get('outer-c-16b', CLOSE)],
  ['pipelined-post-get', TWICE, `${post('outer-c-17', 'Content-Length: 5')}hello${get('outer-c-17b', CLOSE)}`],
  ['pipelined-then-nonsense', SERVED_THEN_REFUSED, `${get('outer-c-18')}\0\0\0\0${CRLF}${CRLF}`],
  ['pipelined-after-close', ONCE, get('outer-c-19', CLOSE) + smuggled('c-19')],
  ['head-then-get', TWICE, head('HEAD /?id=outer-c-20 HTTP/1.1') + get('outer-c-20b', CLOSE)],
  [
    'body-later-than-next',
    TWICE,
    post('outer-c-21', 'Content-Length: 90'),
    200,
    'x'.repeat(90) + get('outer-c-21b', CLOSE),
  ],
  [
    'body-that-looks-like-a-request',
    ONCE,
    `${post('outer-c-22', 'Content-Length: 44', CLOSE)}${'GET /?id=smuggled-c-22 HTTP/1.1\r\nHost: a\r\n\r\n'.slice(0, 44)}`,
  ],
  ['status-204-with-request', /^204 200$/, head('GET /?id=outer-c-23&status=204 HTTP/1.1') + get('outer-c-23b', CLOSE)],
  ['app-status-101', /^502 200$/, head('GET /?id=outer-c-25&status=101 HTTP/1.1') + get('outer-c-25b', CLOSE)],
  ['app-status-103', /^502 200$/, head('GET /?id=outer-c-26&status=103 HTTP/1.1') + get('outer-c-26b', CLOSE)],
  ['app-early-hints', TWICE, head('GET /?id=outer-c-27&hints=3 HTTP/1.1') + get('outer-c-27b', CLOSE)],
  [
    'app-early-hints-then-nothing',
    /^502 200$/,
    head('GET /?id=outer-c-28&hints=2&status=102 HTTP/1.1') + get('outer-c-28b', CLOSE),
  ],
  // What h2spec and http-garden try beside all these: frames of HTTP/2 that need no settings, and ends of lines and
  // lengths that parsers see differently.
  ['h2-goaway-first', REFUSED, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0'],
  ['h2-half-preface', REFUSED, 'PRI * HTTP/2.0\r\n'],
  ['h2-preface-after-request', SERVED_THEN_REFUSED, `${get('outer-c-31')}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`],
  ['h2-headers-without-preface', REFUSED, '\0\0\x04\x01\x05\0\0\0\x01\x82\x86\x84A'],
  ['cl-in-other-base', REFUSED, post('outer-c-33', 'Content-Length: 0b1010') + smuggled('c-33')],
  ['cl-with-underscore', REFUSED, post('outer-c-34', 'Content-Length: 1_0') + smuggled('c-34')],
  ['cl-form-feed', REFUSED, post('outer-c-35', 'Content-Length: \x0c5') + smuggled('c-35')],
  [
    'te-form-feed',
    REFUSED,
    post('outer-c-36', 'Transfer-Encoding: \x0cchunked', 'Content-Length: 5') + LAST + smuggled('c-36'),
  ],
  [
    'te-comma-first',
    REFUSED,
    post('outer-c-37', 'Transfer-Encoding: , chunked', 'Content-Length: 5') + LAST + smuggled('c-37'),
  ],
  ['te-not-at-end', REFUSED, post('outer-c-38', 'Transfer-Encoding: chunked, gzip') + LAST + smuggled('c-38')],
  ['chunk-size-two-crs', REFUSED, `${post('outer-c-39', CHUNKED)}5\r\r\nhello\r\n${LAST}`],
  ['chunk-data-then-wrong-end', REFUSED, `${post('outer-c-40', CHUNKED)}5${CRLF}helloXX${LAST}`],
  ['chunk-last-then-garbage', ONCE, `${post('outer-c-41', CHUNKED)}0${CRLF}XX${CRLF}${CRLF}`],
  ['name-ends-in-cr', REFUSED, get('outer-c-42', 'Content-Length\r: 5')],
  ['name-begins-with-tab', TOLD, get('outer-c-43', '\tX: a', CLOSE)],
  ['value-ends-in-nul', REFUSED, get('outer-c-44', 'Connection: close\0')],
  ['version-lower-case', REFUSED, head('GET /?id=smuggled-c-45 http/1.1')],
  ['version-two-digits', TOLD, head('GET /?id=outer-c-46 HTTP/01.1', CLOSE)],
  ['app-length-too-long', ONCE, head('GET /?id=outer-c-24&length=10&more=HTTP/1.1%20200%20OK HTTP/1.1', CLOSE)],
]);

/** Whoever is no peer is told nothing; 9001 is for pods of the same RenderService. */
const peers = group('port 9001', PORTS.peers, [
  ['peers-get', SILENCE, get('smuggled-p-1')],
  ['peers-ask', SILENCE, get('smuggled-p-2', 'X-Corelane-Ask: slot')],
  ['peers-ask-why-heap', SILENCE, head('GET /heap HTTP/1.1', 'X-Corelane-Ask: why', 'X-Corelane-Revision: r1')],
  [
    'peers-ask-why-profile',
    SILENCE,
    head('GET /profile?seconds=60 HTTP/1.1', 'X-Corelane-Ask: why', 'X-Corelane-Revision: r1'),
  ],
  ['peers-ask-why-stalls', SILENCE, head('GET /stalls HTTP/1.1', 'X-Corelane-Ask: why', 'X-Corelane-Revision: r1')],
  ['peers-ask-why-id', SILENCE, head('GET /why/abc HTTP/1.1', 'X-Corelane-Ask: why', 'X-Corelane-Revision: r1')],
  ['peers-ask-why-dots', SILENCE, head('GET /why/../heap HTTP/1.1', 'X-Corelane-Ask: why', 'X-Corelane-Revision: r1')],
  ['peers-revision', SILENCE, get('smuggled-p-8', 'X-Corelane-Revision: r1')],
  ['peers-revision-post', SILENCE, `${post('smuggled-p-9', 'X-Corelane-Revision: r1', 'Content-Length: 5')}hello`],
  [
    'peers-handed-over',
    SILENCE,
    get('smuggled-p-10', 'X-Corelane-Revision: r1', 'X-Corelane-Handed-Over: 1', 'X-Request-ID: a'),
  ],
  ['peers-slow-body', SILENCE, post('smuggled-p-11', 'X-Corelane-Revision: r1', 'Content-Length: 1000'), 'x'],
  ['peers-chunked', SILENCE, post('smuggled-p-12', 'X-Corelane-Revision: r1', CHUNKED) + LAST],
  [
    'peers-upgrade',
    SILENCE,
    get('smuggled-p-13', 'X-Corelane-Revision: r1', 'Connection: Upgrade', 'Upgrade: websocket'),
  ],
  ['peers-connect', SILENCE, head('CONNECT 127.0.0.1:9102 HTTP/1.1', 'X-Corelane-Revision: r1')],
  ['peers-trace', SILENCE, head('TRACE / HTTP/1.1', 'X-Corelane-Revision: r1')],
  [
    'peers-proxy-protocol-1',
    SILENCE,
    `PROXY TCP4 127.0.0.1 127.0.0.1 1 2${CRLF}${get('smuggled-p-16', 'X-Corelane-Revision: r1')}`,
  ],
  [
    'peers-proxy-protocol-2',
    SILENCE,
    `\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\0\x01\0\x02${get('smuggled-p-17', 'X-Corelane-Revision: r1')}`,
  ],
  [
    'peers-proxy-protocol-2-local',
    SILENCE,
    `\r\n\r\n\0\r\nQUIT\n\x20\0\0\0${get('smuggled-p-18', 'X-Corelane-Ask: slot')}`,
  ],
  [
    'peers-proxy-protocol-2-tlv',
    SILENCE,
    `\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x14\x7f\0\0\x01\x7f\0\0\x01\0\x01\0\x02\xe0\0\x05aaaaa${get('smuggled-p-19')}`,
  ],
  ['peers-h2-preface', SILENCE, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  ['peers-nonsense', SILENCE, '\0\0\0\0\0\0\0\0\r\n\r\n'],
  ['peers-half', SILENCE, 'GET / HTTP/1.1\r\nHost: a\r\nX: '],
  ['peers-head-100k', SILENCE, head('GET / HTTP/1.1', `X: ${'a'.repeat(100_000)}`)],
  [
    'peers-cl-te',
    SILENCE,
    post('smuggled-p-24', 'X-Corelane-Revision: r1', 'Content-Length: 6', CHUNKED) + LAST + smuggled('p-24b'),
  ],
  ['peers-pipelined', SILENCE, get('smuggled-p-25').repeat(20)],
]);

const TOLD_NO = /^([45]\d\d ?)*$/;
/** One answer for each connection, and nothing of the pod's workers. */
const health = group('port 8998', PORTS.health, [
  ['health-livez', /^200$/, head('GET /livez HTTP/1.1')],
  ['health-pipelined', /^200$/, head('GET /livez HTTP/1.1').repeat(20)],
  ['health-client', /^404$/, head('GET /client/nobody HTTP/1.1')],
  ['health-client-without-id', /^404$/, head('GET /client/ HTTP/1.1')],
  ['health-client-long', /^404$/, head(`GET /client/${'a'.repeat(4_000)} HTTP/1.1`)],
  ['health-unknown', /^404$/, head('GET /admin HTTP/1.1')],
  ['health-post', REFUSED_BY_RULE, `${head('POST /livez HTTP/1.1', 'Content-Length: 5')}hello`],
  ['health-post-half-body', REFUSED_BY_RULE, head('POST /livez HTTP/1.1', 'Content-Length: 500')],
  ['health-chunked', REFUSED_BY_RULE, head('POST /livez HTTP/1.1', CHUNKED) + LAST],
  ['health-cl-te', /^4\d\d$/, head('POST /livez HTTP/1.1', 'Content-Length: 6', CHUNKED) + LAST + smuggled('e-7')],
  ['health-h2-preface', TOLD_NO, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  [
    'health-upgrade-h2c',
    /^200$/,
    head(
      'GET /livez HTTP/1.1',
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQAAP__',
    ),
  ],
  ['health-connect', TOLD_NO, head('CONNECT 127.0.0.1:9102 HTTP/1.1')],
  ['health-absolute', TOLD, lines('GET http://127.0.0.1:9102/heap HTTP/1.1', 'Host: 127.0.0.1:9102', '', '')],
  ['health-http-0.9', TOLD_NO, `GET /livez${CRLF}`],
  ['health-no-host', ONCE, `GET /livez HTTP/1.1${CRLF}${CRLF}`],
  ['health-head-100k', TOLD_NO, head('GET /livez HTTP/1.1', `X: ${'a'.repeat(100_000)}`)],
  ['health-nonsense', TOLD_NO, '\0\x01\x02\x03\r\n\r\n'],
  ['health-half', TOO_LATE, 'GET /livez HTTP/1.1\r\nX: '],
  ['health-slow', TOO_LATE, 'GET /livez', 500, ' HTTP/1.1\r\n', 500, 'X: a', 500, 'b', 500, 'c'],
  ['health-range', /^200$/, head('GET /livez HTTP/1.1', `Range: bytes=${'0-,'.repeat(1_000)}0-`)],
  ['health-expect', REFUSED_BY_RULE, head('POST /livez HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 5')],
  ['health-expect-hostile-path', /^404$/, head('GET /livez/..%2f..%2fetc HTTP/1.1')],
]);

const stats = group('port 8999', PORTS.stats, [
  ['stats-narrow', /^200$/, head('GET /metrics?metrics=haproxy_process_uptime_seconds HTTP/1.1')],
  ['stats-pipelined', /^200$/, head('GET /metrics?metrics=haproxy_process_uptime_seconds HTTP/1.1').repeat(20)],
  [
    'stats-admin',
    REFUSED_BY_RULE,
    `${head('POST / HTTP/1.1', 'Content-Type: application/x-www-form-urlencoded', 'Content-Length: 33')}s=worker-0&action=disable&b=workers`,
  ],
  ['stats-heap', /^404$/, head('GET /workers/0/heap HTTP/1.1')],
  ['stats-profile', /^404$/, head('GET /workers/0/profile?seconds=60 HTTP/1.1')],
  ['stats-why', /^404$/, head('GET /workers/0/why/abc HTTP/1.1')],
  ['stats-begun', /^404$/, head('GET /workers/0/begun/abc?ms=1 HTTP/1.1')],
  ['stats-healthz', /^404$/, head('GET /workers/0/healthz HTTP/1.1')],
  ['stats-dots', /^404$/, head('GET /workers/0/metrics/../heap HTTP/1.1')],
  ['stats-encoded', /^404$/, head('GET /workers/0/%2e%2e/heap HTTP/1.1')],
  ['stats-worker-99', /^404$/, head('GET /workers/99/metrics HTTP/1.1')],
  ['stats-worker-negative', /^404$/, head('GET /workers/-1/metrics HTTP/1.1')],
  ['stats-worker-huge', /^404$/, head('GET /workers/99999999999999999999/metrics HTTP/1.1')],
  ['stats-worker-metrics-runtime-header', /^200$/, head('GET /workers/0/metrics HTTP/1.1', 'X-Corelane-Runtime: true')],
  ['stats-page', /^200$/, head('GET /corelane/metrics HTTP/1.1')],
  ['stats-page-detail', /^200$/, head('GET /corelane/metrics?detail=1 HTTP/1.1')],
  ['stats-page-odd-query', /^200$/, head(`GET /corelane/metrics?detail=1&detail=%00${'a'.repeat(4_000)} HTTP/1.1`)],
  ['stats-page-pipelined', /^200$/, head('GET /corelane/metrics HTTP/1.1').repeat(50)],
  ['stats-page-post', REFUSED_BY_RULE, `${head('POST /corelane/metrics HTTP/1.1', 'Content-Length: 5')}hello`],
  ['stats-page-dots', /^404$/, head('GET /corelane/../corelane/metrics HTTP/1.1')],
  ['stats-stalls', /^200$/, head('GET /workers/0/stalls HTTP/1.1', 'X-Corelane-Runtime: true')],
  ['stats-stalls-post', REFUSED_BY_RULE, `${head('POST /workers/0/stalls HTTP/1.1', 'Content-Length: 5')}hello`],
  ['stats-stalls-upgrade', TOLD, head('GET /workers/0/metrics HTTP/1.1', 'Connection: Upgrade', 'Upgrade: websocket')],
  [
    'stats-worker-cl-te',
    /^4\d\d$/,
    head('POST /workers/0/metrics HTTP/1.1', 'Content-Length: 6', CHUNKED) + LAST + head('GET /heap HTTP/1.1'),
  ],
  ['stats-h2-preface', TOLD_NO, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  ['stats-connect', TOLD_NO, head('CONNECT 127.0.0.1:9102 HTTP/1.1')],
  ['stats-head-100k', TOLD_NO, head('GET / HTTP/1.1', `X: ${'a'.repeat(100_000)}`)],
  ['stats-nonsense', TOLD_NO, '\0\x01\x02\x03\r\n\r\n'],
  ['stats-half', TOO_LATE, 'GET / HTTP/1.1\r\nX: '],
  // One metric that there is not. Whole pages have a rate, so what they are answered depends on those before:
  // doors.load.test.ts.
  ['stats-metrics-odd', ONCE, head(`GET /metrics?metrics=${'a'.repeat(64)} HTTP/1.1`)],
]);
for (const one of stats) one.never = /"stack"|"requests":|JSHeap|snapshot/;

/** What an SSRF of the application can send to its own supervisor: an URL, and no header of its own. */
const inside = group(
  'port 9102',
  PORTS.firstWorkerRuntime,
  [
    ['ssrf-heap', TOLD, head('GET /heap HTTP/1.1', CLOSE)],
    ['ssrf-profile', TOLD, head('GET /profile?seconds=60 HTTP/1.1', CLOSE)],
    ['ssrf-stalls', TOLD, head('GET /stalls HTTP/1.1', CLOSE)],
    ['ssrf-stalls-dots', TOLD, head('GET /stalls/summary/.. HTTP/1.1', CLOSE)],
    ['ssrf-heap-http-0.9', REFUSED, `GET /heap${CRLF}`],
    ['ssrf-heap-http-1.0', TOLD, `GET /heap HTTP/1.0${CRLF}${CRLF}`],
    ['ssrf-heap-post', REFUSED, head('POST /heap HTTP/1.1', 'Content-Length: 0', CLOSE)],
    ['ssrf-heap-dots', TOLD, head('GET /metrics/../heap HTTP/1.1', CLOSE)],
    ['ssrf-heap-slashes', TOLD, head('GET //heap HTTP/1.1', CLOSE)],
    ['ssrf-heap-query', TOLD, head('GET /heap?X-Corelane-Runtime=true HTTP/1.1', CLOSE)],
    ['ssrf-heap-crlf-in-url', TOLD, head('GET /heap%0d%0aX-Corelane-Runtime:%20true HTTP/1.1', CLOSE)],
    [
      'ssrf-heap-header-in-body',
      REFUSED,
      `${head('POST /heap HTTP/1.1', 'Content-Length: 26', CLOSE)}X-Corelane-Runtime: true${CRLF}`,
    ],
    ['ssrf-absolute', TOLD, lines('GET http://127.0.0.1:9102/heap HTTP/1.1', 'Host: a', CLOSE, '', '')],
    ['runtime-two-slashes', REFUSED, head('GET // HTTP/1.1', CLOSE)],
    ['runtime-bad-authority', REFUSED, lines('GET http://a:99999/metrics HTTP/1.1', 'Host: a', CLOSE, '', '')],
    ['runtime-nonsense', REFUSED, '\0\x01\x02\x03\r\n\r\n'],
    ['runtime-half', SILENCE, 'GET /metrics HTTP/1.1\r\nX: '],
    ['runtime-head-1m', SILENCE, head('GET /metrics HTTP/1.1', `X: ${'a'.repeat(1_000_000)}`)],
    ['runtime-line-without-end', SILENCE, 'a'.repeat(1_000_000)],
    ['runtime-begun-odd', REFUSED, head('GET /begun/../../etc HTTP/1.1', CLOSE)],
    ['runtime-begun-no-age', /^403$/, head('GET /begun/abc?ms=x HTTP/1.1', CLOSE)],
    ['runtime-why-long', REFUSED, head(`GET /why/${'a'.repeat(10_000)} HTTP/1.1`, CLOSE)],
    ['runtime-agent', /^$/, 'corelane-agent 1\n'],
    ['runtime-agent-many', /^$/, 'corelane-agent 999999999\n'],
    ['runtime-agent-negative', /^$/, 'corelane-agent -1\n'],
    ['runtime-heartbeat-forged', SILENCE, 'corelane-worker 1\n\0\0\0\0\n'],
  ],
  'inside',
);
for (const one of inside) one.never = /"snapshot"|"nodes"/;

export const cases: HostileCase[] = [
  ...[lengths, chunks, heads, requestLines, hosts, forged, connections],
  ...[peers, health, stats, inside],
].flat();
