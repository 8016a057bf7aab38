/**
 * Pages that are kept. nginx has them and looks for them; whether and how long one is kept, and who waits for whom,
 * HAProxy says (haproxy/cache.ts). docs/cache.md has the rules.
 */
import { CACHE_MOUNT_PATH, RUN_MOUNT_PATH } from '../../api/names.ts';
import { block, given, type Lines, paragraphs, when, words } from '../directives.ts';
import type { Cache } from '../model/cache.ts';
import type { RequestClass } from '../model/classes.ts';
import type { DataPlaneModel } from '../model/index.ts';
import { quoted, whole, word } from '../safe.ts';
import { TELLS_SERVED_AS } from './classes.ts';
import { TELLS_BROWSER } from './fallback.ts';
import { HOST } from './hosts.ts';
import { writesLines } from './logging.ts';
import { cookieName, cookiePattern, headerVariable, pathPattern } from './patterns.ts';
import { TELLS_CLASS } from './priority.ts';
import { HIDES } from './proxy.ts';
import { HIDES_STATE, TELLS_TRACE, TELLS_TRACE_OF_PEER } from './tracing.ts';

/** Where a page is looked for, at first and when HAProxy leads a request back; and where it is rendered for one. */
export const CACHED = '@corelane_cached';
export const ALONE = '@corelane_alone';
/** What HAProxy says about a page, which peers that ask for it get to know. */
const TOLD_TO_PEERS = ['Stale', 'Vary'];

/** HAProxy's entrances: for what nginx has not got, and for a request that got no answer there. */
export const CACHE_SOCKET = `${RUN_MOUNT_PATH}/cache.sock`;
export const CACHE_AGAIN_SOCKET = `${RUN_MOUNT_PATH}/cache-again.sock`;

/** X-Forwarded-For of a shared render, by which HAProxy knows it: it has no client for the worker. */
export const SHARED = '0.0.0.0';
/** What of a response nginx does not judge by itself. X-Accel-Expires and Vary it does. */
const NOT_JUDGED = [
  'Cache-Control',
  'Expires',
  'Set-Cookie',
  'X-Accel-Buffering',
  'X-Accel-Charset',
  'X-Accel-Limit-Rate',
];

/** Directives and maps of `http`. */
export function cacheMaps(cache: Cache, { classes, compression }: DataPlaneModel): Lines {
  return [
    words(
      `proxy_cache_path ${CACHE_MOUNT_PATH} levels=1:2 keys_zone=corelane:${whole(cache.tableBytes, 'table of pages')}`,
      `max_size=${whole(cache.sizeBytesMax, 'cache.maxSize')} inactive=${whole(cache.idleSeconds, 'seconds')}s use_temp_path=off manager_threshold=20ms;`,
    ),
    `corelane_kept_max ${whole(cache.keptBytesMax, 'page')};`,
    when(
      cache.key.query.mode !== 'all',
      `${words(
        `corelane_cache_query ${cache.key.query.mode}`,
        ...cache.key.query.names.map((name) => quoted(name, 'cache.key.query.names')),
      )};`,
    ),
    block('map $http_host $corelane_cache_port', '"~(?<corelane_port>:[0-9]+)$" $corelane_port;'),
    block('map $http_host $corelane_cache_name', 'default $host;', '"" $corelane_host;'),
    '# Of a proxy that says nothing else the same host, in the same letters.',
    block(
      'map "$corelane_forwarded_host $corelane_host" $corelane_cache_forwarded_host',
      'default $corelane_forwarded_host;',
      '"~^([^ ]+) \\1$" $corelane_cache_name$corelane_cache_port;',
    ),
    forWhom(cache, classes),
    cookies(cache),
    '# One form of what clients accept. What has no encoding nginx compresses on the way.',
    when(
      compression === undefined,
      block('map $http_accept_encoding $corelane_cache_encoding', '"~*gzip *(?:,|$)" gzip;'),
    ),
    when(compression !== undefined, block('map "" $corelane_cache_encoding', 'default "";')),
    '# For clients and the log. (RFC 9211)',
    block(
      'map $upstream_cache_status $corelane_cache_fwd',
      'MISS "; fwd=uri-miss";',
      'EXPIRED "; fwd=stale";',
      'default "; hit";',
    ),
    block(
      'map "$corelane_cache_round|$upstream_cache_status" $corelane_cache_header',
      'default "Corelane$corelane_cache_fwd";',
      '"~^[01]*1[01]*\\|HIT$" "Corelane; fwd=uri-miss; collapsed";',
    ),
    block(
      'map "$corelane_cache_why|$corelane_bypass" $corelane_cache_reason',
      '"~^(?<corelane_pass>[a-z-]+)\\|" "Corelane; fwd=miss; detail=$corelane_pass";',
      '"~^\\|(?<corelane_way>.+)$" "Corelane; fwd=bypass; detail=$corelane_way";',
    ),
    when(
      cache.isShared,
      '# What a peer says: nothing that a client could not have said here.',
      block(
        'map $http_x_forwarded_host $corelane_bad_peer_host',
        'default 1;',
        `"~^${HOST}(?: *, *${HOST}){0,7}$" "";`,
      ),
    ),
    '# A page that is given out after its end is rendered anew over the connection of its client, who must not send more over it.',
    block(
      'map "$corelane_closing|$upstream_cache_status" $corelane_cache_closing',
      'default $corelane_closing;',
      '"|STALE" close;',
    ),
  ];
}

