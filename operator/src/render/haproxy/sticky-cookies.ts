/**
 * Cookies that keep a person at a revision: his place while there is a canary, and the revision that his page is of
 * (`rollout.stickiness.cookie: Always`). Both are for pages only, and the application does not see them.
 */
import { type Lines, when, words } from '../directives.ts';
import { whole } from '../safe.ts';
import { live } from './live.ts';

/** A person's place among 10,000. */
const PLACE = 'corelane-bucket';
/** Ten digits; Lua reads it (sidecar/haproxy/stickiness/actions.lua). */
const REVISION = 'corelane-rev';
/** As long as a canary may last; a person who has got another place may see the other side. */
const PLACE_SECONDS = 30 * 24 * 3600;
/** As long as pods of a revision may be kept (`rollout.retain.for`). */
const REVISION_SECONDS = 24 * 3600;

/** A request that has the cookie, where it counts. */
export const HAS_REVISION_COOKIE = `{ req.cook(${REVISION}) -m found } { ${live('sticky-cookie')} -m int 2 }`;

/** Before the cookies are taken out. */
export const NOTES_REVISION_COOKIE = `http-request set-var(txn.shown_revision) req.cook(${REVISION}) if ${HAS_REVISION_COOKIE}`;

/** Rules for requests: nobody behind this point sees them. */
export const TAKES_COOKIES_OUT: Lines = [
  '# These cookies are for this pod alone.',
  takesOut(PLACE),
  takesOut(REVISION),
  'http-request del-header Cookie if { req.fhdr_cnt(Cookie) eq 1 } { req.fhdr(Cookie) -m len 0 }',
];

/** Rules for responses; that for the cookie of the revision where anybody is kept at one. */
export function setsCookies(keepsRevision: boolean): Lines {
  return [
    'http-request set-var(txn.is_https) bool(true) if { req.hdr(X-Forwarded-Proto) -m str https }',
    '# A page that caches share would give one cookie to all, or no cache would take it any more.',
    'acl for_all res.hdr(Cache-Control),lower -m sub public s-maxage',
    'acl for_all res.hdr(CDN-Cache-Control) -m found',
    'acl for_all res.hdr(Surrogate-Control) -m found',
    'acl for_all var(txn.has_age) -m bool',
    words(
      `http-response set-var(txn.has_age) bool(true) if { res.hdr(Cache-Control),lower -m reg '^max-age="?0*[1-9]' }`,
      '!{ res.hdr(Cache-Control),lower -m sub private no-store no-cache }',
    ),
    sets(PLACE, 'txn.place', PLACE_SECONDS),
    when(
      keepsRevision,
      '# Nobody is kept where there is an error.',
      sets(REVISION, 'txn.new_revision', REVISION_SECONDS, '!{ status ge 500 }'),
    ),
  ];
}

function sets(name: string, variable: string, seconds: number, unless?: string): string[] {
  const cookie = `${name}=%[var(${variable})]; Path=/; Max-Age=${whole(seconds, 'cookie')}; SameSite=Lax; HttpOnly`;
  const set = (attributes: string, isHttps: string) =>
    words(
      `http-response add-header Set-Cookie "${cookie}${attributes}" if { var(${variable}) -m found } !for_all`,
      unless !== undefined && unless,
      isHttps,
    );
  return [set('', '!{ var(txn.is_https) -m bool }'), set('; Secure', '{ var(txn.is_https) -m bool }')];
}

function takesOut(name: string): string[] {
  const takes = (pattern: string, rest: string) =>
    `http-request replace-header Cookie ${pattern} ${rest} if { req.cook(${name}) -m found }`;
  return [takes(`'^(.*); *${name} *=[^;]*$'`, `'\\1'`), takes(`'^(.*; *)?${name} *=[^;]*(?:; *(.*))?$'`, `'\\1\\2'`)];
}
