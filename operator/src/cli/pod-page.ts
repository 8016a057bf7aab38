/** One request to a port of a pod's loopback, through the Kubernetes API: what `kubectl port-forward` does. */
import http from 'node:http';
import { Duplex, PassThrough } from 'node:stream';
import { type KubeConfig, PortForward } from '@kubernetes/client-node';

export interface PodPage {
  status: number;
  body: http.IncomingMessage;
}

/** Nothing of what is asked takes longer. */
const TIMEOUT_MS = 300_000;

/**
 * GET of a page of a pod. The answer's body is still to be read.
 * @throws Error when the API server or the pod refuses, or nothing comes
 */
export async function getPodPage(
  config: KubeConfig,
  { namespace, pod, port, path }: { namespace: string; pod: string; port: number; path: string },
): Promise<PodPage> {
  const [toPod, fromPod, refused] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const socket = await new PortForward(config).portForward(namespace, pod, [port], fromPod, refused, toPod);
  if (typeof socket === 'function') throw new Error('no connection');
  const connection = Duplex.from({ readable: fromPod, writable: toPod });
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      socket.close();
      reject(error);
    };
    socket.onclose = () => fromPod.end();
    refused.once('data', (text) => fail(new Error(`port ${port} of pod ${pod}: ${String(text).trim()}`)));
    const request = http.get(
      { host: 'worker', path, createConnection: () => connection, signal: AbortSignal.timeout(TIMEOUT_MS) },
      (response) => {
        response.once('close', () => socket.close());
        resolve({ status: response.statusCode ?? 0, body: response });
      },
    );
    request.once('error', fail);
  });
}
