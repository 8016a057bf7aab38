/** nginx.conf of one pod: reads whole bodies, buffers responses, replays the request of a dead worker. nginx 1.26. */
import type { DataPlaneModel } from './model.ts';
import { limitZones, requestLimits } from './nginx-limits.ts';
import { whole, word } from './safe.ts';

const RUN = '/run/corelane';
/** Idle connections to HAProxy. More than that are in use where many wait, and it does not matter then. */
const KEPT_MAX = 64;
/** What else nginx would do because a response says so. */
const IGNORED = ['Buffering', 'Charset', 'Expires', 'Limit-Rate', 'Redirect'].map((name) => `X-Accel-${name}`);
/** Before the answer of a location for clients that are to come back: one that has too much itself is told so by the status. */
const TOO_MANY = `
      add_header Retry-After 1 always;
      if ($corelane_full = client-limit) {
        return 429 '{"error":"client-limit"}';
      }`;
/** Name or address, and port: nothing that anybody could read as something else. */
const HOST = '(?:[A-Za-z0-9._-]{1,253}|\\[[0-9A-Fa-f:.]{2,45}\\])(?::[0-9]{1,5})?';
const DRAINING_MARK = `${RUN}/draining`;

/**
 * The whole nginx.conf.
 * @throws RangeError when a value of the model cannot stand in the file.
 */
export function renderNginx(model: DataPlaneModel): string {
  return `${[main(model), '', 'http {', basics(model), maps(), clients(model), hosts(), limitZones(model), secondTries(), logging(), upstreams(), proxying(model), server(model)].join('\n')}
}
`;
}

function ms(value: number, what: string): string {
  return `${whole(value, what)}ms`;
}

function main({ drain, limits }: DataPlaneModel): string {
  return `# Made by Corelane; changes are overwritten.
# The drain hook reads this line:
# corelane: drain-accept-ms-max=${whole(drain.acceptMsMax, 'drain.delay')}
# One is enough, and our module counts for one.
worker_processes 1;
load_module /usr/share/corelane/nginx/ngx_http_corelane_module.so;
worker_shutdown_timeout ${ms(drain.timeoutMs, 'drain.timeout')};
pid /tmp/nginx.pid;
error_log stderr warn;

events {
  worker_connections ${whole(limits.nginxConnections, 'connections')};
}`;
}

function basics({ body, timeouts }: DataPlaneModel): string {
  return `  server_tokens off;
  absolute_redirect off;
  default_type application/octet-stream;
  reset_timedout_connection on;
  # HAProxy takes 15 kB.
  large_client_header_buffers 2 8k;
  # What is on disk needs no memory on its way.
  sendfile on;

  # The root file system is read-only.
  client_body_temp_path /tmp/client-body;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;

  client_header_timeout ${ms(timeouts.clientHeaderMs, 'timeouts.clientHeader')};
  client_body_timeout ${ms(timeouts.clientBodyMs, 'timeouts.clientBody')};
  send_timeout ${ms(timeouts.clientSendMs, 'timeouts.clientSend')};
  keepalive_timeout ${ms(timeouts.clientIdleMs, 'keepAlive.idleTimeout')};
  keepalive_requests 100000;
  client_max_body_size ${whole(body.sizeBytesMax, 'buffering.request.maxSize')};
  client_body_buffer_size ${whole(body.memoryBytes, 'buffering.request.memory')};
`;
}

function maps(): string {
  return `  # A request id is taken from the client if it is sane.
  map $http_x_request_id $corelane_request_id {
    default $request_id;
    "~^(?!\\.\\.?$)[A-Za-z0-9._-]{1,128}$" $http_x_request_id;
  }
  # Connect time "-": HAProxy itself was not there.
  map $upstream_connect_time $corelane_bad_gateway {
    default worker-died;
    "" proxy-down;
    # A kept connection that ends gives one try more, for which no server is left.
    "~, [0-9.]+, -$" worker-died;
    "~-$" proxy-down;
  }
`;
}

/** Who the client is, and what a worker gets to know of it. What a proxy says counts if its address is trusted. */
function clients({ trusted }: DataPlaneModel): string {
  const ranges = trusted.map((range) => word(range, 'forwarded.trust'));
  return `  # $remote_addr is from here on the last address in X-Forwarded-For that is no trusted proxy's; $realip_remote_addr is the other
  # end of the connection.
${ranges.map((range) => `  set_real_ip_from ${range};\n`).join('')}  real_ip_header X-Forwarded-For;
  real_ip_recursive on;
  geo $realip_remote_addr $corelane_untrusted {
    default 1;
${ranges.map((range) => `    ${range} "";\n`).join('')}  }
  # From the client on: what stands left of it, the client itself has written.
  map "$remote_addr $realip_remote_addr $http_x_forwarded_for" $corelane_forwarded_for {
    default "$remote_addr, $realip_remote_addr";
    "~^([^ ]+) \\1 " $remote_addr;
    "~^([^ ]+) [^ ]+ (?:.*[ ,])?(?<corelane_chain>\\1(?: *,.*)?)$" "$corelane_chain, $realip_remote_addr";
  }
  map "$corelane_untrusted|$http_x_forwarded_proto" $corelane_proto {
    default $scheme;
    "|http" http;
    "|https" https;
  }
  map "$corelane_untrusted|$http_x_forwarded_host" $corelane_forwarded_host {
    default $corelane_host;
    "~^\\|(?<corelane_hosts>${HOST}(?: *, *${HOST}){0,7})$" $corelane_hosts;
  }
`;
}

