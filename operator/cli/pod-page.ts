/** One request to a port of a pod's loopback, through the Kubernetes API: what `kubectl port-forward` does. */
import http from 'node:http';
import { Duplex, PassThrough } from 'node:stream';
import { type KubeConfig, PortForward } from '@kubernetes/client-node';

export interface PodPage {
  status: number;
  body: http.IncomingMessage;
}

export interface PodAddress {
  namespace: string;
  pod: string;
  port: number;
  path: string;
  /** GET, and what shows a worker's runtime that it is meant, unless given. */
  method?: string;
  headers?: Record<string, string>;
  /** Gives up after so long. */
  secondsMax: number;
}

/** The runtime of a worker gives profiles and heap snapshots only to those who can set a header. */
const MEANT = { 'X-Corelane-Runtime': 'true' };

/** Of what a pod says when something is wrong. */
export const SAID_BYTES_MAX = 4 * 1024;

/**
 * A body as text.
 * @throws Error when it has more bytes than that: whoever answers may be a program of a stranger, and go on for ever
 */
export async function bodyText(body: AsyncIterable<Buffer>, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new Error(`the answer has more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/**
 * A request for a page of a pod. The answer's body is still to be read; it fails if the connection ends before it does.
 * @throws Error when the API server or the pod refuses, or nothing comes
 */
export async function getPodPage(config: KubeConfig, address: PodAddress): Promise<PodPage> {
  const { pod, port, path, method = 'GET', headers = MEANT, secondsMax } = address;
  const [toPod, fromPod, refused] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const socket = await forward(config, address, fromPod, refused, toPod);
  const connection = Duplex.from({ readable: fromPod, writable: toPod });
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      socket.close();
      reject(error);
    };
    socket.onclose = () => fromPod.end();
    refused.once('data', (text) => fail(new Error(`port ${port} of pod ${pod}: ${String(text).trim()}`)));
    const signal = AbortSignal.timeout(1000 * secondsMax);
    const options = { host: 'worker', path, method, headers, createConnection: () => connection, signal };
    const request = http.request(options, (response) => {
      response.once('close', () => socket.close());
      response.once('error', (error) => Object.assign(error, { message: brokenOff(pod, error.message) }));
      resolve({ status: response.statusCode ?? 0, body: response });
    });
    request.once('error', (error) =>
      fail(
        new Error(signal.aborted ? `pod ${pod} has not answered for ${secondsMax} s` : brokenOff(pod, error.message)),
      ),
    );
    request.end();
  });
}

function brokenOff(pod: string, message: string): string {
  return `the connection to pod ${pod} broke off (${message}): has the pod or its worker ended?`;
}

async function forward(
  config: KubeConfig,
  { namespace, pod, port }: PodAddress,
  ...streams: [output: PassThrough, error: PassThrough, input: PassThrough]
) {
  try {
    const socket = await new PortForward(config).portForward(namespace, pod, [port], ...streams);
    if (typeof socket === 'function') throw new Error('no connection');
    return socket;
  } catch (error) {
    const { message } = error as Error;
    const [, status] = /server response: (\d+)/.exec(message) ?? [];
    if (status === '403')
      throw new Error(`no right to forward a port of pod ${pod}: it takes "get" and "create" on pods/portforward`);
    if (status === '404') throw new Error(`pod ${pod} is gone`);
    throw new Error(`no connection to pod ${pod}: ${message}`);
  }
}
