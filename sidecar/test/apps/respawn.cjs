/**
 * A launcher that starts its server again whenever it has ended, until it is told to stop itself: as PM2 and nodemon
 * do. STAYS=1: one that starts none, and lives on if that was killed.
 */
'use strict';

const { spawn } = require('node:child_process');
const { join } = require('node:path');

let server;
const onEnd = process.env.STAYS ? (code) => code !== null && process.exit(code) : start;
function start() {
  server = spawn(process.execPath, [join(__dirname, 'worker.mjs')], { stdio: 'inherit' });
  server.once('exit', onEnd);
}
start();
// It lives on without a server.
setInterval(() => {}, 60_000);
process.on('SIGTERM', () => {
  server.off('exit', onEnd);
  if (!server.kill('SIGTERM')) process.exit(0);
  server.once('exit', () => process.exit(0));
});
