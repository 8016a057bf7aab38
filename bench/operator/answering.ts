/**
 * A process that answers port 8999 on the addresses of all pods that kwok plays, as a real pod has answered before
 * (pages.ts). Of live settings a pod has those that its ConfigMap had a second ago, as with a kubelet that is quick.
 * Its parent sends a message with what it needs, and gets `ready`.
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiClient, pathOf } from '../../operator/test/support/api-client.ts';
import type { Pages } from './pages.ts';
import { TableWatch } from './table-watch.ts';

export interface Instructions {
  kubeconfig: string;
  pages: Pages;
  port: number;
  /** There are so many at a time. */
  pods: number;
  /** Of each service. */
  namespaces: Record<string, string>;
}

/** What kwok's --cidr has. */
const ADDRESSES = '127.1.';
/** A rollout has more pods for a while; kwok counts addresses up, and takes those first that have become free. */
const MORE = 1.3;
const HEAD_BYTES_MAX = 4_096;
const SILENT_MS = 10_000;
const SETTINGS_KNOWN_MS = 1_000;
const KNOWN_TRIES = 30;
const KNOWN_LOOK_MS = 50;
const NOT_FOUND = 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

process.once('message', (instructions: Instructions) => {
  answer(instructions).catch((error) => {
    console.error(`answering.ts: ${error.message}`);
    process.exit(1);
  });
});
process.on('disconnect', () => process.exit(0));

async function answer({ kubeconfig, pages, port, pods, namespaces }: Instructions): Promise<void> {
  const serials = new Serials(new ApiClient(kubeconfig), namespaces);
  const services = new Map<string, string>();
  const bytes = new Map(Object.entries(pages).map(([path, text]) => [path, Buffer.from(text, 'latin1')]));
  const reply = async (socket: Socket, path: string) => {
    if (path !== '/live') return bytes.get(path) ?? NOT_FOUND;
    const serial = await serials.of(await serviceOf(socket.localAddress ?? ''));
    return serial === undefined ? NOT_FOUND : (pages[path] ?? '').replace(/serial=\w+/, `serial=${serial}`);
  };
  // The operator may be told of a pod a moment earlier.
  const serviceOf = async (address: string) => {
    for (let n = 0; n < KNOWN_TRIES && !services.has(address); n += 1) await delay(KNOWN_LOOK_MS);
    return services.get(address);
  };
  const onSocket = (socket: Socket) => {
    socket.setTimeout(SILENT_MS, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    let head = '';
    socket.on('data', (chunk) => {
      head += chunk.toString('latin1');
      if (head.length > HEAD_BYTES_MAX) socket.destroy();
      else if (head.endsWith('\r\n\r\n')) {
        const path = head.slice(4, head.indexOf(' ', 4));
        reply(socket, path).then(
          (said) => socket.end(said),
          () => socket.destroy(),
        );
      }
    });
  };
  // One for each: another program may have this port on other addresses.
  const listening = new Set<string>();
  const listen = async (address: string) => {
    listening.add(address);
    const server = createServer(onSocket);
    server.listen({ port, host: address, backlog: 64 });
    await once(server, 'listening');
  };
  // Before there are pods: one that is ready answers.
  for (let index = 1; index <= MORE * pods + 100; index += 1) await listen(addressOf(index));
  new TableWatch(kubeconfig, '/api/v1/pods', ({ Name, IP }, type) => {
    if (typeof IP !== 'string' || !IP.startsWith(ADDRESSES) || type === 'DELETED') return;
    services.set(IP, String(Name).split('-')[0] ?? '');
    if (!listening.has(IP)) listen(IP).catch((error) => console.error(`answering.ts: ${error.message}`));
  });
  process.send?.('ready');
}

function addressOf(index: number): string {
  return `${ADDRESSES}${index >> 8}.${index & 255}`;
}

/** Of which settings the pods of a service have been told. */
class Serials {
  readonly #admin: ApiClient;
  readonly #namespaces: Record<string, string>;
  readonly #known = new Map<string, { untilMs: number; serial: Promise<string | undefined> }>();

  constructor(admin: ApiClient, namespaces: Record<string, string>) {
    this.#admin = admin;
    this.#namespaces = namespaces;
  }

  async of(service: string | undefined): Promise<string | undefined> {
    const namespace = this.#namespaces[service ?? ''];
    if (service === undefined || namespace === undefined) return undefined;
    const known = this.#known.get(service);
    if (known && performance.now() < known.untilMs) return await known.serial;
    const serial = this.#read(namespace, service);
    this.#known.set(service, { untilMs: performance.now() + SETTINGS_KNOWN_MS, serial });
    return await serial;
  }

  async #read(namespace: string, service: string): Promise<string | undefined> {
    const config = await this.#admin.find(pathOf('ConfigMap', namespace, `${service}-live`));
    return /^serial=(\w+)$/m.exec(Object.values(config?.data ?? {}).join('\n'))?.[1];
  }
}
