/** Runs $SCRIPT in a shell, as `npm start` runs what package.json says. $NODE is the Node.js of this process. */
'use strict';

const { spawn } = require('node:child_process');

const env = { ...process.env, NODE: process.execPath };
spawn('sh', ['-c', process.env.SCRIPT], { env, stdio: 'inherit' }).once('exit', (code) => process.exit(code ?? 1));
