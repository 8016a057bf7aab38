// Instead of react-router-serve, which compresses in the place that renders, and reads files that nginx has.
import http from 'node:http';
import { createRequestListener } from '@react-router/node';
import * as build from './build/server/index.js';

http.createServer(createRequestListener({ build })).listen(process.env.PORT ?? 3000);
