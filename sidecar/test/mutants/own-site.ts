/** Breakages of what renders send to their own site. */
import { exactly, type Mutant, REMOVED } from './mutant.ts';

type Breakage = Omit<Mutant, 'file' | 'breaks'> & { breaks?: Mutant['breaks'] };

const haproxy: Breakage[] = [
  {
    name: 'what a render sends to its own site waits for a slot',
    edits: [[/ +use_backend %\[var\(txn\.own_site\)\] if own_site\n/g, REMOVED]],
    caughtBy: 'own-requests: only a mark that counts',
  },
  {
    name: 'whoever has a mark gets as many places as he likes',
    breaks: 'I3',
    edits: [[/ maxconn [0-9]+ track workers/g, ' track workers']],
    caughtBy: 'own-requests: who has a mark gets eight places',
  },
  {
    name: 'few of the requests that a page sends to its own site may wait for a place',
    edits: [[/\{ var\(txn\.own_waiting\) -m int ge [0-9]+ \}/g, '{ var(txn.own_waiting) -m int ge 2 }']],
    caughtBy: 'own-requests: with more requests at a time',
  },
  {
    name: 'a chain of such requests has no end',
    breaks: 'I3',
    edits: [
      [
        /(set-header X-Corelane-Own-Site) 2\n/g,
        '$1 "2 %[str(1),map(/usr/share/corelane/haproxy/own-site-marks.map)]"\n',
      ],
    ],
    caughtBy: 'own-requests: whose answer asks it',
  },
  {
    name: 'what such a request sends has the places of its sender',
    edits: [[/"1 %\[str\(2\),/g, '"1 %[str(1),']],
    caughtBy: 'own-requests: whose answer asks it',
  },
];

const marks: Breakage[] = [
  {
    name: 'a mark counts for ever',
    edits: [[/period - past, period/g, 'period - 99, period']],
    caughtBy: 'lua: own-site.lua',
  },
];

const cache: Breakage[] = [
  {
    name: 'what a render sends to its own site waits for a page that waits for a slot',
    edits: [[exactly(", txn:get_var('txn.own_site') or ''"), REMOVED]],
    caughtBy: 'cache-classes: what a render sends to its own site',
  },
  {
    name: 'it waits for the slots of another pod',
    edits: [[exactly("if txn:get_var('txn.own_site') then return here end"), REMOVED]],
    caughtBy: 'cache-shared: what a render has sent to its own site',
  },
];

const runtime: Breakage[] = [
  {
    name: 'a mark goes to whatever host',
    edits: [[/if \(wanted === ''\) return false;/g, 'return true;']],
    caughtBy: 'own-requests: a mark goes to no other site',
  },
  {
    name: 'a mark goes to another site behind the address of the own one',
    edits: [[exactly('isOther ? {} : site'), 'site']],
    caughtBy: 'own-requests: whose address leads to several sites',
  },
  {
    name: 'the program sees its mark',
    edits: [[/delete headers\[NAME\];/g, REMOVED]],
    caughtBy: 'own-requests: a mark goes to no other site',
  },
  {
    name: 'nobody is told that a queue refuses what a render sends',
    edits: [[/this\.#metrics\.ownSiteRefused\[0\] \+= 1;/g, REMOVED]],
    caughtBy: 'own-requests: a full queue that refuses',
  },
];

const limiter: Breakage[] = [
  {
    name: 'a worker lets what a render has sent wait for its own render',
    edits: [[/this\.#ownSite\[depth - 1\] \?\? /g, REMOVED]],
    caughtBy: 'own-requests: only a mark that counts',
  },
  {
    name: 'what a child process asks waits for the render that waits for it',
    edits: [[/this\.#watchRelative\(entering\);/g, ';']],
    caughtBy: 'own-requests: gets its answer, and no other process',
  },
];

const refusals: Breakage[] = [
  {
    name: 'the reason of a refusal does not count',
    edits: [[/if \(!REFUSALS\.includes\(error\)\) return;/g, 'return;']],
    caughtBy: 'own-requests: a full queue that refuses',
  },
];

const childWaits: Breakage[] = [
  {
    name: 'the log does not name the child process that a render waits beside',
    edits: [[/this\.#tell\(this\.#running\.get\(child\)\.name\);/g, REMOVED]],
    caughtBy: 'own-requests: a render that waits beside a child process',
  },
];

const processes: Breakage[] = [
  {
    name: 'any process of the pod passes as a child of the worker',
    breaks: 'I1',
    edits: [[/if \(inode === undefined\) return false;/g, 'return true;']],
    caughtBy: 'own-requests: gets its answer, and no other process',
  },
];

const of = (file: Mutant['file'], breakages: Breakage[]): Mutant[] =>
  breakages.map((mutant) => ({ breaks: 'own site', ...mutant, file }));

export const ownSite: Mutant[] = [
  ...of('haproxy.cfg', haproxy),
  ...of('own-site/marks.lua', marks),
  ...of('cache.lua', cache),
  ...of('own-site.cjs', runtime),
  ...of('concurrency-limiter.cjs', limiter),
  ...of('processes.cjs', processes),
  ...of('refusals.cjs', refusals),
  ...of('child-waits.cjs', childWaits),
];
