// The smallest CommonJS server. Listens as Next.js does: on the pod's name, which everybody can reach.
const http = require('node:http');

const main = require.main === module;
const heapMib = require('node:v8').getHeapStatistics().heap_size_limit / 2 ** 20;
http
  .createServer((_request, response) =>
    response.end(JSON.stringify({ main, pid: process.pid, argv: process.argv.slice(2), heapMib })),
  )
  .listen(process.env.PORT, process.env.HOSTNAME);
