/** nginx with `least_conn` in front of the workers, without HAProxy: what many begin with. */
import { InOneContainer } from './in-one-container.ts';

const PORT = 9000;
const FIRST_WORKER_PORT = 9002;

/** What nginx has open beside connections. */
const FILES_BESIDE = 100;

/**
 * What all configurations with nginx share; the paths because the root file system is read-only.
 * @param connections more than usual, for which the engine's soft limit of open files may be too low
 */
export function nginxConf(http: string, connections?: number): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((path) => `  ${path}_temp_path /tmp/${path};`);
  return `worker_processes 1;
pid /tmp/nginx.pid;
error_log /tmp/error.log crit;
${connections === undefined ? '' : `worker_rlimit_nofile ${connections + FILES_BESIDE};`}
events { worker_connections ${connections ?? 4096}; }
http {
${paths.join('\n')}
  access_log off;
  client_max_body_size 10m;
  client_body_buffer_size 256k;
  proxy_http_version 1.1;
  proxy_set_header Connection close;
  proxy_read_timeout 60s;
${http}
}
`;
}

export const NGINX_COMMAND = ['nginx', '-e', '/tmp/error.log', '-c', '/config/nginx.conf', '-g', 'daemon off;'];

/** Ports of the workers of launcher.mjs in mode `processes`. */
export function workerPorts(workers: number): number[] {
  return Array.from({ length: workers }, (_unused, worker) => FIRST_WORKER_PORT + worker);
}

export interface NginxOptions {
  name?: string;
  /** Beside the server, such as the zone of a cache. */
  main?: string;
  /** More of the server. */
  server?: string;
  /** Of requests that go to the workers. */
  location?: string;
  connections?: number;
  /** Of the workers, where they are not those of the benches. */
  command?: string[];
  /** Further options of the engine for the workers. */
  options?: string[];
}

export function startNginx(workers: number, more: NginxOptions = {}): Promise<InOneContainer> {
  const { name = 'nginx', main = '', server = '', location = '', connections, options = [] } = more;
  const { command = ['node', '/bench/launcher.mjs', 'processes', String(workers)] } = more;
  const servers = workerPorts(workers).map((port) => `    server 127.0.0.1:${port};`);
  const conf = nginxConf(
    `  upstream workers {
    least_conn;
${servers.join('\n')}
  }
  ${main}
  server {
    listen ${PORT} backlog=4096;
    ${server}
    location / { ${location} proxy_pass http://workers; }
  }`,
    connections,
  );
  return InOneContainer.start({
    name,
    workers,
    command,
    env: { PORT: String(FIRST_WORKER_PORT) },
    ports: [PORT],
    options,
    proxies: [{ command: NGINX_COMMAND, files: { 'nginx.conf': conf } }],
  });
}
