/** What the environment says to the supervisor, and what it says to the processes below it. */
'use strict';

const { readFileSync } = require('node:fs');

const { env } = process;
/** From the kernel: node:crypto would cost memory in every worker. */
const token = readFileSync('/proc/sys/kernel/random/uuid', 'latin1').trim();
const port = Number(env.CORELANE_RUNTIME_PORT);
const workerPort = Number(env.PORT);
const workerIndex = Number(env.WORKER_INDEX ?? 0);
const stallMs = Number(env.CORELANE_STALL_TIMEOUT_MS) || 10_000;
const beatMs = Math.max(50, Math.min(250, Math.floor(stallMs / 5)));
/** In the environment of all processes below: where the supervisor is, and how often it wants a heartbeat. */
const marker = `${port}:${token}:${beatMs}`;

module.exports = { beatMs, marker, stallMs, supervisor: { port, token }, workerIndex, workerPort };
