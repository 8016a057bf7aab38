/** Pods that try to reach other pods: who gets to which port is a story about the network. */
import { apply, kubectl } from './cluster.ts';
import { imageNames } from './operator.ts';

/** A connection that nobody answers: what a policy forbids is dropped. Long enough for a second SYN. */
const CONNECT_MS_MAX = 2_500;

/** Where somebody stands who tries to connect: a container of a pod. */
export interface Standpoint {
  namespace: string;
  pod: string;
  container?: string;
}

/** A pod that does nothing, to run programs in. */
export function visitor(namespace: string, name: string): object {
  return pod(namespace, name, {
    name: 'visitor',
    image: imageNames().storefront,
    command: ['node', '-e', 'setInterval(() => {}, 1e9)'],
    resources: { requests: { cpu: '5m', memory: '32Mi' } },
  });
}

/** A plain nginx that hands everything to `upstream`, as an ingress controller does, and its configuration. */
export function ingress(namespace: string, name: string, upstream: string): object[] {
  const configuration = `
    error_log stderr;
    pid /tmp/nginx.pid;
    events {}
    http {
      access_log off;
      client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
      uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
      server { listen 8080; location / { proxy_pass http://${upstream}; } }
    }`;
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { 'nginx.conf': configuration } },
    pod(
      namespace,
      name,
      {
        name: 'nginx',
        image: imageNames().sidecar,
        command: ['nginx', '-c', '/configuration/nginx.conf', '-g', 'daemon off;'],
        resources: { requests: { cpu: '5m', memory: '32Mi' } },
        volumeMounts: [{ name: 'configuration', mountPath: '/configuration' }],
      },
      [{ name: 'configuration', configMap: { name } }],
    ),
  ];
}

function pod(namespace: string, name: string, container: object, volumes: object[] = []): object {
  const metadata = { name, namespace, labels: { app: name } };
  const spec = { containers: [container], volumes, terminationGracePeriodSeconds: 0 };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec };
}

/** Creates objects, and waits for the pods among them. */
export async function create(objects: object[]): Promise<void> {
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  for (const object of objects as { kind: string; metadata: { name: string; namespace: string } }[]) {
    if (object.kind !== 'Pod') continue;
    const { name, namespace } = object.metadata;
    await kubectl(['-n', namespace, 'wait', '--for=condition=Ready', '--timeout=60s', `pod/${name}`]);
  }
}

function execute({ namespace, pod: name, container }: Standpoint, program: string): Promise<string> {
  const target = ['-n', namespace, 'exec', name, ...(container ? ['-c', container] : [])];
  return kubectl([...target, '--', 'node', '-e', program]);
}

/** Which of the ports of an address somebody gets a connection to. All are tried at once. */
export async function reachable(from: Standpoint, address: string, ports: number[]): Promise<number[]> {
  const program = `
    const net = require('node:net');
    const tried = ${JSON.stringify(ports)}.map((port) => new Promise((resolve) => {
      const socket = net.connect({ host: ${JSON.stringify(address)}, port });
      const end = (found) => { socket.destroy(); resolve(found); };
      socket.setTimeout(${CONNECT_MS_MAX}, () => end([]));
      socket.once('connect', () => end([port]));
      socket.once('error', () => end([]));
    }));
    Promise.all(tried).then((found) => console.log(JSON.stringify(found.flat())));`;
  return JSON.parse(await execute(from, program)) as number[];
}

/** Status of a GET. */
export async function statusOf(from: Standpoint, url: string): Promise<number> {
  const program = `fetch(${JSON.stringify(url)}).then(({ status }) => console.log(status))`;
  return Number(await execute(from, program));
}
