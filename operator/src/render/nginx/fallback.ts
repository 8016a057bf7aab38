/** A static page for a browser where Corelane has none for it. Programs and crawlers get JSON. */
import { SHELL_FILE } from '../../api/names.ts';
import { block, type Lines } from '../directives.ts';
import type { Fallback } from '../model/fallback.ts';
import { whole } from '../safe.ts';
import { pathPattern } from './patterns.ts';

/** Where HAProxy leads its errors. */
export const SHELL = '@corelane_fallback';

/** Statuses of requests that nginx refuses by itself. */
export type Refusal = 400 | 431;
/** What stands for "the page for a browser": with the status of `fallback`, or with that of a refusal. */
const LEADS = { shell: 424, 400: 425, 431: 423 };

/** Whether a request is a browser's that wants a page to show it. Most are not, and cost the first map only. */
export function browsers({ paths }: Fallback): Lines {
  return [
    '# $corelane_browser: it wants a page to show it to somebody.',
    block('map $corelane_method $corelane_browser', 'GET $corelane_takes_html;', 'HEAD $corelane_takes_html;'),
    block(
      'map $http_accept $corelane_takes_html',
      '"~*(?:^|,) *text/html *; *q=0(?:[.]0*)? *(?:,|$)" "";',
      '"~*(?:^|,) *text/html *(?:[;,]|$)" $corelane_navigates;',
      '"" $corelane_unread;',
    ),
    '# nginx has refused it before it read Accept and Host: it may be a browser.',
    block('map "$uri|$http_host" $corelane_unread', '"~^//corelane-[0-9]+\\|$" $corelane_in_paths;'),
    '# A script that fetches a page to put it into its own says so; who says nothing is an old browser, or without TLS.',
    block('map $http_sec_fetch_mode $corelane_navigates', '"" $corelane_visitor;', 'navigate $corelane_visitor;'),
    '# Nor does a browser make conditions to which nginx would answer 304 or 412 in place of the page.',
    block(
      'map "$corelane_crawler$corelane_prefetch$http_if_match$http_if_unmodified_since|$http_if_none_match" $corelane_visitor',
      '"~^\\|(?!\\*)" $corelane_in_paths;',
    ),
    block(
      'map $corelane_path $corelane_in_paths',
      paths.map((path) => `${pathPattern(path)} 1;`),
    ),
    '# The path as the client sent it, if nginx has refused the request by itself.',
    block('map $uri $corelane_path', 'default $uri;', '"~^//corelane-" $corelane_sent_path;'),
    block('map $corelane_target $corelane_sent_path', '"~^(?<corelane_before_query>[^?]*)" $corelane_before_query;'),
    '# Of an error that HAProxy has made, or of one of nginx. A request that is refused would be refused again.',
    block(
      'map "$corelane_reason|$upstream_http_retry_after" $corelane_retry_after',
      'default 1;',
      '"~^(?:bad-request|head-too-large)\\|" "";',
      '"~\\|(?<corelane_retry_s>[0-9]+)$" $corelane_retry_s;',
    ),
  ];
}

/** For HAProxy, which takes it away. */
export const TELLS_BROWSER = 'proxy_set_header X-Corelane-Fallback $corelane_browser;';

/** In `server`, beside the other error pages. */
export function shellPage({ status }: Fallback): Lines {
  return [
    '# These stand for "the page for a browser", with its own status and with that of a refusal.',
    `error_page ${LEADS.shell} =${whole(status, 'fallback.status')} @corelane_shell;`,
    ...([400, 431] as const).map((refusal) => `error_page ${LEADS[refusal]} =${refusal} @corelane_shell;`),
  ];
}

/** In the location of an error of nginx. */
export function leadsToShell(reason: string, refusal?: Refusal): Lines {
  return [`set $corelane_reason ${reason};`, block('if ($corelane_browser)', `return ${LEADS[refusal ?? 'shell']};`)];
}

/** The locations, each of which is a paragraph. */
export function shellLocations({ folder }: Fallback): Lines[] {
  const error = 'add_header X-Corelane-Error $corelane_reason always;';
  const retry = 'add_header Retry-After $corelane_retry_after always;';
  const json = `'{"error":"$corelane_reason"}'`;
  const closes = 'add_header Connection $upstream_http_x_corelane_connection always;';
  return [
    [
      '# HAProxy leads its own errors here.',
      block(`location ${SHELL}`, 'set $corelane_reason $upstream_http_x_corelane_error;', `return ${LEADS.shell};`),
    ],
    [
      '# The same bytes for everybody, but never instead of the page that is there a second later: nobody keeps it, and nothing in it',
      '# can be compared.',
      block(
        'location @corelane_shell',
        `root ${folder};`,
        `try_files /${SHELL_FILE} =404;`,
        '# 400: the body of a refused request is broken, too. 420: its client has as many requests as it may.',
        'error_page 400 403 404 420 500 = @corelane_no_shell;',
        'types {}',
        'default_type "text/html; charset=utf-8";',
        'etag off;',
        'if_modified_since off;',
        'max_ranges 0;',
        'add_header Last-Modified "" always;',
        'add_header Cache-Control no-store always;',
        retry,
        error,
        closes,
      ),
    ],
    [
      '# The ConfigMap is not there, or has no such key.',
      block(
        'location @corelane_no_shell',
        'default_type application/json;',
        retry,
        error,
        closes,
        block('if ($upstream_status ~ 502$)', `return 502 ${json};`),
        block('if ($upstream_status ~ 504$)', `return 504 ${json};`),
        block('if ($corelane_reason = bad-request)', `return 400 ${json};`),
        block('if ($corelane_reason = head-too-large)', `return 431 ${json};`),
        `return 503 ${json};`,
      ),
    ],
  ];
}
