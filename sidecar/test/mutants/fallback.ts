/** Breakages of the page that a browser gets where there is none. */
import { type Mutant, REMOVED } from './mutant.ts';

const nginx: Omit<Mutant, 'file' | 'breaks'>[] = [
  {
    name: 'crawlers get the page',
    edits: [[/ +"~\*\(\?<!cu\)bot.*\n/g, REMOVED]],
    caughtBy: 'fallback: who is no browser that shows a page',
  },
  {
    name: 'a browser that looks ahead gets the page',
    edits: [[/\$corelane_crawler\$corelane_prefetch/g, '$corelane_crawler']],
    caughtBy: 'fallback: who is no browser that shows a page',
  },
  {
    name: 'scripts get the page',
    edits: [[/"" \$corelane_visitor;/g, 'default $corelane_visitor;']],
    caughtBy: 'fallback: who is no browser that shows a page',
  },
  {
    name: 'a condition is answered in place of the page',
    edits: [[/\(\?!\\\*\)/g, REMOVED]],
    caughtBy: 'fallback: who is no browser that shows a page',
  },
  {
    name: 'a form gets the page',
    edits: [[/HEAD \$corelane_takes_html;/g, 'HEAD $corelane_takes_html; POST $corelane_takes_html;']],
    caughtBy: 'fallback: who is no browser that shows a page',
  },
  {
    name: 'a path is the beginning of others',
    edits: [[/\(\?:\/\|\$\)" 1;/g, '" 1;']],
    caughtBy: 'fallback: who is no browser that shows a page',
  },
  {
    name: 'caches keep the page',
    edits: [[/ +add_header Cache-Control no-store always;\n/g, REMOVED]],
    caughtBy: 'fallback: a browser gets the page',
  },
  {
    name: 'the page has a date',
    edits: [[/ +add_header Last-Modified "" always;\n/g, REMOVED]],
    caughtBy: 'fallback: a browser gets the page',
  },
  {
    name: 'the page is compared with what a browser has',
    edits: [[/if_modified_since off/g, 'if_modified_since before']],
    caughtBy: 'fallback: whatever a browser says it has',
  },
  {
    name: 'parts of the page',
    edits: [[/max_ranges 0/g, 'max_ranges 1']],
    caughtBy: 'fallback: whatever a browser says it has',
  },
  {
    name: 'a page that is not there is an error of its own',
    edits: [[/ +error_page 400 403 404 420 500 = @corelane_no_shell;\n/g, REMOVED]],
    caughtBy: 'fallback: that is not there',
  },
  {
    name: 'a client that has more requests than it may gets a page that asks for more',
    edits: [[/return 429 .*;/g, 'return 424;']],
    caughtBy: 'fallback: a client that has more requests',
  },
  {
    name: 'a form that nginx has refused gets the page',
    edits: [[/map \$corelane_method \$corelane_browser/g, 'map $request_method $corelane_browser']],
    caughtBy: 'fallback: a form that nginx refuses',
  },
  {
    name: 'whoever has sent no header that nginx has read gets JSON',
    edits: [[/ +"" \$corelane_unread;\n/g, REMOVED]],
    caughtBy: 'fallback: what nginx refuses keeps its status',
  },
];

const haproxy: Omit<Mutant, 'file' | 'breaks'>[] = [
  {
    name: 'a page in place of the errors of an application',
    edits: [[/(set-var\(txn\.shell\) .*) { res\.hdr\(X-Corelane-Error\) -m found }/g, '$1']],
    caughtBy: 'fallback: an error 503 of the application passes',
  },
  {
    name: 'a page for programs',
    edits: [[/(set-var\(txn\.shell\) .*){ var\(txn\.browser\) -m bool } /g, '$1']],
    caughtBy: 'fallback: who is no browser that shows a page',
  },
];

export const fallback: Mutant[] = [
  ...nginx.map((mutant) => ({ ...mutant, breaks: 'fallback' as const, file: 'nginx.conf' as const })),
  ...haproxy.map((mutant) => ({ ...mutant, breaks: 'fallback' as const, file: 'haproxy.cfg' as const })),
];