/** One host for all who read the request: what nginx, HAProxy and a worker take for it must not differ. */
function hosts(): string {
  return `  # GET http://host/path HTTP/1.1
  map $request $corelane_authority {
    "~^[^ ]+ +[A-Za-z][A-Za-z0-9+.-]*://(?<corelane_target>[^/?# ]*)" $corelane_target;
  }
  map "$http_host|$corelane_authority" $corelane_bad_host {
    default 1;
    "|" "";
    "~*^(${HOST})\\|\\1?$" "";
    "~^\\|${HOST}$" "";
  }
  # An HTTP/1.0 client need not send one, Node.js insists on it.
  map $corelane_authority $corelane_missing_host {
    default $corelane_authority;
    "" localhost;
  }
  # nginx writes it into its error log as it is: codes that a terminal obeys must not stand there.
  map $http_referer $corelane_bad_referer {
    "~[\\x00-\\x1f\\x7f]|\\xc2[\\x80-\\x9f]" 1;
  }
  map "$corelane_bad_host$corelane_bad_referer" $corelane_bad_request {
    default 1;
    "" "";
  }
  map $http_host $corelane_host {
    default $http_host;
    "" $corelane_missing_host;
  }
`;
}

/** A request that got no answer is sent again, once. Whether a second worker has it, HAProxy decides, who knows what became of the first. */
function secondTries(): string {
  return `  # To HAProxy's entrance for second tries, whatever the method.
  proxy_next_upstream error non_idempotent;
  proxy_next_upstream_tries 2;
`;
}

/** One line per request, of bounded length; `escape=json` makes every value of a client harmless. */
function logging(): string {
  const fields = [
    '"time":"$time_iso8601"',
    '"requestId":"$corelane_request_id"',
    '"client":"$remote_addr"',
    '"proxy":"$realip_remote_addr"',
    '"method":"$request_method"',
    '"uri":"$corelane_log_uri"',
    '"status":$status',
    '"error":"$sent_http_x_corelane_error"',
    '"stuckIn":"$upstream_http_x_corelane_stuck"',
    '"worker":"$corelane_log_worker"',
    '"pod":"$corelane_log_pod"',
    '"queueMs":$corelane_log_queue_ms',
    '"renderMs":$corelane_log_render_ms',
    '"totalSeconds":$request_time',
    '"bytesReceived":$request_length',
    '"bytesSent":$bytes_sent',
    '"tries":"$upstream_status"',
    '"traceparent":"$corelane_log_traceparent"',
  ];
  return `  map $request_uri $corelane_log_uri {
    "~^(?<corelane_uri_head>.{0,512})" $corelane_uri_head;
  }
  map $http_traceparent $corelane_log_traceparent {
    "~^[0-9a-f-]{1,64}$" $http_traceparent;
  }
  map $upstream_http_x_corelane_worker $corelane_log_worker {
    "~^worker-[0-9]+$" $upstream_http_x_corelane_worker;
  }
  # Empty: this one. Else the peer whose worker it was.
  map $upstream_http_x_corelane_pod $corelane_log_pod {
    "~^[a-z0-9.-]{1,253}$" $upstream_http_x_corelane_pod;
  }
  map $upstream_http_x_corelane_queue_ms $corelane_log_queue_ms {
    default null;
    "~^[0-9]+$" $upstream_http_x_corelane_queue_ms;
  }
  map $upstream_http_x_corelane_render_ms $corelane_log_render_ms {
    default null;
    "~^[0-9]+$" $upstream_http_x_corelane_render_ms;
  }
  log_format corelane escape=json '{${fields.join(",'\n    '")}}';
  # Lines go out together: one at a time costs the container runtime (Docker) as much CPU as nginx takes for the request.
  # 4 KiB reach the pipe in one piece. A stop writes what is there; a kill -9 loses the lines of the last 0.1 s.
  access_log /dev/stdout corelane buffer=4k flush=100ms;
`;
}

function upstreams(): string {
  return `  # The second try has an entrance of its own: HAProxy answers it for those that no second worker may have, and holds the others until
  # no more workers die.
  upstream corelane {
    server unix:${RUN}/front.sock max_fails=0;
    server unix:${RUN}/replay.sock max_fails=0 backup;
    keepalive ${KEPT_MAX};
  }
`;
}

/** Connections to HAProxy are kept. Nothing but a WebSocket may leave HTTP. */
function connection(webSockets: boolean): string {
  if (!webSockets) return `  proxy_set_header Connection "";\n`;
  return `  map $http_upgrade $corelane_connection {
    default "";
    ~*^websocket$ upgrade;
  }
  map $http_upgrade $corelane_upgrade {
    ~*^websocket$ websocket;
  }
  proxy_set_header Connection $corelane_connection;
  proxy_set_header Upgrade $corelane_upgrade;
`;
}

