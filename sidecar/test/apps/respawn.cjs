/** A launcher that starts its server again whenever it has ended, until it is told to stop itself: as PM2 and nodemon do. */
'use strict';

const { spawn } = require('node:child_process');

let server;
function start() {
  server = spawn(process.execPath, ['/app/worker.mjs'], { stdio: 'inherit' });
  server.once('exit', start);
}
start();
process.on('SIGTERM', () => {
  server.off('exit', start);
  server.kill('SIGTERM');
  server.once('exit', () => process.exit(0));
});
