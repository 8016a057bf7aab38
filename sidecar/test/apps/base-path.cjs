/** Answers below /shop alone: with a script, a style sheet or a page. */
'use strict';

const http = require('node:http');

const FILE = /^\/shop\/_next\/static\/[^?]*\.(js|css)/;
const TYPES = { js: 'text/javascript', css: 'text/css' };

http
  .createServer(({ url }, response) => {
    const [, extension] = FILE.exec(url) ?? [];
    const status = url.startsWith('/shop/') ? 200 : 404;
    response.writeHead(status, { 'Content-Type': `${TYPES[extension] ?? 'text/html'}; charset=utf-8` }).end('x');
  })
  .listen(process.env.PORT);
