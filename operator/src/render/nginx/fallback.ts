/** A static page for a browser where Corelane has none for it. Programs and crawlers get JSON. */
import { SHELL_FILE } from '../../api/names.ts';
import { block, type Lines } from '../directives.ts';
import type { Fallback } from '../model/fallback.ts';
import { whole } from '../safe.ts';
import { pathPattern } from './patterns.ts';

/** Where HAProxy leads its errors. */
export const SHELL = '@corelane_fallback';

/** Whether a request is a browser's that wants a page to show it. Most are not, and cost the first map only. */
export function browsers({ paths }: Fallback): Lines {
  return [
    '# $corelane_browser: it wants a page to show it to somebody.',
    block('map $request_method $corelane_browser', 'GET $corelane_takes_html;', 'HEAD $corelane_takes_html;'),
    block(
      'map $http_accept $corelane_takes_html',
      '"~*(?:^|,) *text/html *; *q=0(?:[.]0*)? *(?:,|$)" "";',
      '"~*(?:^|,) *text/html *(?:[;,]|$)" $corelane_navigates;',
    ),
    '# A script that fetches a page to put it into its own says so; who says nothing is an old browser, or without TLS.',
    block('map $http_sec_fetch_mode $corelane_navigates', '"" $corelane_visitor;', 'navigate $corelane_visitor;'),
    '# Nor does a browser make conditions to which nginx would answer 304 or 412 in place of the page.',
    block(
      'map "$corelane_crawler$corelane_prefetch$http_if_match$http_if_unmodified_since|$http_if_none_match" $corelane_visitor',
      '"~^\\|(?!\\*)" $corelane_in_paths;',
    ),
    block(
      'map $uri $corelane_in_paths',
      paths.map((path) => `${pathPattern(path)} 1;`),
    ),
    '# Of an error that HAProxy has made, or of one of nginx.',
    block(
      'map $upstream_http_retry_after $corelane_retry_after',
      'default 1;',
      '"~^[0-9]+$" $upstream_http_retry_after;',
    ),
  ];
}

/** For HAProxy, which takes it away. */
export const TELLS_BROWSER = 'proxy_set_header X-Corelane-Fallback $corelane_browser;';

/** In `server`, beside the other error pages. */
export function shellPage({ status }: Fallback): Lines {
  return [
    '# 424 stands for "the page for a browser".',
    `error_page 424 =${whole(status, 'fallback.status')} @corelane_shell;`,
  ];
}

/** In the location of an error of nginx. */
export function leadsToShell(reason: string): Lines {
  return [`set $corelane_reason ${reason};`, block('if ($corelane_browser)', 'return 424;')];
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
      block(`location ${SHELL}`, 'set $corelane_reason $upstream_http_x_corelane_error;', 'return 424;'),
    ],
    [
      '# The same bytes for everybody, but never instead of the page that is there a second later: nobody keeps it, and nothing in it',
      '# can be compared.',
      block(
        'location @corelane_shell',
        `root ${folder};`,
        `try_files /${SHELL_FILE} =404;`,
        'error_page 403 404 500 = @corelane_no_shell;',
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
        `return 503 ${json};`,
      ),
    ],
  ];
}
