/**
 * The operator's own HTTP ports: one for kubelet's probes, one for metrics. Apart, because a page of metrics takes its
 * time, and kubelet would restart a process that does not answer. Anybody in the cluster may open connections to both:
 * who has one for the longest makes room for who comes.
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Metrics } from './metrics.ts';

/** By path; what is not there is 404. */
type Pages = Record<string, (response: ServerResponse) => void>;

export interface Probes {
  /** False when the process cannot recover by itself. */
  isLive: () => boolean;
  /** Why the process can neither lead nor take over, in one line; undefined when it can. */
  notReady: () => string | undefined;
}

/** Of kubelet there is one at a time. So many that it is answered before a flood takes all their places. */
const PROBES_CONNECTIONS_MAX = 500;
/** Each may have a page that it does not read: some MB with a thousand RenderServices. */
const METRICS_CONNECTIONS_MAX = 10;
/** Without a byte in either direction. */
const SILENCE_MS = 10_000;

/** A page of metrics costs milliseconds of the one thread: so long the same one is given to everybody. */
const METRICS_AGE_MS = 100;
/** And one that took long, of a thousand RenderServices, for so many times longer: however often it is asked for. */
const METRICS_AGE_FACTOR = 10;

/** What everybody is given until then. */
interface Page {
  bytes: Promise<Buffer>;
  untilMs: number;
}

/** Serves /livez and /readyz; resolves when the port is open. */
export function serveProbes(port: number, { isLive, notReady }: Probes): Promise<Server> {
  return serve(port, PROBES_CONNECTIONS_MAX, {
    '/livez': (response) => answer(response, isLive() ? undefined : 'no'),
    '/readyz': (response) => answer(response, notReady()),
  });
}

/** Serves /metrics; resolves when the port is open. */
export function serveMetrics(port: number, { registry }: Metrics): Promise<Server> {
  let page: Page = { bytes: Promise.resolve(Buffer.alloc(0)), untilMs: Number.NEGATIVE_INFINITY };
  return serve(port, METRICS_CONNECTIONS_MAX, {
    '/metrics': (response) => {
      const now = performance.now();
      if (now >= page.untilMs) page = newPage(registry, now);
      page.bytes.then(
        (bytes) => response.writeHead(200, { 'content-type': registry.contentType }).end(bytes),
        () => answer(response, 'no'),
      );
    },
  });
}

function newPage(registry: Metrics['registry'], now: number): Page {
  // As bytes, which all connections share: of a text each would have a copy.
  const bytes = registry.metrics().then((text) => Buffer.from(text));
  const page: Page = { bytes, untilMs: now + METRICS_AGE_MS };
  const age = () => {
    page.untilMs = Math.max(page.untilMs, now + METRICS_AGE_FACTOR * (performance.now() - now));
  };
  page.bytes.then(age, age);
  return page;
}

/** @param problem answered with 503; undefined: 200 */
function answer(response: ServerResponse, problem: string | undefined): void {
  const headers = { 'content-type': 'text/plain; charset=utf-8' };
  response.writeHead(problem === undefined ? 200 : 503, headers).end(`${problem ?? 'ok'}\n`);
}

async function serve(port: number, connectionsMax: number, pages: Pages): Promise<Server> {
  const server = createServer((request, response) => {
    const page = new Map(Object.entries(pages)).get(request.url?.split('?')[0] ?? '');
    if (page) page(response);
    else response.writeHead(404).end();
  });
  server.headersTimeout = 5_000;
  server.requestTimeout = 10_000;
  server.timeout = SILENCE_MS;
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    const [oldest] = sockets;
    if (sockets.size <= connectionsMax || !oldest) return;
    sockets.delete(oldest);
    oldest.destroy();
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, resolve));
  return server;
}
