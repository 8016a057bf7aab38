/**
 * The configuration of the article that Corelane builds on: nginx reads the body, HAProxy keeps the queue, `maxconn 1`,
 * static-rr, no health checks, redispatch after a refused connection.
 */
import { InOneContainer } from './in-one-container.ts';
import { NGINX_COMMAND, nginxConf, workerPorts } from './nginx.ts';

const NGINX_PORT = 9000;
const HAPROXY_PORT = 9001;

function haproxyCfg(workers: number): string {
  const servers = workerPorts(workers).map((port, worker) => `  server worker-${worker} 127.0.0.1:${port} maxconn 1`);
  return `global
  # As HAProxy was then: one thread.
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout queue 60s
  timeout server 60s
  option http-server-close
  # On by default from 3.3 on; the article describes what it does to single flight.
  no option abortonclose
  option redispatch
  retries 3
frontend front
  bind 127.0.0.1:${HAPROXY_PORT} backlog 4096
  default_backend workers
backend workers
  balance static-rr
${servers.join('\n')}
`;
}

export function startArticle(workers: number): Promise<InOneContainer> {
  const conf = nginxConf(`  server {
    listen ${NGINX_PORT} backlog=4096;
    location / { proxy_pass http://127.0.0.1:${HAPROXY_PORT}; }
  }`);
  return InOneContainer.start({
    name: 'article',
    workers,
    command: ['node', '/bench/launcher.mjs', 'processes', String(workers)],
    env: { PORT: String(workerPorts(workers)[0]) },
    ports: [NGINX_PORT],
    proxies: [
      { command: ['haproxy', '-db', '-f', '/config/haproxy.cfg'], files: { 'haproxy.cfg': haproxyCfg(workers) } },
      { command: NGINX_COMMAND, files: { 'nginx.conf': conf } },
    ],
  });
}
