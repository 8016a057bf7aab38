/**
 * A shop whose renders burn CPU for RENDER_MS in one function; that of /stuck never ends. For the story of the worker
 * runtime, which wants to read the name of that function.
 */
import http from 'node:http';
import { hostname } from 'node:os';

const { PORT, HOST, RENDER_MS = '20' } = process.env;
let rendered = 0;

/** All in one function, whose name the story reads. */
function renderPrice({ url }, response) {
  const untilMs = performance.now() + Number(RENDER_MS);
  let price = 0;
  while (url === '/stuck' || performance.now() < untilMs) {
    for (let part = 0; part < 10_000; part += 1) price += Math.sqrt(price + part);
  }
  rendered += 1;
  const headers = { 'x-in-progress': 1, 'x-served-by': `${hostname()}:${PORT}`, 'x-rendered': rendered };
  response.writeHead(200, headers).end(`${price}\n`);
}

const server = http.createServer(renderPrice);
// The proxies close first: an idle connection must not be cut just as it is used.
server.keepAliveTimeout = 0;
server.listen(Number(PORT), HOST);
process.on('SIGTERM', () => server.close(() => process.exit(0)));
