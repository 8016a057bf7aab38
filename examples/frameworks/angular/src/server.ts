import http from 'node:http';
import { Readable } from 'node:stream';
import {
  AngularNodeAppEngine,
  createNodeRequestHandler,
  isMainModule,
  writeResponseToNodeResponse,
} from '@angular/ssr/node';
import { pieces } from '../work.mjs';

// No express.static for dist/shop/browser: nginx has those files (`framework: Angular`).
const angular = new AngularNodeAppEngine({
  // As Corelane makes them (docs/edge.md). Angular writes a line for each header that it is not told of.
  trustProxyHeaders: ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'],
});

const handler = createNodeRequestHandler(async (request, response) => {
  if (request.url === '/api/price') {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ price: 42 }));
  } else if (request.url === '/stream') {
    Readable.from(pieces()).pipe(response);
  } else {
    const page = await angular.handle(request);
    if (page) await writeResponseToNodeResponse(page, response);
    else response.writeHead(404).end('not found');
  }
});

/** For `ng serve`, which has a server of its own. */
export const reqHandler = handler;

if (isMainModule(import.meta.url)) http.createServer(handler).listen(process.env.PORT ?? 3000);
