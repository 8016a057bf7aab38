// node:http alone, as CommonJS.
const http = require('node:http');
const { pieces, renderPrice, slow } = require('./work.mjs');

const answers = {
  '/': async (_request, response) => response.end('page'),
  '/slow': async (_request, response) => response.end(await slow(200)),
  '/stuck': async (_request, response) => response.end(String(renderPrice())),
  async '/stream'(_request, response) {
    for await (const piece of pieces()) response.write(piece);
    response.end();
  },
};

http.createServer((request, response) => answers[request.url](request, response)).listen(process.env.PORT);
