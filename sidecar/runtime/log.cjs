/** The supervisor's lines on standard error: JSON, so that they can be told from the program's own. */
'use strict';

const { writeSync } = require('node:fs');
const { workerIndex } = require('./settings.cjs');

function log(event, details = {}) {
  const line = { time: new Date().toISOString(), corelane: 'supervisor', worker: workerIndex, event, ...details };
  try {
    writeSync(2, `${JSON.stringify(line)}\n`);
  } catch {
    // Nobody reads the log; the worker is more important.
  }
}

module.exports = { log };
