// Stands for an agent that a user preloads: must be in the worker, and not in the supervisor. Some open a port.
require('node:fs').appendFileSync(process.env.EVENTS, `${JSON.stringify({ event: 'preload', pid: process.pid })}\n`);
if (process.env.PRELOAD_PORT) require('node:net').createServer().listen(Number(process.env.PRELOAD_PORT), '127.0.0.1');
