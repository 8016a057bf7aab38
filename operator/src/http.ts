/** The operator's own HTTP port: /livez, /readyz and /metrics. */
import { createServer, type Server } from 'node:http';
import type { Metrics } from './metrics.ts';

export interface Probes {
  /** False when the process cannot recover by itself. */
  isLive: () => boolean;
  /** False until the caches are filled, and while stopping. */
  isReady: () => boolean;
}

/** Starts listening; resolves when the port is open. */
export async function serveHttp(port: number, metrics: Metrics, probes: Probes): Promise<Server> {
  const server = createServer((request, response) => {
    const answer = (ok: boolean) =>
      response.writeHead(ok ? 200 : 503, { 'content-type': 'text/plain' }).end(ok ? 'ok\n' : 'no\n');
    switch (request.url?.split('?')[0]) {
      case '/livez':
        answer(probes.isLive());
        break;
      case '/readyz':
        answer(probes.isReady());
        break;
      case '/metrics':
        metrics.registry.metrics().then(
          (text) => response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(text),
          () => answer(false),
        );
        break;
      default:
        response.writeHead(404).end();
    }
  });
  server.headersTimeout = 5_000;
  server.requestTimeout = 10_000;
  server.maxConnections = 100;
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, resolve));
  return server;
}