/** $corelane_cacheable: 1 if the request may be given a page that was rendered for another one. */
function forWhom({ paths, ttl, bypass }: Cache, classes: RequestClass[] | undefined): Lines {
  const rules: [source: string, pattern: string, why: string][] = [
    ...bypass.paths.map((path): [string, string, string] => ['$uri', pathPattern(path), 'path']),
    ['$http_cookie', cookiePattern(...bypass.cookies), 'cookie'],
    ...bypass.headers.map((name): [string, string, string] => [headerVariable(name), '"~."', 'header']),
  ];
  return [
    block(
      'map "$request_method|$http_transfer_encoding$http_upgrade$http_authorization$http_expect|$content_length" $corelane_cache_plain',
      '"~^(?:GET|HEAD)\\|\\|0*$" 1;',
    ),
    block(
      'map $uri $corelane_cache_path',
      paths.map((path) => `${pathPattern(path)} 1;`),
    ),
    block(
      'map $uri $corelane_cache_ttl',
      'default "";',
      // How long that is, is a live setting. 0: the cache is not for it.
      ttl.map(({ path, rule, seconds }) => `${pathPattern(path)} ${seconds > 0 ? word(rule, 'rule') : '0'};`),
    ),
    block(
      'map "$http_cache_control,$http_pragma" $corelane_wants_fresh',
      '"~*(?:^|[ ,])no-(?:cache|store)(?:[ ,;=]|$)" "no-cache ";',
    ),
    rules.map(([source, pattern, why], index) =>
      block(`map ${source} $corelane_bypass_${index}`, `${pattern} "${why} ";`),
    ),
    '# The first reason.',
    block(
      `map "$corelane_wants_fresh${rules.map((_rule, index) => `$corelane_bypass_${index}`).join('')}" $corelane_bypass`,
      '"~^(?<corelane_why>[a-z-]+)" $corelane_why;',
    ),

    given(classes, (all) => [
      '# Of a class by its own leave: who asks for a stream would wait for the end of another one.',
      block(
        'map $corelane_served_as $corelane_cache_class',
        'default other;',
        '"" "";',
        all.filter(({ isKept }) => isKept).map(({ name }) => `~^${word(name, 'classes.name')}$ "";`),
      ),
    ]),
    block(
      `map "$corelane_cache_plain|$corelane_cache_path|$corelane_cache_ttl|$corelane_bypass${classes ? '$corelane_cache_class' : ''}" $corelane_cacheable`,
      '"~^1\\|1\\|(?:r[0-9a-f]+)?\\|$" 1;',
    ),
  ];
}

/** $corelane_key_cookie_N: one of the key with its name; the header of those that are there; $corelane_personal. */
function cookies({ key, trackingCookies }: Cache): Lines {
  const impersonal = [...key.cookies.map(cookieName), ...trackingCookies];
  return [
    // With its name, because nginx would take a "$" in it for a variable anywhere but in a pattern.
    key.cookies.map((name, index) =>
      block(
        `map $http_cookie $corelane_key_cookie_${index}`,
        `"~(?:^|; *)(?<corelane_cookie_${index}>${cookieName(name)}=[^;]+)" "$corelane_cookie_${index}; ";`,
      ),
    ),
    block(
      `map "${key.cookies.map((_name, index) => `$corelane_key_cookie_${index}`).join('')}" $corelane_cache_cookie`,
      '"~^(?<corelane_cookies>.*); $" $corelane_cookies;',
    ),
    '# 1 if there is a cookie that is neither in the key nor a tracking cookie.',
    block(
      'map $http_cookie $corelane_personal',
      'default 1;',
      '"" "";',
      // Atomic: without it a name that two patterns match costs exponential time. Possessive: without it each cookie
      // costs some of PCRE's stack, which a line of many does not fit into.
      `"~^(?> *(?:${impersonal.join('|')})=[^;]*(?:;|$))*+$" "";`,
    ),
  ];
}

