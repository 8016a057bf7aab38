/**
 * The operator's own HTTP ports: one for kubelet's probes, one for metrics. Apart, because anybody in the cluster may
 * use up the connections of the second one, and kubelet would restart a process whose first one does not answer.
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Metrics } from './metrics.ts';

/** By path; what is not there is 404. */
type Pages = Record<string, (response: ServerResponse) => void>;

export interface Probes {
  /** False when the process cannot recover by itself. */
  isLive: () => boolean;
  /** False until the caches are filled, and while stopping. */
  isReady: () => boolean;
}

/** A page of metrics costs milliseconds of the one thread: so long the same one is given to everybody. */
const METRICS_AGE_MS = 100;

/** Serves /livez and /readyz; resolves when the port is open. */
export function serveProbes(port: number, { isLive, isReady }: Probes): Promise<Server> {
  return serve(port, { '/livez': answering(isLive), '/readyz': answering(isReady) });
}

/** Serves /metrics; resolves when the port is open. */
export function serveMetrics(port: number, { registry }: Metrics): Promise<Server> {
  let page: { text: Promise<string>; atMs: number } | undefined;
  return serve(port, {
    '/metrics': (response) => {
      const now = performance.now();
      if (!page || now - page.atMs >= METRICS_AGE_MS) page = { text: registry.metrics(), atMs: now };
      page.text.then(
        (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
        () => answer(response, false),
      );
    },
  });
}

function answering(ok: () => boolean): (response: ServerResponse) => void {
  return (response) => answer(response, ok());
}

function answer(response: ServerResponse, ok: boolean): void {
  response.writeHead(ok ? 200 : 503, { 'content-type': 'text/plain' }).end(ok ? 'ok\n' : 'no\n');
}

async function serve(port: number, pages: Pages): Promise<Server> {
  const server = createServer((request, response) => {
    const page = new Map(Object.entries(pages)).get(request.url?.split('?')[0] ?? '');
    if (page) page(response);
    else response.writeHead(404).end();
  });
  server.headersTimeout = 5_000;
  server.requestTimeout = 10_000;
  server.maxConnections = 100;
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, resolve));
  return server;
}
