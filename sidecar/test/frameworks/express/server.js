const express = require('express');
const { pieces, renderPrice, slow } = require('./work.mjs');

const app = express();
app.get('/', (_request, response) => response.send('page'));
app.get('/slow', async (_request, response) => response.send(await slow(200)));
app.get('/stuck', (_request, response) => response.send(String(renderPrice())));
app.get('/stream', async (_request, response) => {
  for await (const piece of pieces()) response.write(piece);
  response.end();
});
app.listen(process.env.PORT);