/** The upstream. */
export const CACHE_UPSTREAM: Lines = [
  '# Who got no answer comes back to those whom he waited with.',
  block(
    'upstream corelane_cached',
    `server unix:${CACHE_SOCKET} max_fails=0;`,
    `server unix:${CACHE_AGAIN_SOCKET} max_fails=0 backup;`,
    'keepalive 64;',
  ),
];

/** In `server`. */
export const CACHE_VARIABLES: Lines = ['round', 'told', 'alone', 'personal', 'why'].map(
  (name) => `set $corelane_cache_${name} "";`,
);

/** In `server`. */
export const CACHE_PAGE: Lines = [
  '# 421 stands for "perhaps kept": a page for others, too.',
  `error_page 421 = ${CACHED};`,
];

/** In a location that renders a page for one client: tells the client why. */
export const TELLS_REASON: Lines = 'add_header Cache-Status $corelane_cache_reason always;';

/** In a location, before all that sends a request to a worker. */
export const LEADS_TO_CACHE: Lines = block('if ($corelane_cacheable)', 'return 421;');

/** The locations, each of which is a paragraph. `page` sends a request to a worker. */
export function cacheLocations(cache: Cache, model: DataPlaneModel, page: Lines): Lines[] {
  return [
    looks(looksForPage(cache, model, client(cache, model))),
    [
      '# Its page is for nobody else.',
      block(
        `location ${ALONE}`,
        'set $corelane_cache_alone pass;',
        'set $corelane_cache_why $upstream_http_x_corelane_why;',
        page,
      ),
    ],
  ];
}

function looks(look: Lines): Lines {
  return block(
    `location ${CACHED}`,
    '# X-Corelane-Step and -Herd are of the answer that led a request back here. At its first look there is none.',
    'corelane_looks_again on;',
    'set $corelane_cache_round "$upstream_http_x_corelane_step$corelane_cache_round";',
    'set $corelane_cache_told $upstream_http_x_corelane_herd;',
    look,
  );
}

/** Its socket. */
export const PAGES_SOCKET = `${RUN_MOUNT_PATH}/pages.sock`;

/** The server for peers, behind HAProxy: what the cache may keep, and nothing else. */
export function pagesServer(cache: Cache, model: DataPlaneModel): Lines {
  return [
    '# For HAProxy alone, which lets pods of this RenderService come here with a ticket: they look for pages whose home this pod is.',
    block(
      'server',
      paragraphs(
        [
          `listen unix:${PAGES_SOCKET};`,
          'server_name _;',
          'access_log off;',
          'corelane_counts nothing;',
          when(model.compression !== undefined, 'gzip off;'),
          CACHE_VARIABLES,
          CACHE_PAGE,
        ],
        block(
          'location /',
          '# No URL that a program fetches can have sent this header.',
          block('if ($http_x_corelane_page = "")', 'return 404;'),
          block('if ($corelane_bad_request)', 'return 400;'),
          block('if ($corelane_bad_peer_host)', 'return 400;'),
          block('if ($corelane_cacheable = "")', 'return 400;'),
          'return 421;',
        ),
        looks(looksForPage(cache, model, PEER)),
        block(`location ${ALONE}`, 'add_header X-Corelane-Alone $upstream_http_x_corelane_why always;', 'return 404;'),
      ),
    ),
  ];
}

/** Where what makes a page is, and what else depends on who asks. */
interface Asker {
  epoch: string;
  /** Address of the client whose request may cause the render. */
  client: string;
  trace: Lines;
  proto: string;
  forwardedHost: string;
  host: string;
  hides: Lines;
  /** Whether a page for errors would be welcome. */
  fallback: Lines;
  /** Whether the request has cookies that may make a page personal, as a variable. */
  personal: string;
  /** What pods have to tell each other. */
  shares: Lines;
  adds: Lines;
}

