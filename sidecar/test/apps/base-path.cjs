/** A program that is built for the path /shop: it answers with a script or a style sheet below it, else with a page. */
'use strict';

const http = require('node:http');

const FILE = /^\/shop\/_next\/static\/[^?]*\.(js|css)/;
const TYPES = { js: 'text/javascript', css: 'text/css' };

http
  .createServer(({ url }, response) => {
    const [, extension] = FILE.exec(url) ?? [];
    response.writeHead(200, { 'Content-Type': `${TYPES[extension] ?? 'text/html'}; charset=utf-8` }).end('x');
  })
  .listen(process.env.PORT);
