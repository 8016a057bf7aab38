/**
 * The first process of a cluster: it listens, hands out connections to one server, and starts another one when that has
 * ended.
 */
'use strict';

const cluster = require('node:cluster');
const { join } = require('node:path');

cluster.setupPrimary({ exec: join(__dirname, 'worker.mjs') });
cluster.on('exit', () => cluster.fork());
cluster.fork();
