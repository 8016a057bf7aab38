/**
 * Deliberate breakages of the data plane, each with the test that must notice it. `make test-mutants` tries them all;
 * docs/testing.md explains the invariants I1 to I7.
 */

export type MutantFile =
  | 'haproxy.cfg'
  | 'nginx.conf'
  | 'corelane.lua'
  | `pooling/${'answering' | 'askers' | 'borrowing' | 'heartbeats' | 'offering' | 'peers' | 'readiness' | 'reservations' | 'tickets'}.lua`
  | 'peer-key.lua'
  | 'peer-questions.lua'
  | 'second-tries.lua'
  | 'quarantine.lua'
  | 'corelane-drain'
  | `${'entrypoint' | 'listeners' | 'settings'}.c`
  | `${RuntimeModule}.cjs`;

/** Of the runtime, those that are broken. */
export const RUNTIME_MODULES = [
  'abandoned',
  'begun',
  'child',
  'gate',
  'head',
  'health',
  'length',
  'lifecycle',
  'pages',
  'questions',
  'recycler',
  'recycling',
  'servers',
  'stalls',
  'thread',
  'watchdog',
  'worker',
] as const;
type RuntimeModule = (typeof RUNTIME_MODULES)[number];

export interface Mutant {
  name: string;
  breaks:
    | 'I1'
    | 'I2'
    | 'I3'
    | 'I4'
    | 'I5'
    | 'I6'
    | 'I7'
    | 'drain'
    | 'readiness'
    | 'pooling'
    | 'peers'
    | 'runtime'
    | 'forwarded'
    | 'doors';
  file: MutantFile;
  /** Every match of each pattern is replaced. */
  edits: [find: RegExp, replace: string][];
  /** `file: part of a test's name`; only these tests are run. */
  caughtBy: string;
}

const REMOVED = '';
const ERROR_REPLY = `content-type application/json string '[^']*' hdr X-Corelane-Error`;