/** A client, as far as the cache knows it. */
function client(cache: Cache, { accessLog, fallback }: DataPlaneModel): Asker {
  return {
    epoch: '$corelane_cache_epoch',
    client: '$remote_addr',
    trace: TELLS_TRACE,
    proto: '$corelane_proto',
    forwardedHost: '$corelane_cache_forwarded_host',
    host: '$corelane_cache_name$corelane_cache_port',
    hides: [HIDES, 'proxy_hide_header Vary;', when(cache.isShared, 'proxy_hide_header X-Corelane-Shared;')],
    fallback: given(fallback, () => TELLS_BROWSER),
    personal: '$corelane_personal',
    shares: when(
      cache.isShared,
      'proxy_set_header X-Corelane-For-Peer "";',
      'proxy_set_header X-Corelane-Changed $corelane_cache_changed;',
    ),
    adds: [
      'add_header Connection $corelane_cache_closing always;',
      'add_header Age $corelane_cache_age always;',
      'add_header Cache-Status $corelane_cache_header always;',
      'add_header Vary $upstream_http_x_corelane_vary always;',
      `access_log ${RUN_MOUNT_PATH}/late-assets corelane_late_asset if=$corelane_closing;`,
      writesLines(accessLog),
    ],
  };
}

/** A peer, whose nginx has made the request: for the same page it has the same key. */
const PEER: Asker = {
  epoch: '$corelane_cache_peer_epoch',
  client: '$http_x_real_ip',
  trace: TELLS_TRACE_OF_PEER,
  proto: '$http_x_forwarded_proto',
  forwardedHost: '$http_x_forwarded_host',
  host: '$http_host',
  hides: [
    HIDES.filter((line) => !TOLD_TO_PEERS.some((name) => line.endsWith(`-${name};`))),
    'proxy_pass_header X-Accel-Expires;',
  ],
  fallback: ['proxy_set_header X-Corelane-Fallback "";'],
  personal: '$http_x_corelane_personal',
  shares: ['proxy_set_header X-Corelane-For-Peer 1;', 'proxy_set_header X-Corelane-Changed "";'],
  adds: ['add_header Age $corelane_cache_age always;'],
};

function looksForPage(cache: Cache, model: DataPlaneModel, asker: Asker): Lines {
  const { headers, cookies, query } = cache.key;
  const uri = query.mode === 'all' ? '$request_uri' : '$corelane_cache_uri';
  // No value has an end of line in it, so no two keys are alike.
  const key = [
    ...[asker.epoch, asker.proto, asker.forwardedHost, asker.host, uri],
    '$corelane_cache_encoding',
    ...headers.map(headerVariable),
    ...cookies.map((_name, index) => `$corelane_key_cookie_${index}`),
  ];
  return [
    `set $corelane_cache_personal ${asker.personal};`,
    'corelane_notes_personal on;',
    'proxy_cache corelane;',
    `proxy_cache_key "${key.join('\\n')}";`,
    when(asker !== PEER, 'proxy_cache_background_update on;'),
    '# A render is for all who wait, whoever leaves.',
    'proxy_ignore_client_abort on;',
    `${words('proxy_ignore_headers', ...NOT_JUDGED)};`,
    'proxy_pass_header Date;',
    asker.hides,
    'proxy_hide_header Age;',
    '# HAProxy removes the request headers that are not in the cache key.',
    'proxy_set_header Connection "";',
    `proxy_set_header Host ${asker.host};`,
    '# A request ID that a client chose must not get into a shared page.',
    'proxy_set_header X-Request-ID $request_id;',
    asker.trace,
    HIDES_STATE,
    'proxy_set_header X-Corelane-Request $request_id;',
    `proxy_set_header X-Forwarded-For ${SHARED};`,
    `proxy_set_header X-Forwarded-Proto ${asker.proto};`,
    `proxy_set_header X-Forwarded-Host ${asker.forwardedHost};`,
    `proxy_set_header X-Real-IP ${asker.client};`,
    'proxy_set_header Forwarded "";',
    'proxy_set_header X-Corelane-Untrusted 1;',
    'proxy_set_header Cookie $corelane_cache_cookie;',
    'proxy_set_header Accept-Encoding $corelane_cache_encoding;',
    asker.fallback,
    given(model.priority, () => TELLS_CLASS),
    given(model.classes, () => TELLS_SERVED_AS),
    'proxy_set_header X-Corelane-Key $corelane_cache_key;',
    'proxy_set_header X-Corelane-Ttl $corelane_cache_ttl;',
    'proxy_set_header X-Corelane-Personal $corelane_cache_personal;',
    'proxy_set_header X-Corelane-Found $upstream_cache_status;',
    'proxy_set_header X-Corelane-Round $corelane_cache_round;',
    'proxy_set_header X-Corelane-Told $corelane_cache_told;',
    'proxy_set_header X-Corelane-Has-Stale $corelane_cache_has_stale;',
    asker.shares,
    asker.adds,
    `proxy_pass http://corelane_cached${query.mode === 'all' ? '' : '$corelane_cache_uri'};`,
  ];
}
