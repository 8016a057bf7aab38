/** A worker that really burns CPU: RENDER_MS of processor time for each request, however busy the machine is. */
import http from 'node:http';
import { hostname } from 'node:os';

const { PORT, HOST, RENDER_MS = '20' } = process.env;
let inProgress = 0;

function burn(ms) {
  const start = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(start);
    if (user + system >= ms * 1000) return;
  }
}

const server = http.createServer((request, response) => {
  inProgress += 1;
  const most = inProgress;
  response.once('close', () => {
    inProgress -= 1;
  });
  request.resume();
  burn(Number(RENDER_MS));
  response.writeHead(200, { 'x-in-progress': most, 'x-served-by': `${hostname()}:${PORT}` }).end('rendered\n');
});
// The proxies close first: an idle connection must not be cut just as it is used.
server.keepAliveTimeout = 0;
server.listen(Number(PORT), HOST);
process.on('SIGTERM', () => server.close(() => process.exit(0)));
