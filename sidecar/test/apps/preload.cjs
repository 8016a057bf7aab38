// Stands for an agent that a user preloads: must be in the worker, and not in the supervisor.
require('node:fs').appendFileSync(process.env.EVENTS, `${JSON.stringify({ event: 'preload', pid: process.pid })}\n`);
