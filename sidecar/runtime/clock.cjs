/** Time that no change of the machine's clock moves. */
'use strict';

/** `performance` would load a part of Node.js that the supervisor does without. */
function nowMs() {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

module.exports = { nowMs, sleep };
