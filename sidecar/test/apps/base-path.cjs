/** Answers below /shop alone, with a script, a style sheet or a page; and a probe and a favicon at the root. */
'use strict';

const http = require('node:http');

const FILE = /^\/shop\/_next\/static\/[^?]*\.(js|css)/;
const TYPES = { js: 'text/javascript', css: 'text/css' };

http
  .createServer(({ url }, response) => {
    const [, extension] = FILE.exec(url) ?? [];
    const status = /^\/(?:shop\/|health$|favicon\.ico$)/.test(url) ? 200 : 404;
    response.writeHead(status, { 'Content-Type': `${TYPES[extension] ?? 'text/html'}; charset=utf-8` }).end('x');
  })
  .listen(process.env.PORT);
