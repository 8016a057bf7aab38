// A server in a worker thread: it is the thread that must be watched.
const { isMainThread, Worker } = require('node:worker_threads');

if (isMainThread) new Worker(__filename);
else import('./worker.mjs');
