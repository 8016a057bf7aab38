/** Breakages of what is no render. */
import { type Mutant, REMOVED } from './mutant.ts';

type Breakage = Omit<Mutant, 'file' | 'breaks'> & { breaks?: Mutant['breaks'] };

const nginx: Breakage[] = [
  {
    name: 'a class goes by the decoded path',
    breaks: 'I1',
    edits: [[/map \$request_uri \$corelane_place/g, 'map $uri $corelane_place']],
    caughtBy: 'classes: one that is spelled oddly',
  },
  {
    name: 'a class goes by how the path begins',
    breaks: 'I1',
    edits: [[/\(\?!\[\^\?\]\*[^"]*\)\)\)\/api/g, '/api']],
    caughtBy: 'classes: one that is spelled oddly',
  },
  {
    name: 'a client says of which class it is',
    breaks: 'I1',
    edits: [[/proxy_set_header X-Corelane-Served-As \$corelane_served_as;/g, REMOVED]],
    caughtBy: 'classes: a client cannot say',
  },
  {
    name: 'of several classes the last',
    edits: [[/~\^([0-9]) /g, '~$1$$ ']],
    caughtBy: 'classes: of several classes the first',
  },
  {
    name: 'WebSockets of a class are counted with the others',
    edits: [[/map "\$corelane_served_as\|\$http_upgrade"/g, 'map "|$http_upgrade"']],
    caughtBy: 'classes: a WebSocket of a class',
  },
];

const haproxy: Breakage[] = [
  {
    name: 'what is no render waits for a render slot',
    edits: [[/ +use_backend class-.*\n/g, REMOVED]],
    caughtBy: 'classes: it is answered while all workers render',
  },
  {
    name: 'a worker that renders is as good as one that does not',
    edits: [[/ +use-server %\[var\(txn\.idle_worker\)\].*\n/g, REMOVED]],
    caughtBy: 'classes: a worker without a render is chosen',
  },
  {
    name: 'the queue of a class has no end',
    breaks: 'I3',
    edits: [[/ +use_backend full-.*\n/g, REMOVED]],
    caughtBy: 'classes: its queue is its own',
  },
  {
    name: 'a client that leaves keeps its stream',
    edits: [[/(backend class-.*\n +balance leastconn\n) +option abortonclose\n/g, '$1']],
    caughtBy: 'classes: a hundred of them take no render slot',
  },
  {
    name: 'requests of a class fail while no worker is up',
    breaks: 'I2',
    edits: [[/ +server waiting-room unix@\/run\/corelane\/class-waiting-room.*\n/g, REMOVED]],
    caughtBy: 'classes: nothing is lost while no worker is up',
  },
  {
    name: 'nobody knows which worker had a request of a class',
    breaks: 'I2',
    edits: [[/ pool-conn-name \S+txn\.request\),lua\.corelane_sent\([0-9]+\)/g, REMOVED]],
    caughtBy: 'classes: what was begun is replayed if it may be',
  },
  {
    name: 'a class that is not replayed is',
    breaks: 'I2',
    edits: [[/ +http-request set-var\(txn\.only_once\) bool\(true\) if \{ var\(txn\.served_as\) .*\n/g, REMOVED]],
    caughtBy: 'classes: a GET that was begun goes to no other worker',
  },
  {
    name: 'a worker is not told that a request is of a class',
    breaks: 'I1',
    edits: [[/ +http-request set-header X-Corelane-Class .*\n/g, REMOVED]],
    caughtBy: 'classes: it is answered while all workers render',
  },
];

const lua: Breakage[] = [
  {
    name: 'streams are open until a drain has come to its end',
    breaks: 'drain',
    edits: [[/worker\.server:shut_sess\(\)/g, 'local _ = worker']],
    caughtBy: 'classes: at a drain they go on',
  },
  {
    name: 'streams are cut as soon as a drain begins',
    breaks: 'drain',
    edits: [[/ms >= class\.drain_ms/g, 'true']],
    caughtBy: 'classes: at a drain they go on',
  },
  {
    name: 'an open download counts as a render',
    edits: [[/ - without_slot\.of\(worker\.name\)/g, REMOVED]],
    caughtBy: 'classes: a worker that has open downloads',
  },
];

const runtime: Breakage[] = [
  {
    name: 'a worker begins as many requests of a class as come',
    edits: [[/this\.#responses\.size < this\.#limit/g, 'true']],
    caughtBy: 'classes: who waits too long for a place',
  },
  {
    name: 'what nobody waits for has no place',
    edits: [[/else untilEnded\(.*\);/g, 'else end();']],
    caughtBy: 'classes: who waits too long for a place',
  },
];

const limiter: Breakage[] = [
  {
    name: 'a page is of the class of the request that asks for it',
    breaks: 'I1',
    edits: [[/if \(socket && this\.#own\.isOwn\(socket\)\) return .*;/g, REMOVED]],
    caughtBy: 'own-requests: a page that a request of a class',
  },
  {
    name: 'a request of a class is a render that is late',
    edits: [[/if \(places\) return limiter\.#enterPlaces\(.*\);/g, REMOVED]],
    caughtBy: 'classes: it may take longer than a render',
  },
];

const of = (file: Mutant['file'], breakages: Breakage[]): Mutant[] =>
  breakages.map((mutant) => ({ breaks: 'classes', ...mutant, file }));

export const classes: Mutant[] = [
  ...of('nginx.conf', nginx),
  ...of('haproxy.cfg', haproxy),
  ...of('classes.lua', lua),
  ...of('class-places.cjs', runtime),
  ...of('concurrency-limiter.cjs', limiter),
];