function proxying({ response, timeouts, webSockets }: DataPlaneModel): string {
  const proxyTime = ms(timeouts.proxyMs, 'timeouts.render');
  return `  proxy_http_version 1.1;
${connection(webSockets)}  proxy_set_header Host $corelane_host;
  proxy_set_header X-Request-ID $corelane_request_id;
  # No client chooses this one: it names the request for HAProxy, in both tries.
  proxy_set_header X-Corelane-Request $request_id;
  proxy_set_header X-Forwarded-For $corelane_forwarded_for;
  proxy_set_header X-Forwarded-Proto $corelane_proto;
  proxy_set_header X-Forwarded-Host $corelane_forwarded_host;
  proxy_set_header X-Real-IP $remote_addr;
  # nginx does not read it, so nobody has looked at what it says.
  proxy_set_header Forwarded "";
  # HAProxy takes away the other headers of the kind.
  proxy_set_header X-Corelane-Untrusted $corelane_untrusted;
  proxy_hide_header X-Corelane-Queue-Ms;
  proxy_hide_header X-Corelane-Render-Ms;
  proxy_hide_header X-Corelane-Worker;
  proxy_hide_header X-Corelane-Stuck;
  proxy_hide_header X-Corelane-Pod;
  proxy_hide_header X-Corelane-Connection;

  # Second line: HAProxy lets none of these pass.
  proxy_ignore_headers ${IGNORED.join(' ')};

  # HAProxy sees a request when all of its body is here, and gets rid of a response as fast as it can be written.
  proxy_request_buffering on;
  proxy_buffering on;
  proxy_buffer_size ${whole(response.bufferBytes, 'response buffer')};
  proxy_buffers ${whole(response.buffers, 'response buffers')} ${whole(response.bufferBytes, 'response buffer')};
  proxy_busy_buffers_size ${whole(response.busyBytes, 'response busy buffers')};
  proxy_temp_file_write_size ${whole(response.busyBytes, 'response file write size')};
  proxy_max_temp_file_size ${whole(response.fileBytesMax, 'buffering.response.maxFileSize')};

  proxy_connect_timeout 1s;
  # Longer than any wait in HAProxy: a large body is stuck half-way while its request queues.
  proxy_send_timeout ${proxyTime};
  proxy_read_timeout ${proxyTime};
`;
}

/** A named location for errors that nginx makes itself; those of HAProxy and of applications pass through. */
function errorLocation(status: number, reason: string, name = String(status), further = ''): string {
  return `
    location @corelane_${name} {
      default_type application/json;
      add_header X-Corelane-Error ${reason} always;${further}
      return ${status} '{"error":"${reason}"}';
    }`;
}

function server(model: DataPlaneModel): string {
  const { pingPath, ports } = model;
  const port = whole(ports.http, 'port');
  return `  # The entry point makes this file where there is IPv6.
  server {
    listen ${port} default_server backlog=4096 sndbuf=${whole(model.limits.sendBufferBytes, 'send buffer')};
    include /tmp/listen-ipv6*.conf;
    server_name _;

    # 408 is missing: nginx closes the connection of a client that is too slow, and logs 408.
    # All of them here: a location with an error_page of its own would not have the others.
    error_page 413 @corelane_413;
    error_page 502 @corelane_502;
    error_page 504 @corelane_504;
    # 419 stands for "no valid host", or "no valid Referer": a 400 that nginx makes before it knows the URL could not be led anywhere.
    error_page 419 = @corelane_400;
    if ($corelane_bad_request) {
      return 419;
    }
    # 420 stands for "full": clients come back.
${requestLimits(model)}    # 418 stands for "draining"; an error page keeps method and body.
    error_page 418 = @corelane_draining;
    recursive_error_pages on;

    location = ${word(pingPath, 'ping.path')} {
      access_log off;
      default_type text/plain;
      if (-f ${DRAINING_MARK}) {
        add_header X-Corelane-Error draining always;
        return 503 "draining\\n";
      }
      return 200 "ok\\n";
    }

    location / {
      if (-f ${DRAINING_MARK}) {
        return 418;
      }
      # Of a pod that drains by now; beside nginx' own "keep-alive", over which "close" prevails.
      add_header Connection $upstream_http_x_corelane_connection always;
      proxy_pass http://corelane;
    }

    # Clients are told to come back with a new connection, which leads to another pod.
    location @corelane_draining {
      keepalive_timeout 0;
      proxy_pass http://corelane;
    }
${errorLocation(400, 'bad-request')}
${errorLocation(503, '$corelane_full', 'full', TOO_MANY)}
${errorLocation(503, 'body-too-slow', 'evicted', '\n      add_header Retry-After 1 always;\n      # Its place is free at once.\n      lingering_close off;')}
${errorLocation(413, 'body-too-large')}
${errorLocation(502, '$corelane_bad_gateway')}
${errorLocation(504, 'proxy-timeout')}
  }`;
}
