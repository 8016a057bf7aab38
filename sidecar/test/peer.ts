/** Speaks to a pod on the peers' port as another pod does that has the key, or says so. */
import net from 'node:net';
import { FLEET_KEY, type Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { connectionHead, tokens } from './apps/peer-tokens.mjs';

/** The process that a test is. */
export const ME = 'a'.repeat(32);

/** Sends bytes to a port of a pod and gives all that comes back until the other side closes. */
export function exchange(pod: Pod, bytes: string | Buffer, port: number = PORTS.peers): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = net.connect(pod.port(port), '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

/** A request as text. */
export function message(headers: Record<string, string>, line = 'GET / HTTP/1.1'): string {
  const lines = Object.entries({ Host: 'peer', Connection: 'close', ...headers });
  return `${[line, ...lines.map(([name, value]) => `${name}: ${value}`)].join('\r\n')}\r\n\r\n`;
}

/** Value of a header of an answer, or an empty text. */
export function headerOf(answer: string, name: string): string {
  return new RegExp(`^${name}: (.*)\r$`, 'im').exec(answer)?.[1] ?? '';
}

/** Asks as a process that has a key. */
export function ask(pod: Pod, what: string, headers: Record<string, string>, line?: string): Promise<string> {
  const text = message({ 'X-Corelane-Ask': what, 'X-Corelane-From': ME, ...headers }, line);
  return exchange(pod, Buffer.concat([connectionHead(), Buffer.from(text)]));
}

/** Asks who it is. */
export function hello(pod: Pod, key: string, address: string): Promise<string> {
  return ask(pod, 'hello', { 'X-Corelane-Token': tokens(key, 'hello', ME, address)[0] });
}

/** Who answers at the pod, for somebody with the key. */
export async function identityOf(pod: Pod): Promise<string> {
  return headerOf(await hello(pod, FLEET_KEY, await pod.address()), 'X-Corelane-From');
}

/** A ticket of the pod and the proof that its response will have. */
export async function reserved(pod: Pod, identity: string, revision = 'r1'): Promise<[ticket: string, proof: string]> {
  const [token] = tokens(FLEET_KEY, 'question', ME, identity);
  const answer = await ask(pod, 'slot', { 'X-Corelane-Token': token, 'X-Corelane-Revision': revision });
  return tokens(FLEET_KEY, 'hand-over', headerOf(answer, 'X-Corelane-Reservation'), ME, identity);
}

/** As nginx sends it, with the list of a trusted proxy. The client invented the first address. */
export const AS_NGINX = { 'X-Request-ID': 'id', 'X-Forwarded-For': '0.0.0.0, 192.0.2.1', 'X-Forwarded-Proto': 'https' };

/** Hands a request over. */
export function handOver(
  pod: Pod,
  ticket: string,
  text = message(AS_NGINX, 'GET /?id=mine HTTP/1.1'),
): Promise<string> {
  return exchange(pod, Buffer.concat([connectionHead(ticket), Buffer.from(text)]));
}
