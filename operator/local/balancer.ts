/** Stands for the Service: one port of this machine, each connection goes to a pod at random. */
import net from 'node:net';

/** As many as a browser and a load of some hundred requests a second want; one more is refused. */
const CONNECTIONS_MAX = 1_024;
/** Ports that are tried from the wanted one on. */
const TRIES_MAX = 100;
/** A client that nobody serves has closed its connection by then. */
const REFUSED_MS = 2_000;
const NOBODY =
  'HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\nRetry-After: 1\r\n\r\n' +
  'corelane run: no pod is ready yet\n';

/** Reads on: an end with bytes that nobody has read would take the answer away. */
function refuse(client: net.Socket): void {
  client.resume().end(NOBODY);
  client.setTimeout(REFUSED_MS, () => client.destroy());
}

export class Balancer {
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();

  /** @param endpoints local ports of the pods that take connections at this moment */
  constructor(endpoints: () => number[]) {
    this.#server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      const ports = endpoints();
      const port = ports[Math.floor(Math.random() * ports.length)];
      this.#keep(client);
      if (port === undefined) refuse(client);
      else this.#join(client, this.#keep(net.connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true })));
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
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
