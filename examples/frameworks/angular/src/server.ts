import http from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import {
  AngularNodeAppEngine,
  createNodeRequestHandler,
  isMainModule,
  writeResponseToNodeResponse,
} from '@angular/ssr/node';
import { pieces, sessionCookies } from '../work.mjs';

// No express.static for dist/shop/browser: nginx has those files (`framework: Angular`).
const angular = new AngularNodeAppEngine({
  // As Corelane makes them (docs/edge.md). Angular writes a line for each header that it is not told of.
  trustProxyHeaders: ['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'],
});

const PICTURE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="320" height="200"><circle cx="160" cy="100" r="60" fill="#557"/></svg>';

const handler = createNodeRequestHandler(async (request, response) => {
  const [path] = (request.url ?? '/').split('?', 1);
  if (path === '/api/price') {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ price: 42 }));
  } else if (path === '/stream') {
    Readable.from(pieces()).pipe(response);
  } else if (path === '/picture.svg') {
    response.setHeader('Content-Type', 'image/svg+xml');
    response.end(PICTURE);
  } else if (path === '/ordered' && request.method === 'POST') {
    const name = new URLSearchParams(await text(request)).get('name') ?? '';
    response.writeHead(303, { Location: `/order?name=${encodeURIComponent(name)}` }).end();
  } else if (path === '/auth/callback') {
    // Where the provider of a sign-in sends the browser.
    response.writeHead(303, { Location: '/member', 'Set-Cookie': sessionCookies() }).end();
  } else if (path === '/draft') {
    // For editors. An application of yours looks who that is, and has a secret as the value.
    response.writeHead(303, { Location: '/prices', 'Set-Cookie': 'draft=1; Path=/; HttpOnly; SameSite=Lax' }).end();
  } else {
    const page = await angular.handle(request);
    if (page) await writeResponseToNodeResponse(page, response);
    else response.writeHead(404).end('not found');
  }
});

/** For `ng serve`, which has a server of its own. */
export const reqHandler = handler;

if (isMainModule(import.meta.url)) http.createServer(handler).listen(process.env.PORT ?? 3000);
