import { Readable } from 'node:stream';
import Fastify from 'fastify';
import { pieces, renderPrice, slow } from './work.mjs';

const app = Fastify();
app.get('/', async () => 'page');
app.get('/slow', () => slow(200));
app.get('/stuck', async () => String(renderPrice()));
app.get('/stream', () => Readable.from(pieces()));
await app.listen({ port: Number(process.env.PORT), host: '0.0.0.0' });
