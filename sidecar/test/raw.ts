/** Clients that write their bytes themselves, because they misbehave. */
import net from 'node:net';

/** A connection to a port of this machine. */
export function rawConnection(port: number, localAddress?: string): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host: '127.0.0.1', ...(localAddress && { localAddress }) }, () =>
      resolve(socket),
    );
    socket.on('error', reject);
  });
}
