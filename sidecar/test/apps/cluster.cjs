/**
 * The first process of a cluster: it listens, hands out connections to one server ($FORKS, if given), and starts
 * another one when that has ended.
 */
'use strict';

const cluster = require('node:cluster');
const { join } = require('node:path');

cluster.setupPrimary({ exec: join(__dirname, 'worker.mjs') });
cluster.on('exit', () => cluster.fork());
for (let n = Number(process.env.FORKS ?? 1); n > 0; n -= 1) cluster.fork();
