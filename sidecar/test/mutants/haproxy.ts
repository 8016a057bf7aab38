/** Breakages of stages, checks, time limits and errors of HAProxy. */
import { type Mutant, REMOVED } from './mutant.ts';

const ERROR_REPLY = `content-type application/json string '[^']*' hdr X-Corelane-Error`;

/** Of the configuration, unless they name a file. */
const breakages: (Omit<Mutant, 'file'> & Partial<Mutant>)[] = [
  {
    name: 'two requests per worker',
    breaks: 'I1',
    file: 'moving-limits.lua',
    edits: [[/then return number \+ /g, 'then return number + 1 + ']],
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
    file: 'moving-limits.lua',
    edits: [[/slots:get_maxconn\(\) ~= places then slots:set_maxconn\(places\)/g, 'true then slots:set_maxconn(1000)']],
    caughtBy: 'client-gone: a queued request whose client has gone',
  },
  {
    name: 'a stalled second stage is waited for shorter than a render takes',
    breaks: 'I2',
    edits: [[/(backend line\n(?: {2}.*\n)*? {2}timeout server) [0-9]+ms/g, '$1 500ms']],
    caughtBy: 'serving: a body of 1 MB arrives whole',
  },
  {
    name: 'HAProxy gives up a client that nginx waits for',
    breaks: 'streaming',
    edits: [[/timeout client 86400000ms/g, 'timeout client 8000ms']],
    caughtBy: 'budget: a download comes whole, at whatever speed',
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
    edits: [[/ {2}http-request return .* if no_slot queue_full( !poison)?( !elsewhere)?( !own_site)?\n/g, REMOVED]],
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
    edits: [
      [/timeout server [0-9]+ms/g, 'timeout server 1h'],
      [/ {2}http-request set-timeout server .*\n/g, REMOVED],
    ],
    caughtBy: 'limits: a render beyond its limit',
  },
  {
    name: 'a handler is given up as soon as a render',
    breaks: 'I3',
    edits: [[/ {2}http-request set-timeout server [0-9]+ms if !safe_method .*\n/g, REMOVED]],
    caughtBy: 'hanging: a render that was given up and never ends',
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
    name: 'a client hides behind 0.0.0.0 in a list',
    breaks: 'forwarded',
    edits: [[/req\.fhdr(?=\(X-Forwarded-For\) -m str 0\.0\.0\.0)/g, 'req.hdr']],
    caughtBy: 'forwarded: X-Forwarded-For of a trusted proxy, the mark before the client',
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
    name: 'a second try stands last in the queue',
    breaks: 'I2',
    edits: [[/ {2}http-request set-priority-class .*\n/g, REMOVED]],
    caughtBy: 'replay: a second try is first in the queue',
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

export const haproxy: Mutant[] = breakages.map((mutant) => ({ file: 'haproxy.cfg', ...mutant }));
