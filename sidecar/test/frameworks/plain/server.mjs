// node:http alone, as an ES module.
import http from 'node:http';
import { Readable } from 'node:stream';
import { pieces, renderPrice, slow } from './work.mjs';

const answers = {
  '/': async () => 'page',
  '/slow': () => slow(200),
  '/stuck': async () => String(renderPrice()),
};

http
  .createServer(async ({ url }, response) => {
    if (url === '/stream') Readable.from(pieces()).pipe(response);
    else response.end(await answers[url]());
  })
  .listen(process.env.PORT);
