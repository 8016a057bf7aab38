/** Breakages of nginx: bodies, responses, replays, who the client is, its log. */
import { type Mutant, REMOVED } from './mutant.ts';

const breakages: Omit<Mutant, 'file'>[] = [
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
    caughtBy: 'budget: of a response that nobody reads',
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
    edits: [[/corelane_draining_file \S+;/g, 'corelane_draining_file /run/corelane/other;']],
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

export const nginx: Mutant[] = breakages.map((mutant) => ({ ...mutant, file: 'nginx.conf' }));
