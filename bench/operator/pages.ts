/** What a real pod of this version answers the operator on port 8999, byte by byte. */
import { connect } from 'node:net';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { samplePod } from '../../operator/src/pods/sample.ts';

/** Two pods, so that there is a peer in it as well. */
const PODS = 2;
const ANSWER_MS = 10_000;

/** Answers by path, head and body. */
export type Pages = Record<string, string>;

/** Starts a small fleet of the default spec, asks a pod all that the operator asks, and takes the fleet away. */
export async function recordPages(): Promise<Pages> {
  const fleet = await Fleet.start(PODS, {});
  try {
    const [pod] = fleet.pods;
    if (!pod) throw new Error('no pod');
    const pages: Pages = {};
    const get = async (path: string) => {
      const answer = await rawAnswer(pod.port(PORTS.stats), path);
      pages[path] = answer;
      return bodyOf(answer);
    };
    await samplePod(
      get,
      pod.workers.map((_unused, index) => `worker-${index}`),
    );
    await get('/live');
    return pages;
  } finally {
    await fleet.stop();
  }
}

/** All that comes on a connection, asked as the operator asks. */
function rawAnswer(port: number, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const chunks: Buffer[] = [];
  const socket = connect(port, '127.0.0.1', () => {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
  });
  socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error(`${path}: no answer`)));
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('error', reject);
  socket.on('end', () => resolve(Buffer.concat(chunks).toString('latin1')));
  return promise;
}

/** The body of an answer, whether it came in one piece or in chunks. */
export function bodyOf(answer: string): string {
  const split = answer.indexOf('\r\n\r\n');
  const [head, body] = [answer.slice(0, split), answer.slice(split + 4)];
  if (!/^transfer-encoding: *chunked/im.test(head)) return body;
  let text = '';
  for (let at = 0; at < body.length; ) {
    const end = body.indexOf('\r\n', at);
    const length = Number.parseInt(body.slice(at, end), 16);
    if (!length) break;
    text += body.slice(end + 2, end + 2 + length);
    at = end + 2 + length + 2;
  }
  return text;
}
