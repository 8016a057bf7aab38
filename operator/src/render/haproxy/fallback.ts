/** Errors of HAProxy's own that a browser gets: nginx has a page for it. */
import { words } from '../directives.ts';
import { SHELL } from '../nginx/fallback.ts';

/** Before the headers of nginx are taken away. */
export const NOTES_BROWSER =
  'http-request set-var(txn.browser) bool(true) if { req.hdr(X-Corelane-Fallback) -m found }';

export const LEADS_TO_SHELL = [
  "# An error that has no name is the application's, and passes.",
  words(
    'http-after-response set-var(txn.shell) bool(true)',
    'if { var(txn.browser) -m bool } { status 502 503 504 } { res.hdr(X-Corelane-Error) -m found }',
  ),
  `http-after-response set-header X-Accel-Redirect ${SHELL} if { var(txn.shell) -m bool }`,
];
