/** Clients that say bytes of their own on a connection. */
import type net from 'node:net';
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';

export interface Conversation {
  socket: net.Socket;
  /** What has come. */
  text(): string;
}

/** Opens a connection and sends these parts. */
export async function converse(there: Pod, ...parts: (string | Buffer)[]): Promise<Conversation> {
  const socket = await rawConnection(there.port(PORTS.http));
  let text = '';
  socket.setNoDelay().on('data', (chunk) => {
    text += chunk;
  });
  for (const part of parts) {
    socket.write(part);
    // So that they arrive as packets of their own.
    if (parts.length > 1) await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { socket, text: () => text };
}