const haproxy: Omit<Mutant, 'file'>[] = [
  {
    name: 'two requests per worker',
    breaks: 'I1',
    edits: [
      [/maxconn 1 /g, 'maxconn 2 '],
      [/slots\.sock maxconn [0-9]+/g, 'slots.sock maxconn 100'],
    ],
    caughtBy: 'serving: no worker ever has two requests',
  },
  {
    name: 'an abort frees the slot (option abortonclose)',
    breaks: 'I1',
    edits: [[/no option abortonclose/g, 'option abortonclose']],
    caughtBy: 'serving: a render goes on when its client leaves',
  },
  {
    name: 'who has left the queue is rendered',
    breaks: 'I2',
    edits: [[/\n {2}option abortonclose/g, REMOVED]],
    caughtBy: 'client-gone: a queued request whose client has gone',
  },
  {
    name: 'the queue is where nobody is seen leaving (second stage)',
    breaks: 'I2',
    edits: [[/slots\.sock maxconn [0-9]+/g, 'slots.sock maxconn 1000']],
    caughtBy: 'client-gone: a queued request whose client has gone',
  },
  {
    name: 'a stalled second stage is waited for shorter than a render takes',
    breaks: 'I2',
    edits: [[/(backend line\n(?: {2}.*\n)*? {2}timeout server) [0-9]+ms/g, '$1 500ms']],
    caughtBy: 'serving: a body of 1 MB arrives whole',
  },
  {
    name: 'idle workers are not checked',
    breaks: 'I2',
    edits: [[/check inter 1s/g, 'check inter 1h']],
    caughtBy: 'workers: die while nobody asks',
  },
  {
    name: 'workers that are back are not seen',
    breaks: 'I2',
    edits: [[/downinter 100ms/g, 'downinter 1h']],
    caughtBy: 'workers: no worker has ever been up',
  },
  {
    name: 'a refused connection does not take a worker out (no observe)',
    breaks: 'I2',
    edits: [[/ observe layer4 error-limit 1 on-error mark-down/g, REMOVED]],
    caughtBy: 'workers: all workers die',
  },
  {
    name: 'no second try after a refused connection',
    breaks: 'I2',
    edits: [
      [/retries [0-9]+/g, 'retries 0'],
      [/ {2}option redispatch 1\n/g, REMOVED],
    ],
    caughtBy: 'workers: dead before HAProxy knows',
  },
  {
    name: 'three tries, whatever the number of workers',
    breaks: 'I2',
    edits: [[/retries [4-9]/g, 'retries 3']],
    caughtBy: 'workers: many workers are dead',
  },
  {
    name: 'no waiting room',
    breaks: 'I2',
    edits: [[/ {2}server waiting-room .*\n/g, REMOVED]],
    caughtBy: 'workers: no worker has ever been up',
  },
  {
    name: 'a dead worker looks like a 502 of the application',
    breaks: 'I2',
    edits: [[/ {2}errorfile 502 .*\n/g, REMOVED]],
    caughtBy: 'replay: Safe kill -9 of the worker that renders a GET',
  },
  {
    name: 'a pod whose workers are all busy is not ready',
    breaks: 'I6',
    edits: [[/ \{ nbsrv\(workers-alive\) eq 0 \}/g, REMOVED]],
    caughtBy: 'hanging: workers that all wait for a dependency',
  },
  {
    name: 'busy workers are called none',
    breaks: 'I3',
    edits: [[/ {2}http-request return .* queue-timeout .* if in_vain .*\n/g, REMOVED]],
    caughtBy: 'hanging: workers that all wait for a dependency',
  },
  {
    name: 'no limit of the queue',
    breaks: 'I3',
    edits: [[/ {2}http-request return .* if no_slot queue_full( !poison)?\n/g, REMOVED]],
    caughtBy: 'limits: a full queue refuses at once',
  },
  {
    name: 'no time limit in the queue',
    breaks: 'I3',
    edits: [[/timeout queue [0-9]+ms/g, 'timeout queue 1h']],
    caughtBy: 'limits: who waits too long',
  },
  {
    name: 'no time limit of a render',
    breaks: 'I3',
    edits: [[/timeout server [0-9]+ms/g, 'timeout server 1h']],
    caughtBy: 'limits: a render beyond its limit',
  },
  {
    name: 'queue-full without Retry-After',
    breaks: 'I3',
    edits: [[new RegExp(`(${ERROR_REPLY} queue-full) hdr Retry-After 1`, 'g'), '$1']],
    caughtBy: 'limits: a full queue refuses at once',
  },
  {
    name: 'queue-timeout without Retry-After',
    breaks: 'I3',
    edits: [[new RegExp(`(${ERROR_REPLY} queue-timeout) hdr Retry-After 1`, 'g'), '$1']],
    caughtBy: 'limits: who waits too long',
  },
  {
    name: 'an application can claim to be the proxy',
    breaks: 'I3',
    edits: [[/ {2}http-response del-header X-Corelane- .*\n/g, REMOVED]],
    caughtBy: 'limits: errors of the application pass through',
  },
  {
    name: 'a client can claim to have waited',
    breaks: 'I3',
    edits: [[/ {2}http-request del-header X-Corelane- -m beg\n/g, REMOVED]],
    caughtBy: 'serving: a worker sees who asked',
  },
  {
    name: 'a stranger may send what only proxies send',
    breaks: 'forwarded',
    edits: [[/ {2}http-request del-header '\^\(x-forwarded.*\n/g, REMOVED]],
    caughtBy: 'forwarded: of a stranger nothing is believed',
  },
  {
    name: 'the request of a peer goes over a kept connection (http-reuse always)',
    breaks: 'I2',
    edits: [[/http-reuse safe/g, 'http-reuse always']],
    caughtBy: 'pooling: a POST whose worker in another pod dies',
  },
  {
    name: 'who comes after a 401 is tied to that worker',
    breaks: 'I5',
    edits: [[/ {2}http-after-response set-header Connection close if { status .*\n/g, REMOVED]],
    caughtBy: 'kept-connections: a worker that wants to authenticate',
  },
  {
    name: 'a second try goes over a kept connection',
    breaks: 'I5',
    edits: [[/ {2}http-after-response set-header Connection close if { so_name .*\n/g, REMOVED]],
    caughtBy: 'kept-connections: a connection that ends just',
  },
  {
    name: 'connections to workers without runtime are kept',
    breaks: 'I5',
    edits: [
      [/ {2}option http-server-close\n/g, REMOVED],
      [/http-reuse never/g, 'http-reuse always'],
    ],
    caughtBy: 'kept-connections: without the runtime',
  },
  {
    name: 'no connection is kept',
    breaks: 'I5',
    edits: [[/ {2}no option http-server-close\n/g, REMOVED]],
    caughtBy: 'kept-connections: a GET goes over',
  },
  {
    name: 'idle connections to workers are kept for longer than Node.js does',
    breaks: 'I5',
    edits: [[/pool-purge-delay 1s/g, 'pool-purge-delay 1h']],
    caughtBy: 'kept-connections: idle connections to a worker',
  },
  {
    name: 'who has left the waiting room is still counted there',
    breaks: 'I3',
    edits: [[/backup pool-max-conn 0/g, 'backup']],
    caughtBy: 'kept-connections: nobody is left in the waiting room',
  },
  {
    name: 'the entrance belongs to HAProxy and goes with it',
    breaks: 'I2',
    edits: [[/bind "\$\{CORELANE_FRONT\}"/g, 'bind unix@/run/corelane/front.sock']],
    caughtBy: 'proxies: HAProxy dies',
  },
  {
    name: 'the entrance of second tries belongs to HAProxy and goes with it',
    breaks: 'I2',
    edits: [[/bind "\$\{CORELANE_REPLAY\}"/g, 'bind unix@/run/corelane/replay.sock']],
    caughtBy: 'proxies: HAProxy dies',
  },
  {
    name: 'a second try is not held while workers die',
    breaks: 'I2',
    edits: [[/ {2}http-request lua\.wait_until_calm .*\n/g, REMOVED]],
    caughtBy: 'replay: workers die one after the other',
  },
  {
    name: 'a second try stands last in line',
    breaks: 'I2',
    edits: [[/ {2}http-request set-priority-class .*\n/g, REMOVED]],
    caughtBy: 'replay: a second try is first in line',
  },
  {
    name: 'nobody asks whether a request was begun',
    breaks: 'I2',
    edits: [[/ {2}http-response lua\.ask_whether_begun .*\n/g, REMOVED]],
    caughtBy: 'replay: Safe a POST of 0 bytes that its worker has not begun',
  },
  {
    name: 'a peer does not tell that its worker had not begun a request',
    breaks: 'I2',
    edits: [[/ {2}http-response set-header X-Corelane-Unbegun .*\n/g, REMOVED]],
    caughtBy: 'pooling: a POST whose worker in another pod dies',
  },
  {
    name: 'what applications tell nginx is passed on',
    breaks: 'I4',
    edits: [[/ {2}http-response del-header X-Accel- -m beg\n/g, REMOVED]],
    caughtBy: 'x-accel: change nothing, and nobody sees them',
  },
  {
    name: 'a HAProxy that is back says "no worker" before it has asked',
    breaks: 'readiness',
    edits: [[/ {2}http-request lua\.wait_for_first_worker .*\n/g, REMOVED]],
    caughtBy: 'proxies: HAProxy dies',
  },
  {
    name: 'ready without a worker',
    breaks: 'readiness',
    edits: [[/ {2}http-request return status 503 .* no-worker if { path \/readyz } .*\n/g, REMOVED]],
    caughtBy: 'workers: all workers die',
  },
  {
    name: 'ready while draining',
    breaks: 'drain',
    edits: [[/ {2}http-request return status 503 .* draining if { path \/readyz } .*\n/g, REMOVED]],
    caughtBy: 'drain: nothing is lost',
  },
];

const doors: Omit<Mutant, 'file'>[] = [
  {
    name: 'whole pages as often as anybody likes',
    breaks: 'doors',
    edits: [[/ {2}http-request return status 429 .*\n/g, REMOVED]],
    caughtBy: 'doors: pages with all figures',
  },
  {
    name: 'a page is narrow because it says so',
    breaks: 'doors',
    edits: [[/\^\(no-maint&.*$/gm, 'metrics=']],
    caughtBy: 'doors: pages with all figures',
  },
  {
    name: 'the statistics page for whatever path',
    breaks: 'doors',
    edits: [[/ {2}http-request return status 404 .* unless statistics.*\n/g, REMOVED]],
    caughtBy: 'doors: what is not there',
  },
  {
    name: 'clear-text HTTP/2',
    breaks: 'doors',
    edits: [[/ {2}option disable-h2-upgrade\n/g, REMOVED]],
    caughtBy: 'doors: no listener speaks',
  },
  {
    name: 'idle connections wait as long as they like',
    breaks: 'doors',
    edits: [[/timeout http-request 2s\n/g, 'timeout http-request 1h\n']],
    caughtBy: 'doors: the node to each port',
  },
  {
    name: 'as many pages as 5,000 connections can ask for',
    breaks: 'doors',
    edits: [
      [/ {2}http-request return status 429 .*\n/g, REMOVED],
      [/ {2}rate-limit sessions .*\n/g, REMOVED],
      [/ {2}option httpclose\n/g, REMOVED],
      [/ {2}maxconn [0-9]+\n/g, REMOVED],
    ],
    caughtBy: 'doors: the node to each port',
  },
  {
    name: 'strangers are as welcome as kubelet',
    breaks: 'doors',
    edits: [[/ {2}tcp-request connection reject .*\n/g, REMOVED]],
    caughtBy: 'doors: another pod to each port',
  },
];

const nginx: Omit<Mutant, 'file'>[] = [
  {
    name: 'request bodies are not buffered',
    breaks: 'I4',
    edits: [[/proxy_request_buffering on/g, 'proxy_request_buffering off']],
    caughtBy: 'serving: a client that trickles its body',
  },
  {
    name: 'responses are not buffered',
    breaks: 'I4',
    edits: [[/proxy_buffering on/g, 'proxy_buffering off']],
    caughtBy: 'serving: a client that does not read',
  },
  {
    name: 'large responses are not buffered (no temporary file)',
    breaks: 'I4',
    edits: [[/proxy_max_temp_file_size [0-9]+/g, 'proxy_max_temp_file_size 0']],
    caughtBy: 'serving: a client that does not read',
  },
  {
    name: 'no replay',
    breaks: 'I2',
    edits: [[/proxy_next_upstream error non_idempotent;/g, 'proxy_next_upstream off;']],
    caughtBy: 'replay: Safe kill -9 of the worker that renders a GET',
  },
  {
    name: 'a POST over a kept connection has no second try',
    breaks: 'I2',
    edits: [[/proxy_next_upstream error non_idempotent;/g, 'proxy_next_upstream error;']],
    caughtBy: 'replay: Safe a POST of 0 bytes that its worker has not begun is not lost over a kept',
  },
  {
    name: 'nothing else but safe methods is replayed although all may',
    breaks: 'I2',
    edits: [[/proxy_next_upstream error non_idempotent;/g, 'proxy_next_upstream error;']],
    caughtBy: 'replay: Always kill -9 of the worker that renders a POST',
  },
  {
    name: 'a 502 of the application is replayed',
    breaks: 'I2',
    edits: [[/proxy_next_upstream error non_idempotent;/g, 'proxy_next_upstream error non_idempotent http_502;']],
    caughtBy: 'limits: errors of the application pass through',
  },
  {
    name: 'a client may pause in its body for ever',
    breaks: 'I3',
    edits: [[/client_body_timeout [0-9]+ms/g, 'client_body_timeout 1h']],
    caughtBy: 'limits: a client that stops in the middle of its body',
  },
  {
    name: 'no limit of the body',
    breaks: 'I3',
    edits: [[/client_max_body_size [0-9]+/g, 'client_max_body_size 0']],
    caughtBy: 'serving: a body beyond the limit',
  },
  {
    name: 'a request that queues with a large body is given up',
    breaks: 'I2',
    edits: [[/proxy_send_timeout [0-9]+ms/g, 'proxy_send_timeout 500ms']],
    caughtBy: 'serving: a body of 1 MB arrives whole',
  },
  {
    name: 'each request has its own connection to HAProxy',
    breaks: 'I5',
    edits: [[/proxy_set_header Connection "";/g, 'proxy_set_header Connection close;']],
    caughtBy: 'kept-connections: a POST goes over the connections',
  },
  {
    name: 'two dead workers, the first one over a kept connection, look like a dead HAProxy',
    breaks: 'I3',
    edits: [[/ {4}"~, \[0-9\.\]\+, -\$" worker-died;\n/g, REMOVED]],
    caughtBy: 'kept-connections: a request that kills its worker',
  },
  {
    name: 'any number of bodies on disk',
    breaks: 'I3',
    edits: [[/corelane_large_bodies [0-9]+/g, 'corelane_large_bodies 64000']],
    caughtBy: 'budget: 1,000 clients that stall in a body of 256 KiB',
  },
  {
    name: 'the kernel keeps as much of a response as it likes',
    breaks: 'I3',
    edits: [[/ sndbuf=[0-9]+/g, REMOVED]],
    caughtBy: 'budget: more clients that do not read',
  },
  {
    name: 'the place of a slow client is free only when it has read its error',
    breaks: 'I3',
    edits: [[/ {6}lingering_close off;\n/g, REMOVED]],
    caughtBy: 'budget: 1,000 clients that stall in a body of 256 KiB',
  },
  {
    name: 'a slow client holds a worker for as long as it likes',
    breaks: 'I4',
    edits: [[/corelane_worker_held_max .*;/g, 'corelane_worker_held_max 1h;']],
    caughtBy: 'budget: a client that slowly reads a page',
  },
  {
    name: 'any number of bodies in memory',
    breaks: 'I3',
    edits: [[/corelane_bodies [0-9]+/g, 'corelane_bodies 64000']],
    caughtBy: 'budget: 1,000 clients that stall in a body that fits',
  },
  {
    name: 'any number of requests',
    breaks: 'I3',
    edits: [[/corelane_requests [0-9]+/g, 'corelane_requests 64000']],
    caughtBy: 'budget: more requests than memory is for',
  },
  {
    name: 'anybody is believed to be a proxy',
    breaks: 'forwarded',
    edits: [[/default 1;\n( {4}[0-9a-f:])/g, 'default "";\n$1']],
    caughtBy: 'forwarded: of a stranger nothing is believed',
  },
  {
    name: 'the client is the last proxy',
    breaks: 'forwarded',
    edits: [[/real_ip_recursive on/g, 'real_ip_recursive off']],
    caughtBy: 'forwarded: X-Forwarded-For of a trusted proxy, proxies after',
  },
  {
    name: 'what a client wrote into X-Forwarded-For passes behind a proxy',
    breaks: 'forwarded',
    edits: [[/(X-Forwarded-For) \$corelane_forwarded_for/g, '$1 $proxy_add_x_forwarded_for']],
    caughtBy: 'forwarded: X-Forwarded-For of a trusted proxy, what the client wrote',
  },
  {
    name: 'Forwarded passes, which nobody has read',
    breaks: 'forwarded',
    edits: [[/ {2}proxy_set_header Forwarded "";\n/g, REMOVED]],
    caughtBy: 'forwarded: of a trusted proxy it is believed',
  },
  {
    name: 'any X-Forwarded-Host passes',
    breaks: 'forwarded',
    edits: [[/(X-Forwarded-Host) \$corelane_forwarded_host/g, '$1 $http_x_forwarded_host']],
    caughtBy: 'forwarded: of a stranger nothing is believed',
  },
  {
    name: 'nginx and a worker may see different hosts',
    breaks: 'I5',
    edits: [[/return 419;/g, 'break;']],
    caughtBy: 'forwarded: refused: another host in the URL',
  },
  {
    name: 'two blanks hide the host of a URL',
    breaks: 'I5',
    edits: [[/\^\[\^ \]\+ \+\[A-Za-z\]/g, '^[^ ]+ [A-Za-z]']],
    caughtBy: 'forwarded: refused: another host in the URL after two blanks',
  },
  {
    name: 'ping goes through a worker',
    breaks: 'I6',
    edits: [[/return 200 "ok\\n";/g, 'proxy_pass http://corelane;']],
    caughtBy: 'serving: answer while all workers are busy',
  },
  {
    name: 'the access log writes what clients send',
    breaks: 'I7',
    edits: [[/escape=json/g, 'escape=none']],
    caughtBy: 'serving: the access log has one harmless line',
  },
  {
    name: 'any request id is passed on',
    breaks: 'I7',
    edits: [[/default \$request_id;/g, 'default $http_x_request_id;']],
    caughtBy: 'serving: request id',
  },
  {
    name: 'the mark of a drain is ignored',
    breaks: 'drain',
    edits: [[/-f \/run\/corelane\/draining/g, '-f /run/corelane/other']],
    caughtBy: 'drain: nothing is lost',
  },
  {
    name: 'no "Connection: close" while draining',
    breaks: 'drain',
    edits: [[/keepalive_timeout 0;/g, REMOVED]],
    caughtBy: 'drain: nothing is lost',
  },
  {
    name: 'who has asked before a drain keeps the connection',
    breaks: 'drain',
    edits: [[/ {6}add_header Connection .*\n/g, REMOVED]],
    caughtBy: 'drain: who has asked before the drain',
  },
  {
    name: 'nginx waits for its clients for ever',
    breaks: 'drain',
    edits: [[/worker_shutdown_timeout [0-9]+ms;/g, REMOVED]],
    caughtBy: 'drain: drain.timeout releases the workers whatever',
  },
];

const lua: Omit<Mutant, 'file'>[] = [
  {
    name: 'for a HAProxy that has just begun an open port is enough',
    breaks: 'runtime',
    edits: [[/server:check_disable\(\)/g, '']],
    caughtBy: 'not-warm-yet: HAProxy, when it begins',
  },
  {
    name: 'workers count as up before they were seen',
    breaks: 'readiness',
    edits: [[/server:check_force_down\(\)/g, '']],
    caughtBy: 'workers: a proxy that starts anew',
  },
  {
    name: 'the waiting room does not wait',
    breaks: 'I2',
    edits: [[/while workers_up\(\) == 0 and/g, 'while false and']],
    caughtBy: 'workers: no worker has ever been up',
  },
  {
    name: 'the waiting room waits for ever',
    breaks: 'I3',
    edits: [[/ and corelane_now_ms\(\) - came_ms < settings\['queue-timeout-ms'\]/g, '']],
    caughtBy: 'no-worker: a request waits for a worker',
  },
  {
    name: 'workers are released at once',
    breaks: 'drain',
    edits: [[/if drained\(\) then return end/g, 'if true then return end']],
    caughtBy: 'drain: nothing is lost',
  },
  {
    name: 'nginx stops although endpoint lists still name the pod',
    breaks: 'drain',
    edits: [[/requests, quiet_since_ms = total, corelane_now_ms\(\)/g, 'requests = total']],
    caughtBy: 'drain: a late endpoint list',
  },
  {
    name: 'workers are released while nginx has requests',
    breaks: 'drain',
    edits: [[/not exists\(NGINX_STOPPED_MARK\) or /g, REMOVED]],
    caughtBy: 'drain: nothing is lost',
  },
  {
    name: 'drain.timeout does not release the workers',
    breaks: 'drain',
    edits: [[/ {2}if corelane_now_ms\(\) - forgotten_since_ms >= .*\n/g, REMOVED]],
    caughtBy: 'drain: nginx was killed',
  },
  {
    name: 'who waits for a drain that does not come waits for ever',
    breaks: 'drain',
    edits: [[/now_ms >= hook\.limit_ms/g, 'false']],
    caughtBy: 'drain: waiting for a drain that does not come',
  },
  {
    name: 'strangers wait in the places of the hooks of kubelet',
    breaks: 'doors',
    edits: [[/local is_stranger = .*/g, 'local is_stranger = false']],
    caughtBy: 'doors: neighbours that wait for a drain',
  },
  {
    name: 'a drain is never taken back',
    breaks: 'readiness',
    edits: [[/^ {2}draining_since_ms, forgotten_since_ms = nil, nil\n/gm, REMOVED]],
    caughtBy: 'drain: kubelet replaces nginx',
  },
  {
    name: 'the next drain does not wait for endpoint lists',
    breaks: 'drain',
    edits: [[/os\.remove\(FORGOTTEN_MARK\)/g, '']],
    caughtBy: 'drain: kubelet replaces',
  },
  {
    name: 'a drain that was taken back lets HAProxy drop what it has',
    breaks: 'drain',
    edits: [[/os\.remove\(DRAINED_MARK\)/g, '']],
    caughtBy: 'drain: kubelet replaces',
  },
];

const scripts: Mutant[] = [
  {
    name: 'the hook does not wait for drain.delay',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/^while \[ ! -e .*$/gm, 'while false; do']],
    caughtBy: 'drain: nothing is lost',
  },
  {
    name: 'clients that do not cease hold the pod for ever',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/ && \[ "\$now_s" -lt "\$end_s" \]/g, REMOVED]],
    caughtBy: 'drain: a client that does not cease',
  },
  {
    name: 'the hook does not stop nginx',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/^kill -s USR1 .*$/gm, 'exit 0']],
    caughtBy: 'drain: an idle pod',
  },
  {
    name: 'connections that have sent nothing hold the pod',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/\*segs_in:\*\) .*$/gm, '*segs_in:*) ;;']],
    caughtBy: 'drain: a connection that has never sent anything',
  },
  {
    name: 'a request whose head is still arriving is dropped',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/^ *\*bytes_received:\*\) ;;\n/gm, REMOVED]],
    caughtBy: 'drain: a connection that has never sent anything',
  },
  {
    name: 'the hook of nginx drops what it has',
    breaks: 'drain',
    file: 'corelane-drain',
    edits: [[/-s USR1 "\$parent"/g, '-s TERM "$pid"']],
    caughtBy: 'drain: nothing is lost',
  },
];

