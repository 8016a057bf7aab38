/** Stands for the Service: one port of this machine, each connection goes to a pod at random. */
import net from 'node:net';
import { hostOf, isMeantForUs } from './host-header.ts';

/** As many as a browser and a load of some hundred requests a second want; one more is refused. */
const CONNECTIONS_MAX = 1_024;
/** Ports that are tried from the wanted one on. */
const TRIES_MAX = 100;
/** A client that nobody serves has closed its connection by then. */
const REFUSED_MS = 2_000;
/** Until the Host is there; a browser opens connections that it may not need. No pod takes a longer head. */
const HEAD_MS = 60_000;
const HEAD_BYTES_MAX = 128 * 1024;
const TOO_LONG = answer('431 Request Header Fields Too Large', 'head-too-large', 'the head has no Host in 128 KiB');
const NOBODY = answer('503 Service Unavailable', 'no-worker', 'no pod is ready yet', 'Retry-After: 1\r\n');

/** An answer of the balancer itself, with its reason. */
function answer(status: string, reason: string, sentence: string, further = ''): string {
  const head = `HTTP/1.1 ${status}\r\nX-Corelane-Error: ${reason}\r\nContent-Type: text/plain\r\n${further}`;
  return `${head}X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\ncorelane run: ${sentence}\n`;
}

/** The name is a stranger's: only what may be in one is shown. */
function notOurs(host: string): string {
  const name = /^[\w.:[\]-]{1,255}$/.test(host) ? host : 'of this request';
  const sentence = `the Host ${name} is no name of this machine; --allowed-host NAME lets another one in (docs/run.md)`;
  return answer('403 Forbidden', 'host-not-allowed', sentence);
}

/** Reads on: an end with bytes that nobody has read would take the answer away. */
function refuse(client: net.Socket, refusal: string): void {
  client.resume().end(refusal);
  client.setTimeout(REFUSED_MS, () => client.destroy());
}

/**
 * Looks for the Host of the first request; a browser gives those behind it on the same connection the same one. All
 * bytes stay in the socket, which waits. What has no Host is nginx's to refuse.
 */
function readHost(client: net.Socket, then: (host: string) => void): void {
  let read = Buffer.alloc(0);
  const leave = () => client.destroy();
  const onData = (chunk: Buffer) => {
    read = Buffer.concat([read, chunk]);
    const host = hostOf(read.toString('latin1'));
    if (host === undefined && read.length <= HEAD_BYTES_MAX) return;
    client.off('data', onData).off('end', leave).off('timeout', leave).setTimeout(0).pause();
    if (host === undefined) return refuse(client, TOO_LONG);
    client.unshift(read);
    then(host);
  };
  client.on('data', onData).on('end', leave).on('timeout', leave).setTimeout(HEAD_MS);
}

export class Balancer {
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  readonly #endpoints: () => number[];

  /**
   * @param endpoints local ports of the pods that take connections at this moment
   * @param allowedHosts names beside those of this machine that requests may be for
   */
  constructor(endpoints: () => number[], allowedHosts: string[] = []) {
    this.#endpoints = endpoints;
    this.#server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      this.#keep(client);
      readHost(client, (host) => {
        if (isMeantForUs(host, allowedHosts)) this.#lead(client);
        else refuse(client, notOurs(host));
      });
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
  }

  #lead(client: net.Socket): void {
    const ports = this.#endpoints();
    const port = ports[Math.floor(Math.random() * ports.length)];
    if (port === undefined) refuse(client, NOBODY);
    else this.#join(client, this.#keep(net.connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true })));
  }

  /**
   * Listens on 127.0.0.1.
   * @returns the port: the wanted one, or the next that is free
   */
  async listen(wanted: number): Promise<number> {
    for (let port = wanted; port < wanted + TRIES_MAX && port < 65_536; port += 1) {
      if (await this.#tryPort(port)) return port;
    }
    throw new Error(`no port from ${wanted} on is free; --port names another one`);
  }

  #tryPort(port: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE') resolve(false);
        else if (error.code === 'EACCES') reject(new Error(`port ${port} is for root; --port 8080 is not`));
        else reject(error);
      };
      this.#server.once('error', fail);
      this.#server.listen({ port, host: '127.0.0.1' }, () => {
        this.#server.off('error', fail);
        resolve(true);
      });
    });
  }

  /** Ends all connections and the port. */
  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #keep(socket: net.Socket): net.Socket {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    return socket;
  }

  #join(client: net.Socket, pod: net.Socket): void {
    client.pipe(pod);
    pod.pipe(client);
    client.once('close', () => pod.destroy());
    // What has come from the pod is still to be written.
    pod.once('close', (failed) => (failed ? client.destroy() : client.end()));
  }
}
