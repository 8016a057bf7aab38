/** Plain HTTP to a port of a pod, by the pod's address: no Service, no API server in between. */
import { get } from 'node:http';
import { connect } from 'node:net';

/** A pod that does not answer by then is not asked again before the next round. */
const TIMEOUT_MS = 2_000;
/** 64 workers make 40 kB; nothing that a pod says may fill the operator's memory. */
const BYTES_MAX = 512 * 1024;

/**
 * Body of a page of a pod. Each has a connection of its own: the next one is a quarter of a minute away, and there may
 * be 10,000 pods, whose connections would take more memory than all that is known of them. With neither an agent nor a
 * pool it takes less than half of the time (docs/scale.md).
 * @param address IPv4 or IPv6 address, as in status.podIP
 * @param signal ends it earlier
 * @throws Error when there is no answer within 2 s, one longer than 512 kB, or another than 200
 */
export function getFromPod(address: string, port: number, path: string, signal?: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const end = (why: string) => {
    reject(new Error(why));
    question.destroy();
  };
  const createConnection = () => connect({ host: address, port });
  const question = get({ host: address, port, path, createConnection }, (answer) => {
    if (answer.statusCode !== 200) return end(`${path} answers ${answer.statusCode}`);
    const chunks: Buffer[] = [];
    let bytes = 0;
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BYTES_MAX) end(`${path} answers more than ${BYTES_MAX / 1024} kB`);
      else chunks.push(chunk);
    });
    answer.on('end', () => resolve(Buffer.concat(chunks).toString()));
    answer.on('error', reject);
    return answer;
  });
  const timer = setTimeout(() => end(`no answer within ${TIMEOUT_MS / 1000} s`), TIMEOUT_MS);
  const abort = () => end('no answer in time');
  signal?.addEventListener('abort', abort);
  if (signal?.aborted) abort();
  question.on('error', reject);
  // What is none of HTTP's, such as 101, is no error either.
  question.on('upgrade', (_answer, socket) => {
    socket.destroy();
    end(`${path} answers 101`);
  });
  question.on('close', () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  });
  return promise;
}