const entrypoint: Mutant[] = [
  {
    name: 'SIGTERM drops what nginx has',
    breaks: 'drain',
    file: 'entrypoint.c',
    edits: [[/\.graceful = SIGQUIT/g, '.graceful = SIGTERM']],
    caughtBy: 'drain: SIGTERM without a drain',
  },
  {
    name: 'SIGTERM drops what HAProxy has',
    breaks: 'drain',
    file: 'entrypoint.c',
    edits: [[/\.graceful = SIGUSR1/g, '.graceful = SIGTERM']],
    caughtBy: 'drain: SIGTERM without a drain',
  },
  {
    name: 'HAProxy is taken for drained before it is',
    breaks: 'drain',
    file: 'entrypoint.c',
    edits: [[/ && exists\(DRAINED_MARK\)/g, REMOVED]],
    caughtBy: 'drain: SIGTERM without a drain',
  },
  {
    name: 'nobody learns that nginx has ended',
    breaks: 'drain',
    file: 'entrypoint.c',
    edits: [[/^ {2}make_mark\(proxy->stopped_mark\);$/gm, '  if (0) make_mark(proxy->stopped_mark);']],
    caughtBy: 'drain: nothing is lost',
  },
  {
    name: 'a proxy that has died is left to kubelet',
    breaks: 'I2',
    file: 'entrypoint.c',
    edits: [[/if \(!should_restart\(.*\)\) break;/g, 'should_restart(proxy, began, &deaths);\n    break;']],
    caughtBy: 'proxies: HAProxy dies',
  },
  {
    name: 'the port of the probes goes with HAProxy',
    breaks: 'readiness',
    file: 'entrypoint.c',
    edits: [
      [/hold_port\((port_setting\("CORELANE_HEALTH_PORT"\)), ("CORELANE_HEALTH")\)/g, 'set_variable($2, ":%u", $1)'],
    ],
    caughtBy: 'proxies: HAProxy dies',
  },
  {
    name: 'the port of nginx goes with it',
    breaks: 'I2',
    file: 'entrypoint.c',
    edits: [[/^ {2}hold_nginx_port\(.*$/gm, REMOVED]],
    caughtBy: 'proxies: nginx dies',
  },
  {
    name: 'the kernel accepts for an nginx that finishes',
    breaks: 'drain',
    file: 'listeners.c',
    edits: [[/while \(ports_count > 0\) close.*$/gm, 'ports_count = 0;']],
    caughtBy: 'drain: nothing is lost',
  },
  {
    name: 'nginx waits for clients that another process has taken',
    breaks: 'I2',
    file: 'listeners.c',
    edits: [[/ \| SOCK_NONBLOCK/g, REMOVED]],
    caughtBy: 'proxies: the sockets that outlive a proxy',
  },
  {
    name: 'an nginx that dies in a drain is not started again',
    breaks: 'drain',
    file: 'entrypoint.c',
    edits: [[/exists\(FORGOTTEN_MARK\)/g, 'exists(DRAINING_MARK)']],
    caughtBy: 'drain: nginx dies while endpoint lists',
  },
  {
    name: 'the mark of a container that was replaced stays',
    breaks: 'readiness',
    file: 'entrypoint.c',
    edits: [[/^ {2}unlink\(DRAINING_MARK\);$/gm, REMOVED]],
    caughtBy: 'drain: kubelet replaces',
  },
  {
    name: 'a proxy begins deaf to all signals that process 1 waits for',
    breaks: 'drain',
    file: 'entrypoint.c',
    edits: [[/^ {2}sigprocmask\(SIG_SETMASK, &none, NULL\);$/gm, REMOVED]],
    caughtBy: 'drain: SIGTERM ends an nginx',
  },
  {
    name: "what nginx' master process has left behind keeps its port",
    breaks: 'I2',
    file: 'entrypoint.c',
    edits: [[/if \(proxy == &NGINX\) let_orphans_finish/g, 'if (0) let_orphans_finish']],
    caughtBy: "proxies: nginx' master process dies",
  },
  {
    name: "nginx' container ends before kubelet stops it",
    breaks: 'drain',
    file: 'entrypoint.c',
    edits: [[/if \(status == 0\) wait_for_kubelet/g, 'if (0) wait_for_kubelet']],
    caughtBy: 'drain: nothing is lost',
  },
  {
    name: 'an image takes what an operator of another protocol has written',
    breaks: 'I7',
    file: 'settings.c',
    edits: [[/spoken != PROTOCOL_VERSION/g, 'spoken == 0']],
    caughtBy: 'entrypoint: an operator that speaks another version',
  },
];

const inFile = (file: MutantFile) => (mutant: Omit<Mutant, 'file'>) => ({ ...mutant, file });

const pooling: Mutant[] = [
  {
    name: 'connections to a peer that has gone stay open',
    breaks: 'drain',
    file: 'pooling/peers.lua',
    edits: [[/corelane_forget_peer\(peer\)/g, 'peer.is_gone = true']],
    caughtBy: 'pooling: connections that pods keep for their questions',
  },
  {
    name: 'nobody is asked when a request arrives, nor later',
    breaks: 'pooling',
    file: 'pooling/borrowing.lua',
    edits: [[/ask\(peer, 'slot'\)/g, "'never'"]],
    caughtBy: 'pooling: what finds no slot at home',
  },
  {
    name: 'who waits is not asked for again',
    breaks: 'pooling',
    file: 'pooling/borrowing.lua',
    edits: [[/core\.msleep\(pause_ms\)/g, 'core.msleep(3600000)']],
    caughtBy: 'pooling: a worker that becomes free elsewhere',
  },
  {
    name: 'who has been refused is forgotten',
    breaks: 'pooling',
    file: 'pooling/offering.lua',
    edits: [[/wanting\[#wanting \+ 1\] = .*/g, REMOVED]],
    caughtBy: 'pooling: a worker that becomes free elsewhere',
  },
  {
    name: 'a borrowed slot stays open',
    breaks: 'pooling',
    file: 'pooling/borrowing.lua',
    edits: [[/set_weight\('0'\)/g, "set_weight('1')"]],
    caughtBy: 'pooling: a slot that a peer has kept is for one request',
  },
  {
    name: 'the entrance of peers does not look for a free slot',
    breaks: 'pooling',
    file: 'haproxy.cfg',
    edits: [[/use_backend line if \{ var\(txn\.slot_kept\) -m bool \}/g, 'use_backend line']],
    caughtBy: 'pooling: what comes from a peer and finds no slot',
  },
  {
    name: 'peers come first',
    breaks: 'pooling',
    file: 'haproxy.cfg',
    edits: [
      [/(borrowed-[0-9]+ [0-9.:]+ maxconn 1) weight 0/g, '$1 weight 1'],
      [/(server slots \S+ maxconn [0-9]+)/g, '$1 id 1000'],
    ],
    caughtBy: 'pooling: nothing is handed over while there is a free slot at home',
  },
  {
    name: 'any revision is a peer',
    breaks: 'pooling',
    file: 'pooling/answering.lua',
    edits: [[/header\('x-corelane-revision'\) == settings\['revision'\]/g, 'true']],
    caughtBy: 'pooling: pods of another revision',
  },
  {
    name: 'any token will do',
    breaks: 'peers',
    file: 'peer-key.lua',
    edits: [[/return \(a ~ e\).*/g, 'return true']],
    caughtBy: 'peers: a token is for one direction',
  },
  {
    name: 'a token of one purpose is good for another',
    breaks: 'peers',
    file: 'peer-key.lua',
    edits: [[/table\.concat\(\{ label, \.\.\. \}/g, 'table.concat({ ... }']],
    caughtBy: 'peers: only the key and the very address',
  },
  {
    name: 'a pod says who it is wherever it was meant to be',
    breaks: 'peers',
    file: 'pooling/askers.lua',
    edits: [[/'hello', from, address\)/g, "'hello', from, '192.0.2.1')"]],
    caughtBy: 'peers: only the key and the very address',
  },
  {
    name: 'a ticket may be used again',
    breaks: 'peers',
    file: 'pooling/tickets.lua',
    edits: [[/^ {2}self\.entries\[ticket\] = nil\n/gm, REMOVED]],
    caughtBy: 'peers: a request comes in with the ticket',
  },
  {
    name: 'who gives up a reservation gives up the oldest',
    breaks: 'pooling',
    file: 'pooling/reservations.lua',
    edits: [[/if other == reservation then/g, 'if index == 1 then']],
    caughtBy: 'lua: reservations.lua',
  },
  {
    name: 'requests come in without a ticket',
    breaks: 'peers',
    file: 'haproxy.cfg',
    edits: [[/^ *http-request reject unless \{ var\(txn\.proof\) -m found \}\n/gm, REMOVED]],
    caughtBy: 'peers: a request comes in with the ticket',
  },
  {
    name: 'pages of strangers count',
    breaks: 'peers',
    file: 'haproxy.cfg',
    edits: [[/^ *http-response deny deny_status 502 .*txn\.proof\) \}\n/gm, REMOVED]],
    caughtBy: 'peers: a page from somebody else',
  },
  {
    name: 'answers of strangers count',
    breaks: 'peers',
    file: 'peer-questions.lua',
    edits: [[/corelane_same_token\(reply\['x-corelane-token'\], (welcome|known\.answer)\)/g, 'true']],
    caughtBy: 'peers: strangers at addresses of peers',
  },
  {
    name: 'a key that is replaced counts no more at once',
    breaks: 'peers',
    file: 'haproxy.cfg',
    edits: [[/overlap-ms=[0-9]+/g, 'overlap-ms=0']],
    caughtBy: 'peers: a new key reaches one pod',
  },
  {
    name: 'a key that is replaced counts for ever',
    breaks: 'peers',
    file: 'peer-key.lua',
    edits: [[/keys\[index\]\.ends_at <= now/g, 'false']],
    caughtBy: 'peers: an old key counts for a while',
  },
  {
    name: 'HAProxy answers nonsense with a page',
    breaks: 'peers',
    file: 'haproxy.cfg',
    edits: [[/^ *errorfile (400|405|408|413|422|500|501) \/dev\/null\n/gm, REMOVED]],
    caughtBy: 'peers: is answered with the end of the connection',
  },
  {
    name: 'one address may have every connection of the entrance',
    breaks: 'peers',
    file: 'haproxy.cfg',
    edits: [[/^ *tcp-request connection reject if \{ sc0_conn_cur.*\n/gm, REMOVED]],
    caughtBy: 'peers: connections without the key are few',
  },
  {
    name: 'a pod that drains says yes',
    breaks: 'pooling',
    file: 'pooling/answering.lua',
    edits: [[/corelane_draining\(\) or /g, REMOVED]],
    caughtBy: 'pooling: a pod that drains takes nothing',
  },
  {
    name: 'a question that gets no answer is never given up',
    breaks: 'pooling',
    file: 'peer-questions.lua',
    edits: [[/now >= at_ms/g, 'false']],
    caughtBy: 'pooling: a frozen peer',
  },
  {
    name: 'nobody watches the peers that have requests of ours',
    breaks: 'I2',
    file: 'pooling/heartbeats.lua',
    edits: [[/slot\.server:shut_sess\(\)/g, 'local _ = slot']],
    caughtBy: 'pooling: a frozen peer',
  },
  {
    name: 'a pod without a worker keeps its requests',
    breaks: 'pooling',
    file: 'corelane.lua',
    edits: [[/if may_leave then peer/g, 'if false then peer']],
    caughtBy: 'pooling: requests of a pod without a worker',
  },
  {
    name: 'a full pod leaves even if all are full',
    breaks: 'readiness',
    file: 'pooling/readiness.lua',
    edits: [[/is_full and #peers_with_room\(\) > 0/g, 'is_full']],
    caughtBy: 'pooling: a fleet that is full everywhere',
  },
  {
    name: 'a full pod stays although others have room',
    breaks: 'readiness',
    file: 'haproxy.cfg',
    edits: [[/^.*lua\.corelane_shed.*\n/gm, REMOVED]],
    caughtBy: 'pooling: a pod with a full queue leaves',
  },
];

const runtime: Mutant[] = [
  {
    name: 'a response may be longer than it says',
    breaks: 'I5',
    file: 'length.cjs',
    edits: [[/size <= left \?/g, 'true ?']],
    caughtBy: 'kept-connections: what a program sends beyond',
  },
  {
    name: 'an interim response is taken for an answer',
    breaks: 'I3',
    file: 'length.cjs',
    edits: [[/ \|\| response\.statusCode < FINAL/g, REMOVED]],
    caughtBy: 'informational: a page that is answered 103 and nothing else',
  },
  {
    name: 'a response that never ends has its connection for ever',
    breaks: 'I3',
    file: 'length.cjs',
    edits: [[/late = setTimeout\(close, LATE_MS\)/g, 'late = setTimeout(() => {}, LATE_MS)']],
    caughtBy: 'kept-connections: a response whose bytes are all there',
  },
  {
    name: 'a program closes idle connections before HAProxy does',
    breaks: 'I5',
    file: 'gate.cjs',
    edits: [[/this\.keepAliveTimeout = KEEP_ALIVE_MS/g, '0']],
    caughtBy: 'kept-connections: a program with a short keep-alive',
  },
  {
    name: 'a response that is too short is waited for',
    breaks: 'I5',
    file: 'length.cjs',
    edits: [[/response\.once\('finish', close\)/g, '0']],
    caughtBy: 'kept-connections: a response that is shorter',
  },
  {
    name: 'the gate lets everything through',
    breaks: 'I1',
    file: 'gate.cjs',
    edits: [[/if \(this\.#active < this\.limit\) return/g, 'return']],
    caughtBy: 'gate: two requests at once',
  },
  {
    name: 'the gate lets one too many through',
    breaks: 'I1',
    file: 'gate.cjs',
    edits: [[/this\.#active < this\.limit/g, 'this.#active <= this.limit']],
    caughtBy: 'gate: with concurrency 2',
  },
  {
    name: 'a render without connection gives its place away',
    breaks: 'I1',
    file: 'gate.cjs',
    edits: [[/else this\.#abandon\(render, end\)/g, 'else end()']],
    caughtBy: 'gate: after the death of HAProxy',
  },
  {
    name: 'a render that was given up keeps its worker for as long as it likes',
    breaks: 'runtime',
    file: 'gate.cjs',
    edits: [[/if \(isOver && !response\.headersSent\) count \+= 1;/g, REMOVED]],
    caughtBy: 'hanging: a render that was given up and never ends',
  },
  {
    name: 'a worker that hangs in one of its places is killed with what others wait for',
    breaks: 'I2',
    file: 'abandoned.cjs',
    edits: [[/\(await drainInTurn\(\)\)/g, 'true']],
    caughtBy: 'hanging: with concurrency 2',
  },
  {
    name: 'a worker that is replaced because nobody waits for it counts as down',
    breaks: 'readiness',
    file: 'questions.cjs',
    edits: [[/ \|\| isReplacing\(state\.life, nowMs\(\)\)/g, REMOVED]],
    caughtBy: 'hanging: a render that was given up and never ends',
  },
  {
    name: 'a place whose response was wrapped is never free again',
    breaks: 'runtime',
    file: 'gate.cjs',
    edits: [[/if \(isDone\) return/g, 'if (isDone || response.end !== ending) return']],
    caughtBy: 'gate: a render whose client has gone gives',
  },
  {
    name: 'nobody is told that a render is about to be given up',
    breaks: 'I2',
    file: 'gate.cjs',
    edits: [[/ \|\| this\.#isLate\(\)/g, REMOVED]],
    caughtBy: 'runtime: gate: a render that never ends',
  },
  {
    name: 'a server that listens again gets a second gate',
    breaks: 'runtime',
    file: 'worker.cjs',
    edits: [[/ \|\| guarded\.has\(server\)/g, REMOVED]],
    caughtBy: 'supervisor-commands: a server that listens twice',
  },
  {
    name: 'a question that is none ends the worker',
    breaks: 'runtime',
    file: 'health.cjs',
    edits: [[/\.catch\(\(\) => socket\.destroy\(\)\)/g, REMOVED]],
    caughtBy: 'supervisor-commands: nobody ends a worker',
  },
  {
    name: 'a launcher goes on after a stop',
    breaks: 'runtime',
    file: 'lifecycle.cjs',
    edits: [[/\[\['signalChild', stopSignal\], look\]/g, '[look]']],
    caughtBy: 'supervisor-commands: a launcher that starts its server again: a stop',
  },
  {
    name: 'a launcher starts the worker that was to be replaced',
    breaks: 'I2',
    file: 'lifecycle.cjs',
    edits: [[/\[\['kill'\], look\]/g, '[look]']],
    caughtBy: 'supervisor-commands: a launcher that starts its server again: a recycled',
  },
  {
    name: 'who has left the gate is rendered',
    breaks: 'I2',
    file: 'gate.cjs',
    edits: [[/if \(response\.destroyed \|\| .*\)$/gm, 'if (false)']],
    caughtBy: 'gate: who waits in the gate and leaves',
  },
  {
    name: 'the gate is not told the limit',
    breaks: 'I1',
    file: 'haproxy.cfg',
    edits: [[/corelane-agent [0-9]+/g, 'corelane-agent 0']],
    caughtBy: 'gate: two requests at once',
  },
  {
    name: 'a worker with a render without connection counts as free',
    breaks: 'I2',
    file: 'worker.cjs',
    edits: [[/gate\?\.isBlocked \? BLOCKED : 0/g, '0']],
    caughtBy: 'runtime: gate: after a time-out',
  },
  {
    name: 'WebSockets do not pass',
    breaks: 'runtime',
    file: 'nginx.conf',
    edits: [[/^ *~\*\^websocket\$ .*\n/gm, REMOVED]],
    caughtBy: 'gate: a WebSocket passes',
  },
  {
    name: 'any protocol passes as if it were a WebSocket',
    breaks: 'runtime',
    file: 'nginx.conf',
    edits: [[/~\*\^websocket\$ /g, '~. ']],
    caughtBy: 'gate: another protocol',
  },
  {
    name: 'a silent WebSocket keeps its worker',
    breaks: 'I4',
    file: 'haproxy.cfg',
    edits: [[/timeout tunnel [0-9]+ms/g, 'timeout tunnel 1h']],
    caughtBy: 'gate: a WebSocket that is silent',
  },
  {
    name: 'an answer that HAProxy cannot read counts as a death',
    breaks: 'I2',
    file: 'haproxy.cfg',
    edits: [[/ {2}http-response return status 502 [^\n]* if \{ res\.hdr\(X-Corelane-End\) -m str PH \}\n/g, REMOVED]],
    caughtBy: 'limits: the head of a response beyond',
  },
  {
    name: 'a listen that throws keeps 256 files open',
    breaks: 'runtime',
    file: 'worker.cjs',
    edits: [[/release\(\); \/\/ no event will come of it/g, '']],
    caughtBy: 'listens: a `listen` that throws',
  },
  {
    name: 'a WebSocket lasts for ever',
    breaks: 'I4',
    file: 'gate.cjs',
    edits: [[/if \(event === 'upgrade'\)/g, 'if (false)']],
    caughtBy: 'gate: a WebSocket that lasts',
  },
  {
    name: 'WebSockets take every place',
    breaks: 'doors',
    file: 'nginx.conf',
    edits: [[/limit_conn websockets [0-9]+;/g, 'limit_conn websockets 64000;']],
    caughtBy: 'per-client: WebSockets leave',
  },
  {
    name: 'one client may have everything',
    breaks: 'doors',
    file: 'nginx.conf',
    edits: [[/limit_conn clients [0-9]+;/g, 'limit_conn clients 64000;']],
    caughtBy: 'per-client: one client has so many',
  },
  {
    name: 'all clients of a proxy that writes IPv4 as IPv6 are one',
    breaks: 'doors',
    file: 'nginx.conf',
    edits: [[/^ *"~\(\?s\)\^\\x00.*\n/gm, REMOVED]],
    caughtBy: 'per-client: IPv4 addresses',
  },
  {
    name: 'each address of a network is a client of its own',
    breaks: 'doors',
    file: 'nginx.conf',
    edits: [[/^ *"~\(\?s\)\^\(\?<corelane_network>.*\n/gm, REMOVED]],
    caughtBy: 'per-client: the addresses of an IPv6 /64',
  },
  {
    name: 'a WebSocket goes to a pod that does not count it',
    breaks: 'doors',
    file: 'haproxy.cfg',
    edits: [[/^ *use-server slots .*\n/gm, REMOVED]],
    caughtBy: 'pooling: a WebSocket waits at home',
  },
  {
    name: 'no stack is taken',
    breaks: 'runtime',
    file: 'watchdog.cjs',
    edits: [[/stallLog\.capture\(pid, stallMs\)/g, '{ requests: [] }']],
    caughtBy: 'supervisor: an infinite loop',
  },
  {
    name: 'nobody asks why a worker has died: a second one is lost to the same render',
    breaks: 'runtime',
    file: 'haproxy.cfg',
    edits: [[/ {2}http-response lua\.ask_why_it_died .*\n/g, REMOVED]],
    caughtBy: 'poison: a render that its worker got stuck in',
  },
  {
    name: 'whoever was in a worker that got stuck is at fault',
    breaks: 'I2',
    file: 'second-tries.lua',
    edits: [[/requests == 1 or/g, 'true or']],
    caughtBy: 'poison: who was in the same worker',
  },
  {
    name: 'a second try is not asked about: the end of a kept connection tells nothing',
    breaks: 'runtime',
    file: 'haproxy.cfg',
    edits: [[/ {2}http-request lua\.ask_about_first_try .*\n/g, REMOVED]],
    caughtBy: 'poison: nor one over a connection',
  },
  {
    name: 'a URL that is never answered goes over kept connections',
    breaks: 'runtime',
    file: 'haproxy.cfg',
    edits: [[/,concat\(\/,txn\.fresh\)/g, REMOVED]],
    caughtBy: 'quarantine: clients that go before',
  },
  {
    name: 'what one client has done is refused to all',
    breaks: 'runtime',
    file: 'quarantine.lua',
    edits: [[/by_client\[kill\.client\]/g, 'by_client[kill.at_ms]']],
    caughtBy: 'quarantine: what one client has done',
  },
  {
    name: 'each address of IPv6 is a client',
    breaks: 'runtime',
    file: 'haproxy.cfg',
    edits: [[/ipmask\(32,64\)/g, 'ipmask(32,128)']],
    caughtBy: 'quarantine: what one client has done',
  },
  {
    name: 'who leaves before the kill is not counted',
    breaks: 'runtime',
    file: 'haproxy.cfg',
    edits: [[/ {2}http-after-response lua\.note_death .*\n/g, REMOVED]],
    caughtBy: 'quarantine: clients that go before',
  },
  {
    name: 'a page that is fine for most is refused for the few',
    breaks: 'runtime',
    file: 'quarantine.lua',
    edits: [[/ {2}if is_fine\(url, list\) then return end\n/g, REMOVED]],
    caughtBy: 'quarantine: a page that is fine for most',
  },
  {
    name: 'a URL is refused for what bodies do',
    breaks: 'runtime',
    file: 'haproxy.cfg',
    edits: [[/ if METH_GET !\{ req\.hdr\(Upgrade\) -m found \} .*\n/g, '\n']],
    caughtBy: 'quarantine: a body says more',
  },
  {
    name: 'a peer hands over what is refused here',
    breaks: 'runtime',
    file: 'haproxy.cfg',
    edits: [[/ {2}use_backend poison if poison\n( {2}# Check)/g, '$1']],
    caughtBy: 'quarantine: a pod counts',
  },
  {
    name: 'whoever was in a worker that got stuck has a whole kill',
    breaks: 'runtime',
    file: 'quarantine.lua',
    edits: [[/1 \/ requests/g, '1']],
    caughtBy: 'quarantine: with several requests',
  },
  {
    name: 'a URL gets all workers stuck at once',
    breaks: 'runtime',
    file: 'quarantine.lua',
    edits: [[/at_large\(url\) >= credit\(list, client\)/g, 'false']],
    caughtBy: 'quarantine: a URL that nobody has seen answered',
  },
  {
    name: 'nobody looks whether a worker stands still',
    breaks: 'runtime',
    file: 'quarantine.lua',
    edits: [[/silent = silent or is_silent\(index\)/g, 'silent = false']],
    caughtBy: 'quarantine: a URL that nobody has seen answered',
  },
  {
    name: 'those who have gone keep others from being held',
    breaks: 'runtime',
    file: 'quarantine.lua',
    edits: [[/if not other or other\.count <= own\.count \+ 1 then/g, 'if true then']],
    caughtBy: 'quarantine: nobody is kept out',
  },
  {
    name: 'a worker that is starting counts as stuck',
    breaks: 'runtime',
    file: 'quarantine.lua',
    edits: [[/reply\.body:match\('\^stalled'\) and math\.huge or 0/g, 'math.huge']],
    caughtBy: 'quarantine: a worker that is starting',
  },
  {
    name: 'an answered page waits like one that nobody knows',
    breaks: 'runtime',
    file: 'quarantine.lua',
    edits: [[/not is_fine\(url, list\) and /g, REMOVED]],
    caughtBy: 'quarantine: a page that is fine for most',
  },
  {
    name: 'a quarantine never ends',
    breaks: 'runtime',
    file: 'quarantine.lua',
    edits: [[/ {8}core\.del_acl\(REFUSED, key\)\n/g, REMOVED]],
    caughtBy: 'quarantine: a URL that has got two workers stuck',
  },
  {
    name: 'stalls are not logged',
    breaks: 'runtime',
    file: 'watchdog.cjs',
    edits: [[/log\('stalled', (.*)\);\n/g, 'void ($1);\n']],
    caughtBy: 'supervisor: an infinite loop',
  },
  {
    name: 'a stuck server that dies by itself leaves its launcher down for ever',
    breaks: 'readiness',
    file: 'lifecycle.cjs',
    edits: [[/( {2}stalled: \{\n(?: {4}.*\n)*?) {4}closed,\n/g, '$1']],
    caughtBy: 'launchers: the next server of its launcher takes requests: respawn',
  },
  {
    name: 'a stuck process of a cluster that dies by itself leaves the others down for ever',
    breaks: 'readiness',
    file: 'servers.cjs',
    edits: [[/else if \(server\.isStalled\) dispatch\('recovered', \{ server \}\);/g, REMOVED]],
    caughtBy: 'launchers: the next server of its launcher takes requests: cluster',
  },
  {
    name: 'a launcher without a server is waited for without end',
    breaks: 'readiness',
    file: 'lifecycle.cjs',
    edits: [[/below === undefined \? \[\] : \[\['awaitLauncher', below\]\]/g, '[]']],
    caughtBy: 'launchers: a launcher that starts no other one',
  },
  {
    name: 'where nothing reaps orphans a server below a launcher is taken for the program',
    breaks: 'runtime',
    file: 'child.cjs',
    edits: [[/state\.reaper \? ppid : pid/g, 'ppid']],
    caughtBy: 'launchers: a launcher that starts no other one',
  },
  {
    name: 'a worker that is debugged is killed',
    breaks: 'runtime',
    file: 'watchdog.cjs',
    edits: [[/ && !inspected/g, REMOVED]],
    caughtBy: 'supervisor-commands: a worker that somebody debugs',
  },
  {
    name: 'a worker is up before it is warm',
    breaks: 'runtime',
    file: 'lifecycle.cjs',
    edits: [[/\{ when: isCold, to: 'warming', act: warm \},/g, REMOVED]],
    caughtBy: 'runtime: a worker takes requests when it has rendered',
  },
  {
    name: 'HAProxy is not told before a worker is recycled',
    breaks: 'I2',
    file: 'recycler.cjs',
    edits: [[/if \(!\(await drain\(\)\)\) return false;/g, "dispatch('drain');"]],
    caughtBy: 'runtime: recycling: under load',
  },
  {
    name: 'workers of a pod are recycled at the same time',
    breaks: 'runtime',
    file: 'recycling.cjs',
    edits: [[/server\.once\('error', \(\) => resolve\(undefined\)\)/g, "server.once('error', () => resolve(() => 0))"]],
    caughtBy: 'runtime: recycling: a worker that is due',
  },
  {
    name: 'recycling does not look at the other workers',
    breaks: 'runtime',
    file: 'recycling.cjs',
    edits: [[/if \(WORKERS === 1\) return true/g, 'return true']],
    caughtBy: 'runtime: recycling: a worker that is due',
  },
  {
    name: 'two profiles of a worker at the same time',
    breaks: 'runtime',
    file: 'pages.cjs',
    edits: [[/ {2}if \(taking\)\n? */g, '  if (false) ']],
    caughtBy: 'runtime: a CPU profile',
  },
  {
    name: "Corelane's flags win over the user's",
    breaks: 'runtime',
    file: 'child.cjs',
    edits: [[/\.\.\.flags\.filter\(isAllowed\), \.\.\.users/g, '...users, ...flags.filter(isAllowed)']],
    caughtBy: 'runtime: flags',
  },
];

const runtimePort: Mutant[] = [
  {
    name: 'a URL is enough for a heap snapshot',
    breaks: 'runtime',
    file: 'pages.cjs',
    edits: [[/NEEDS_HEADER\.includes\(name\)/g, 'false']],
    caughtBy: 'runtime: a program that fetches what its clients name',
  },
  {
    name: 'the header counts under any Host',
    breaks: 'runtime',
    file: 'head.cjs',
    edits: [[/ && HOST\.test\(host\[0\]\)/g, REMOVED]],
    caughtBy: 'runtime-port: no heap snapshot, profile or promise for the name',
  },
  {
    name: 'a URL with line breaks makes headers',
    breaks: 'runtime',
    file: 'head.cjs',
    edits: [[/!END_OF_REQUEST_LINE\.test\(header\[2\]\)/g, 'true']],
    caughtBy: 'runtime-port: no heap snapshot, profile or promise for line breaks',
  },
  {
    name: 'a worker is given back while V8 still works on its heap',
    breaks: 'I2',
    file: 'pages.cjs',
    edits: [
      [
        /return await (ask\(server\.pid, 'heap', .*\));/g,
        "await Promise.race([$1, new Promise((left) => socket.once('close', left))]);",
      ],
      [/worker\.undrain\(server\)/g, 'worker.undrain({})'],
    ],
    caughtBy: 'runtime-port: a heap snapshot whose client leaves while V8',
  },
  {
    name: 'nobody gives back a worker whose heap snapshot nobody wants any more',
    breaks: 'I2',
    file: 'pages.cjs',
    edits: [[/!socket\.destroyed && /g, REMOVED]],
    caughtBy: 'runtime-port: a heap snapshot whose client leaves before',
  },
  {
    name: 'half a heap snapshot looks like a whole one',
    breaks: 'runtime',
    file: 'health.cjs',
    edits: [[/if \(!\(await isWhole\)\) return stop\(\);/g, REMOVED]],
    caughtBy: 'runtime-port: a heap snapshot whose process dies',
  },
  {
    name: 'a profile goes on without its client',
    breaks: 'runtime',
    file: 'thread.cjs',
    edits: [[/endProfile\?\.\(\)/g, '0']],
    caughtBy: 'runtime-port: a profile whose client leaves',
  },
  {
    name: 'any number of connections to a supervisor',
    breaks: 'runtime',
    file: 'health.cjs',
    edits: [[/strangers\.size > STRANGERS_MAX/g, 'false']],
    caughtBy: 'runtime-port: many silent connections',
  },
  {
    name: 'a head of any length',
    breaks: 'runtime',
    file: 'health.cjs',
    edits: [[/if \(read\.length > .*\) refuse\(\);/g, REMOVED]],
    caughtBy: 'runtime-port: a header without end',
  },
  {
    name: 'a byte now and then keeps a connection',
    breaks: 'runtime',
    file: 'health.cjs',
    edits: [[/setTimeout\(\(\) => socket\.destroy\(\), HEAD_MS\)/g, 'setTimeout(() => {}, HEAD_MS)']],
    caughtBy: 'runtime-port: a connection that says something',
  },
  {
    name: 'anybody raises the limit of requests at a time beyond what there is',
    breaks: 'I1',
    file: 'health.cjs',
    edits: [[/Number\.isInteger\(limit\) && limit <= LIMIT_MAX/g, 'true']],
    caughtBy: 'runtime-port: what makes no sense',
  },
];

const guarded: Mutant[] = [
  {
    name: 'connections are kept to whoever is up',
    breaks: 'I5',
    file: 'haproxy.cfg',
    edits: [[/ {2}http-request set-header Connection .*\n/g, REMOVED]],
    caughtBy: 'guarded: a server without node:http',
  },
  {
    name: 'who says nothing is guarded',
    breaks: 'I5',
    file: 'haproxy.cfg',
    edits: [[/ {2}(option tcp-check|tcp-check .*)\n/g, REMOVED]],
    caughtBy: 'guarded: a server without node:http',
  },
  {
    name: 'the first process of a cluster takes the guard away',
    breaks: 'I5',
    file: 'worker.cjs',
    edits: [[/ \|\| server\._handle === null/g, REMOVED]],
    caughtBy: 'guarded: a program that uses cluster',
  },
  {
    name: 'processes that render nothing make a worker guarded',
    breaks: 'I5',
    file: 'servers.cjs',
    edits: [
      [
        /all\(\)\.every\(\(\{ guarded \}\) => guarded\) && all\(\)\.some\(\(\{ renders \}\) => renders\)/g,
        'all().length > 0',
      ],
    ],
    caughtBy: 'guarded: a server without node:http',
  },
];

const secondTries: Mutant[] = [
  {
    name: 'whatever got no answer has a second worker',
    breaks: 'I2',
    file: 'haproxy.cfg',
    edits: [[/ {2}http-request return .* if \{ so_name replay \} .*\n/g, REMOVED]],
    caughtBy: 'kept-connections: a POST that kills its worker',
  },
  {
    name: 'nobody notes whom a request is given to',
    breaks: 'I2',
    file: 'haproxy.cfg',
    edits: [[/ pool-conn-name req\S+,lua\.corelane_sent\([0-9]+\)/g, REMOVED]],
    caughtBy: 'replay: Safe a POST of 0 bytes that its worker has not begun is not lost over a kept',
  },
  {
    name: 'who has refused a request is asked, and not who had it',
    breaks: 'I2',
    file: 'second-tries.lua',
    edits: [[/sent\[token\] = \{ worker/g, 'sent[token] = sent[token] or { worker']],
    caughtBy: 'replay: a POST that one worker refuses and another one dies with',
  },
  {
    name: 'a worker begins a try although it has promised not to',
    breaks: 'I2',
    file: 'gate.cjs',
    edits: [[/isRefused\(figures\.refused, token\)/g, 'false']],
    caughtBy: 'gate: a try that the worker has promised not to begin',
  },
  {
    name: 'a second try has the name of the first',
    breaks: 'I2',
    file: 'haproxy.cfg',
    edits: [[/(%\[var\(txn\.token\)\])-again/g, '$1']],
    caughtBy: 'kept-connections: a POST of 0 bytes whose connection a program ends unread',
  },
  {
    name: 'a worker that lives is not asked to promise anything',
    breaks: 'I2',
    file: 'begun.cjs',
    edits: [[/await refuse\(pid\)/g, 'true']],
    caughtBy: 'begun: a server that lives',
  },
  {
    name: 'of several processes one promises for all',
    breaks: 'I2',
    file: 'begun.cjs',
    edits: [[/living\.length > 1/g, 'false']],
    caughtBy: 'begun: a server that lives',
  },
  {
    name: 'any answer of a supervisor means that a request was not begun',
    breaks: 'I2',
    file: 'second-tries.lua',
    edits: [[/ and reply\.body == 'no\\n'/g, REMOVED]],
    caughtBy: 'replay: Safe a POST that was begun by a process that is killed',
  },
  {
    name: 'a supervisor that gets no CPU is not waited for',
    breaks: 'I2',
    file: 'second-tries.lua',
    edits: [[/BEGUN_MS_MAX = 1000/g, 'BEGUN_MS_MAX = 200']],
    caughtBy: 'replay: Safe a POST that was not begun is not lost although',
  },
  {
    name: 'a request is begun without a note',
    breaks: 'I2',
    file: 'gate.cjs',
    edits: [[/this\.#notes\.begin\(token \?\? id\)/g, '-1']],
    caughtBy: 'replay: Safe a POST that was begun by a process that is killed',
  },
  {
    name: 'a supervisor answers for the time before it was there',
    breaks: 'I2',
    file: 'begun.cjs',
    edits: [[/ageMs >= process\.uptime\(\) \* 1000/g, 'false']],
    caughtBy: 'begun: unknown',
  },
  {
    name: 'a server that lives has begun all that it will',
    breaks: 'I2',
    file: 'begun.cjs',
    edits: [[/!pids\.every\(hasEnded\)/g, 'false']],
    caughtBy: 'begun: unknown: a server is still there',
  },
  {
    name: 'a server without notes has begun nothing',
    breaks: 'I2',
    file: 'begun.cjs',
    edits: [[/\? 'no' : 'unknown'/g, "? 'no' : 'no'"]],
    caughtBy: 'begun: unknown',
  },
  {
    name: 'a request that goes on is written over',
    breaks: 'I2',
    file: 'begun.cjs',
    edits: [[/while \(this\.#taken\[place\] > 0 && place !== this\.#last\)/g, 'while (false)']],
    caughtBy: 'begun: who has not ended',
  },
  {
    name: 'the first free place is taken, and with it the note of who has just ended',
    breaks: 'I2',
    file: 'begun.cjs',
    edits: [[/let place = this\.#last;/g, 'let place = 0;']],
    caughtBy: 'begun: who has not ended',
  },
  {
    name: 'a stall of long ago answers for a request of today',
    breaks: 'runtime',
    file: 'stalls.cjs',
    edits: [[/ && Date\.now\(\) - Date\.parse\(last\.time\) < RECENT_MS/g, REMOVED]],
    caughtBy: 'stalls: a stall',
  },
  {
    name: 'notes that are not whole count as whole',
    breaks: 'I2',
    file: 'begun.cjs',
    edits: [[/lines\.length !== PLACES \* LINE_BYTES/g, 'false']],
    caughtBy: 'begun: unknown',
  },
];

export const mutants: Mutant[] = [
  ...haproxy.map(inFile('haproxy.cfg')),
  ...doors.map(inFile('haproxy.cfg')),
  ...nginx.map(inFile('nginx.conf')),
  ...lua.map(inFile('corelane.lua')),
  ...secondTries,
  ...pooling,
  ...runtime,
  ...runtimePort,
  ...guarded,
  ...scripts,
  ...entrypoint,
];

/** The mutant that the tests of this process work on: `make test-mutants` sets it. */
export const CURRENT_MUTANT = mutants.find(({ name }) => name === process.env.CORELANE_MUTANT);

/** `text` of `file` as the mutant has it; unchanged when it is about another file. */
export function mutated(mutant: Mutant, file: string, text: string): string {
  if (mutant.file !== file) return text;
  return mutant.edits.reduce((result, [find, replace]) => result.replace(find, replace), text);
}
